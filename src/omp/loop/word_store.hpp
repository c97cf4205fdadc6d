// SPDX-License-Identifier: BSD-3-Clause
// Role: the few shared words of worksharing constructs, wherever they lie: plain memory of this
// process on one node, a segment on node 0 otherwise.
// Invariant: every access is sequentially consistent and complete when the call returns; words are
// zero at first. They never lie in the program's memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "base/fatal.hpp"
#include "base/thread_context.hpp"
#include "gas/gas.hpp"
#include "omp/team/cancellation.hpp"

namespace hiroba::omp {

inline constexpr std::size_t store_words = 1024;

/// Thread: any, at once.
class WordStore {
public:
    virtual ~WordStore() = default;
    virtual std::uint64_t load(std::size_t word) noexcept = 0;
    virtual void store(std::size_t word, std::uint64_t value) noexcept = 0;
    virtual std::uint64_t fetch_add(std::size_t word, std::uint64_t value) noexcept = 0;
    /// Returns the value before; stored iff that is `expected`.
    virtual std::uint64_t compare_swap(std::size_t word, std::uint64_t expected,
                                       std::uint64_t desired) noexcept = 0;
    /// Returns once the word has the value: spins, yields, then sleeps between looks; messages are
    /// handled meanwhile. False: the region was cancelled first, so perhaps no thread ever stores
    /// the value.
    bool await(std::size_t word, std::uint64_t value,
               const Cancellation* cancellation = nullptr) noexcept;
    /// The same, until it has this value or a greater one.
    bool await_at_least(std::size_t word, std::uint64_t value,
                        const Cancellation* cancellation = nullptr) noexcept;

private:
    template <class Holds>
    bool await_that(Holds&& holds, const Cancellation* cancellation) noexcept;
    virtual void between_looks() noexcept {}
};

/// Words of this process; untouched ones cost nothing.
class LocalWords final : public WordStore {
public:
    explicit LocalWords(std::size_t words = store_words)
        : memory_(std::calloc(words * sizeof(Word) + cache_line_bytes, 1)) {
        if (memory_ == nullptr) die(exit_environment, "no memory for %lu words", words);
        const auto begin = reinterpret_cast<std::uintptr_t>(memory_.get());
        words_ = reinterpret_cast<Word*>(round_up(begin, cache_line_bytes));
    }
    std::uint64_t load(std::size_t word) noexcept override { return words_[word].load(); }
    void store(std::size_t word, std::uint64_t value) noexcept override {
        words_[word].store(value);
    }
    std::uint64_t fetch_add(std::size_t word, std::uint64_t value) noexcept override {
        return words_[word].fetch_add(value);
    }
    std::uint64_t compare_swap(std::size_t word, std::uint64_t expected,
                               std::uint64_t desired) noexcept override {
        words_[word].compare_exchange_strong(expected, desired);
        return expected;
    }

private:
    using Word = std::atomic<std::uint64_t>;
    struct Free {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };
    std::unique_ptr<void, Free> memory_;
    Word* words_;
};

/// Words on node 0. Made before Endpoint::connect(), attached after it.
class SegmentWords final : public WordStore {
public:
    SegmentWords(net::Endpoint& endpoint, gas::Segment segment)
        : endpoint_(endpoint), segment_(std::move(segment)) {}
    void attach() { segment_.attach(); }

    // Called on the program's stack: a transport may take latches.
    std::uint64_t load(std::size_t word) noexcept override {
        const RuntimeScope latches;
        return segment_.load(at(word));
    }
    void store(std::size_t word, std::uint64_t value) noexcept override {
        const RuntimeScope latches;
        segment_.store(at(word), value);
    }
    std::uint64_t fetch_add(std::size_t word, std::uint64_t value) noexcept override {
        const RuntimeScope latches;
        return segment_.fetch_add(at(word), value);
    }
    std::uint64_t compare_swap(std::size_t word, std::uint64_t expected,
                               std::uint64_t desired) noexcept override {
        const RuntimeScope latches;
        return segment_.compare_swap(at(word), expected, desired);
    }

private:
    static gas::GlobalAddress at(std::size_t word) noexcept { return {NodeId{0}, word * 8}; }
    void between_looks() noexcept override {
        const RuntimeScope latches;
        endpoint_.poll();
    }

    net::Endpoint& endpoint_;
    gas::Segment segment_;
};

}  // namespace hiroba::omp
