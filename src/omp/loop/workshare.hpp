// SPDX-License-Identifier: BSD-3-Clause
// Role: the slots in which the threads of a team meet in a worksharing construct.
// Invariant: a team's constructs are numbered 0, 1, 2, ... over the whole job, equally on every
// thread, and number s uses slot s % 64. A slot's `uses` word is s / 64 exactly while construct s
// may use it: the last thread to leave clears the slot and raises `uses`, so a thread that runs
// ahead waits for the slowest one only 64 constructs later. In a cancelled region some threads
// leave constructs out, so waiting may be in vain and is given up; the words are cleared behind it.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "omp/loop/word_store.hpp"

namespace hiroba::omp {

class Workshare {
public:
    static constexpr std::uint64_t slots = 64;
    /// A word no construct uses: not 0 once a region that may be cancelled has begun a doacross
    /// loop.
    static constexpr std::size_t doacross_begun = 11;
    /// Another: the last region that has ended on all nodes, where that is watched
    /// (RuntimeCore::watch_regions()).
    static constexpr std::size_t region_over = 12;

    Workshare() = default;
    /// Joins construct `sequence`; waits while the slot's former construct is still in use.
    Workshare(WordStore& words, std::uint64_t sequence,
              const Cancellation* cancellation = nullptr) noexcept
        : words_(&words),
          cancellation_(cancellation),
          base_(sequence % slots * words_per_slot),
          uses_(sequence / slots) {
        if (words_->load(base_ + uses_word) != uses_)
            joined_ = words_->await(base_ + uses_word, uses_, cancellation_);
    }
    /// A construct of which another thread of this node has seen that its slot is free.
    static Workshare seen(WordStore& words, std::uint64_t sequence,
                          const Cancellation* cancellation) noexcept {
        Workshare share;
        share.words_ = &words;
        share.cancellation_ = cancellation;
        share.base_ = sequence % slots * words_per_slot;
        share.uses_ = sequence / slots;
        return share;
    }
    /// False: the region was cancelled while the slot was in use, and it must not be touched.
    bool joined() const noexcept { return joined_; }

    std::uint64_t fetch_add_next(std::uint64_t value) noexcept {
        return words_->fetch_add(base_ + next_word, value);
    }

    void await_turn(std::uint64_t iteration) noexcept {
        words_->await(base_ + turn_word, iteration, cancellation_);
    }
    void give_turn(std::uint64_t iteration) noexcept {
        words_->store(base_ + turn_word, iteration);
    }

    void publish(void* pointer) noexcept {
        words_->store(base_ + pointer_word, reinterpret_cast<std::uintptr_t>(pointer));
    }
    void* published() noexcept {
        return reinterpret_cast<void*>(words_->load(base_ + pointer_word));
    }

    /// The pointer that one thread publishes.
    void* await_published() noexcept {
        words_->await_at_least(base_ + pointer_word, 1);
        return published();
    }

    /// Called once by each of the team's threads. True for the last, which has cleared the slot.
    bool leave(std::uint32_t team_size) noexcept {
        const bool last = is_last_to_leave(team_size);
        if (last) clear();
        return last;
    }
    /// The same, but the last one calls clear(). `leavers`: threads in whose name this one calls.
    bool is_last_to_leave(std::uint32_t team_size, std::uint32_t leavers = 1) noexcept {
        return words_->fetch_add(base_ + left_word, leavers) + leavers == team_size;
    }
    /// Gives the slot to the next construct.
    void clear() noexcept { clear_words({next_word, left_word, turn_word, pointer_word}); }
    /// The same of a construct of which threads have only counted chunks and left.
    void clear_counts() noexcept { clear_words({next_word, left_word}); }
    /// For `single`: true for the first of the team's threads to call. Calling is leaving too.
    bool first_and_leave(std::uint32_t team_size) noexcept {
        const std::uint64_t before = words_->fetch_add(base_ + next_word, 1);
        if (before + 1 == team_size) clear_words({next_word});
        return before == 0;
    }

private:
    // Two lines per slot: the word every chunk touches does not share one with those waited on.
    static constexpr std::size_t words_per_slot = 16;
    static constexpr std::size_t next_word = 0, left_word = 1;
    static constexpr std::size_t uses_word = 8, turn_word = 9, pointer_word = 10;
    static_assert(slots * words_per_slot <= store_words);

    void clear_words(std::initializer_list<std::size_t> used) noexcept {
        for (const std::size_t word : used) words_->store(base_ + word, 0);
        words_->store(base_ + uses_word, uses_ + 1);
    }

    WordStore* words_ = nullptr;
    const Cancellation* cancellation_ = nullptr;
    bool joined_ = true;
    std::size_t base_ = 0;
    std::uint64_t uses_ = 0;
};

}  // namespace hiroba::omp
