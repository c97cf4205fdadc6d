// SPDX-License-Identifier: BSD-3-Clause
// Role: what a node counts: events and times, in all and by the place that a thread synchronizes
// at, and how often each row of the block protocol was taken. Invariant: nothing is decided by a
// count.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/clock.hpp"
#include "base/thread_context.hpp"
#include "dsm/block/block_table.hpp"
#include "dsm/counts/place_table.hpp"
#include "dsm/counts/recorded.hpp"

namespace hiroba::dsm {

/// Thread: any; async-signal-safe.
class Statistics {
public:
    using Member = PlaceCounters::Member;

    explicit Statistics(bool by_place)
        : places_(by_place ? std::make_unique<PlaceTable>() : nullptr) {}

    /// In the node's sum, and at the thread's place if those are kept.
    void count(Member member, std::uint64_t by = 1) noexcept {
        if (by == 0) return;  // a locked instruction for nothing
        add_to(counters_.*member, by);
        tally(member, by);
        if (places_ != nullptr) [[unlikely]]
            add_to(places_->at(this_thread().place).*member, by);
    }
    /// An atomic: as count(), but on a line that few threads share, since it takes no longer
    /// itself.
    void count_atomic() noexcept {
        const ThreadContext& thread = this_thread();
        count_atomic_of(thread);
        if (places_ != nullptr) [[unlikely]]
            add_to(places_->at(thread.place).atomics, 1);
    }
    /// Where no places are kept.
    void count_atomic_of(const ThreadContext& thread) noexcept { count_atomics_of(thread, 1); }
    void count_atomics_of(const ThreadContext& thread, std::uint64_t made) noexcept {
        add_to(atomics_[thread.global_thread % atomics_.size()].count, made);
    }
    /// The protocol's step for `event`, counted. With the block's latch.
    BlockStep take(const BlockEntry& entry, BlockEvent event) noexcept {
        count_row(entry, event);
        return step(entry.state, event);
    }
    void count_row(const BlockEntry& entry, BlockEvent event) noexcept {
        auto& row = rows_[static_cast<unsigned>(entry.state)][static_cast<unsigned>(event)];
        // Relaxed, and no read-modify-write: statistics, on the path of every fault.
        row.store(row.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    bool has_places() const noexcept { return places_ != nullptr; }
    MemoryCounts counts() const noexcept {
        MemoryCounts sum = sum_of(counters_);
        for (const AtomicsOfThreads& some : atomics_)
            sum.atomics += some.count.load(std::memory_order_relaxed);
        return sum;
    }
    void each_place(SharedMemory::PlaceVisit visit, void* context) const noexcept {
        if (places_ != nullptr) places_->each(visit, context);
    }

    /// Counts the time from its making to its end, where places are kept.
    class Timed {
    public:
        Timed(Statistics& statistics, Member member) noexcept
            : statistics_(statistics),
              member_(member),
              begun_ns_(statistics.places_ != nullptr ? now_ns() : 0) {}
        Timed(const Timed&) = delete;
        Timed& operator=(const Timed&) = delete;
        ~Timed() {
            if (begun_ns_ != 0) statistics_.count(member_, now_ns() - begun_ns_);
        }

    private:
        Statistics& statistics_;
        Member member_;
        std::uint64_t begun_ns_;
    };

private:
    friend class NodeView;

    struct alignas(64) AtomicsOfThreads {
        std::atomic<std::uint64_t> count{0};
    };

    PlaceCounters counters_;  ///< without atomics
    std::array<AtomicsOfThreads, 16> atomics_;
    std::unique_ptr<PlaceTable> places_;  ///< nullptr: not kept
    std::array<std::array<std::atomic<std::uint64_t>, block_events>, block_states> rows_{};
};

}  // namespace hiroba::dsm
