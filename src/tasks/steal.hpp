// SPDX-License-Identifier: BSD-3-Clause
// Role: a steal from a node whose memory is not mapped: reads the ends, then the oldest entry with
// the ends once more, then raises `top` by a compare-swap. Each step is a request whose end the
// worker looks for while it does something else; no code of the victim is asked to decide anything.
//
// The second look at `bottom` comes after that at `top`, as Offers::take() has it: one read of both
// may copy them in any order. Thread: the worker, apart from the callbacks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "hiroba/net.hpp"
#include "tasks/offers.hpp"

namespace hiroba::tasks {

class RemoteSteal {
public:
    explicit RemoteSteal(net::Network& network) : network_(network) {}

    bool is_idle() const noexcept { return step_ == Step::idle; }
    /// Whether step() has something to do, if it is not idle.
    bool has_answer() const noexcept {
        return left_.load(std::memory_order_acquire) == 0;  // pairs with arrived()
    }
    /// Begins one, from the worker whose offers lie at `at` of `victim`.
    void begin(NodeId victim, net::RemoteAddress at, std::uint32_t capacity);
    /// What there is, if the steal has just succeeded. Call it when has_answer().
    std::optional<Entry> step();

private:
    enum class Step : std::uint8_t { idle, ends, entry, swap };
    void read(std::uint64_t offset, void* to, std::size_t bytes);
    net::Callback callback() noexcept { return {&RemoteSteal::arrived, this, nullptr}; }
    static void arrived(void* steal, net::Outcome outcome) noexcept;

    net::Network& network_;
    Step step_ = Step::idle;
    std::atomic<std::uint32_t> left_{0};  ///< requests under way
    NodeId victim_{};
    net::RemoteAddress at_{};
    std::uint32_t capacity_ = 1;
    Ends ends_{};
    std::uint64_t top_ = 0;
    std::uint64_t bottom_again_ = 0;
    std::uint64_t top_found_ = 0;
    Entry entry_{};
};

}  // namespace hiroba::tasks
