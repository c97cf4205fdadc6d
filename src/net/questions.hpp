// SPDX-License-Identifier: BSD-3-Clause
// Role: questions that the handlers of another node answer: what no device does by itself. Each
// ends with a callback, also when the node is lost.
//
// A question is a message with a tag: the number of the asker's slot and how often that was used.
// The answer has the same tag, so an answer that comes behind the loss of its node finds nobody.
// Invariant: a slot is `asked` or `answering` from the question to its end; only the thread that
// takes it out of that runs the callback.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/latch.hpp"
#include "net/async.hpp"

namespace hiroba::net {

class Questions {
public:
    static constexpr std::size_t words_max = 4;
    enum class About : std::uint8_t { copy_out, copy_in, word, wide_word, procedure };
    static constexpr std::size_t abouts = 5;

    /// A question at the node that it goes to. Words and payload are borrowed.
    struct Asked {
        Questions& of;
        NodeId from;
        std::uint64_t tag;
        std::array<std::uint64_t, words_max> words;
        Bytes payload;
        /// Once, in the handler.
        void answer(std::uint64_t word, Bytes bytes) const noexcept {
            const std::uint64_t words_of_answer[] = {tag, word};
            of.async_.send_inner(from, Async::answer_id, words_of_answer, bytes);
        }
    };
    /// Runs in a handler: it must not wait.
    using Answerer = void (*)(void* context, const Asked& asked) noexcept;

    /// A question at the node that asks it.
    struct Asking {
        NodeId to{};
        About about{};
        /// Takes the answer, in a handler. @return false: it has called ask_again()
        bool (*answered)(Questions& of, Asking& asking, std::uint64_t word,
                         Bytes bytes) noexcept {};
        Completion done{};
        std::array<std::uint64_t, 5> kept{};  ///< answered()'s
        std::uint64_t tag = 0;                ///< ask()'s
    };

    /// Makes handlers; before connect().
    explicit Questions(Async& async);
    Questions(const Questions&) = delete;
    Questions& operator=(const Questions&) = delete;

    void on(About about, Answerer answerer, void* context) noexcept {
        answerers_[static_cast<std::size_t>(about)] = {answerer, context};
    }
    /// Asks. Any thread, handlers and callbacks too. `again`: nothing was done.
    /// @param payload  up to Async::payload_bytes_max() bytes, copied
    Submission try_ask(const Asking& asking, const std::array<std::uint64_t, words_max>& words,
                       Bytes payload) noexcept;
    /// Asks the same node something else, in answered().
    void ask_again(Asking& asking, const std::array<std::uint64_t, words_max>& words,
                   Bytes payload) noexcept;
    /// Ends what `node` was asked, now and later, with Outcome::peer_lost. Any thread.
    void lose(NodeId node) noexcept;
    /// Nothing waits for an answer.
    bool idle() const noexcept { return under_way_.load() == 0; }
    Async& async() noexcept { return async_; }

private:
    static constexpr std::uint32_t slots_max = 1024;
    enum class State : std::uint8_t { free, asked, answering };
    struct Slot {
        Asking asking{};
        State state = State::free;
    };
    /// A tag: slot in the low 16 bits, `about` in the next 8, then how often the slot was used.
    static std::uint32_t slot_of(std::uint64_t tag) noexcept {
        return static_cast<std::uint32_t>(tag & 0xffff);
    }
    Slot* claim(const Asking& asking) noexcept;
    /// True for the thread that may end the question of this tag.
    bool release(std::uint64_t tag, State from) noexcept;
    void end(const Completion& done, Outcome outcome) noexcept;
    static void came(void* context, NodeId from, std::span<const std::uint64_t> words,
                     Bytes payload) noexcept;
    static void answered(void* context, NodeId from, std::span<const std::uint64_t> words,
                         Bytes payload) noexcept;

    struct Registered {
        Answerer answerer = nullptr;
        void* context = nullptr;
    };
    Async& async_;
    std::array<Registered, abouts> answerers_{};
    Latch latch_;  ///< guards the slots and who is lost
    std::vector<Slot> slots_;
    std::vector<std::uint16_t> free_;
    std::vector<bool> lost_;
    std::atomic<std::uint32_t> under_way_{0};
};

}  // namespace hiroba::net
