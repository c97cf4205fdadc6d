// SPDX-License-Identifier: BSD-3-Clause
// Role: which blocks a node's threads use next: for each place of the program that synchronizes,
// the blocks that were missed between it and the next synchronization the last times
// (docs/decisions/blocks-brought-ahead.md).
// Invariant: only a guess. Learned while threads run; folded and asked while they stand still.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/sparse_array.hpp"
#include "base/thread_context.hpp"
#include "dsm/protocol/signature.hpp"

namespace hiroba::dsm {

class UsePredictor {
public:
    /// Blocks in a row that were missed behind one place.
    struct Run {
        BlockId first = 0;
        std::uint8_t count = 1;
        std::uint8_t trust = 0;    ///< how often in a row a sample of it was used
        std::uint8_t asked = 0;    ///< since the last sample
        std::uint8_t idle = 0;     ///< how often in a row nothing of it was there to be brought
        std::uint8_t sample = 0;   ///< of the last time: its offset in the run + 1; 0: none
        bool guessed = false;      ///< that `last` is one: note_guess()
        std::uint32_t period = 0;  ///< arrivals from one miss to the next
        std::uint32_t last = 0;    ///< the arrival behind which it was missed,
        std::uint32_t before = 0;  ///< and the one before that guess

        BlockId end() const noexcept { return first + count; }
    };
    static constexpr std::uint8_t run_max = 16;

    UsePredictor();

    /// The program has come upon a block that was not here. Thread: any; async-signal-safe.
    void note_miss(BlockId block) noexcept {
        const std::size_t at = missed_count_.fetch_add(1, std::memory_order_relaxed);
        // Relaxed: a guess; who learns may come before it.
        if (at < missed_max) std::atomic_ref{missed_[at]}.store(block, std::memory_order_relaxed);
    }

    /// Takes misses since the last call as those of the place of the last arrive().
    void learn() noexcept;
    /// Returns the runs of `place`.
    std::span<Run> arrive(SyncPlace place) noexcept;
    /// The number of the place of the last arrive(); those that have none share one.
    std::uint8_t here() noexcept {
        static_assert(places_max <= UINT8_MAX);
        return here_ != nullptr ? static_cast<std::uint8_t>(here_ - places_.data()) : UINT8_MAX;
    }

    /// Whether the run, of the place of the last arrive(), will be missed behind that, as far as is
    /// known from how many arrivals lay between the last misses: a loop with a barrier arrives many
    /// times at a place until another phase begins.
    bool is_due(const Run& run) const noexcept { return here_->arrivals - run.last >= run.period; }
    /// Something was done about the run because it is due: it will not be missed.
    void note_guess(Run& run) const noexcept;

    /// Whether a sample is to be taken of the run that is being brought, and of which block:
    /// offset + 1; 0: none.
    static std::uint8_t next_sample(Run& run) noexcept;
    /// The runs of the place of the last arrive(), without those that keep(run) says false for.
    template <class Keep>
    void filter(Keep&& keep) noexcept {
        if (here_ == nullptr) return;
        std::size_t kept = 0;
        for (std::size_t i = 0; i < here_->count; ++i)
            if (Run& run = runs_of(*here_)[i]; keep(run)) runs_of(*here_)[kept++] = run;
        here_->count = static_cast<std::uint32_t>(kept);
    }

private:
    static constexpr std::size_t missed_max = 1 << 16;
    static constexpr std::size_t places_max = 128;
    static constexpr std::size_t runs_max = 4096;  ///< of a place

    struct Place {
        std::uintptr_t address;
        SyncKind kind;
        std::uint32_t count;
        std::uint32_t arrivals;  ///< modulo
        std::uint32_t in_row;    ///< of them, since the threads came from another place
    };
    Place* find(SyncPlace place) noexcept;
    Run* runs_of(const Place& place) noexcept {
        return runs_.data() + static_cast<std::size_t>(&place - places_.data()) * runs_max;
    }
    void fold(Place& place) noexcept;
    static void note_missed(Run& run, const Place& place) noexcept;

    SparseArray<BlockId> missed_, sorted_;
    std::atomic<std::size_t> missed_count_{0};
    SparseArray<Place> places_;
    SparseArray<Run> runs_;
    SparseArray<Run> joined_;
    Place* here_ = nullptr;
};

}  // namespace hiroba::dsm
