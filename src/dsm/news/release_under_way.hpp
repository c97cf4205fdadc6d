// SPDX-License-Identifier: BSD-3-Clause
// Role: the release role of a node and what it works on: the blocks to look at, the notices that it
// makes, which other nodes' releases its bytes were read from, and which number it has.
// Invariant: one thread has the role. What is noted here since begin() is told of by one release.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <span>

#include "base/latch.hpp"
#include "base/sparse_array.hpp"
#include "dsm/block/unmerged_blocks.hpp"
#include "dsm/news/known_news.hpp"
#include "dsm/news/own_releases.hpp"
#include "dsm/news/releases_of_others.hpp"
#include "dsm/protocol/signature.hpp"

namespace hiroba::dsm {

/// Thread: the one with the role, where nothing else is said.
class ReleaseUnderWay {
public:
    ReleaseUnderWay(std::uint32_t nodes, std::size_t blocks)
        : work_(blocks), made_(2 * blocks), needed_(nodes), unmerged_(blocks) {}

    // The role. Thread: any.
    void lock() noexcept { role_.lock(); }
    bool try_lock() noexcept { return role_.try_lock(); }
    void unlock() noexcept { role_.unlock(); }
    void await_open() const noexcept { role_.await_open(); }

    /// Whether the program's threads wait before their first write to a block. Thread: any.
    bool stops_writers() const noexcept { return stops_.load(std::memory_order_relaxed); }
    void stop_writers(bool stop) noexcept { stops_.store(stop, std::memory_order_relaxed); }

    /// Whether what it finds written is inaccessible before it is merged: it becomes nobody's own.
    bool hides_written() const noexcept { return hides_; }
    void hide_written(bool hides) noexcept { hides_ = hides; }

    /// Called on the program's thread before it releases. Before its first thread.
    void before_by(void (*hook)() noexcept) noexcept { hook_ = hook; }
    /// Thread: any, without the role.
    void call_hook() const noexcept {
        if (hook_ != nullptr) hook_();
    }

    /// By number. Thread: as it has them.
    OwnReleases& numbers() noexcept { return numbers_; }
    const OwnReleases& numbers() const noexcept { return numbers_; }
    /// The number of the release under way; a hint outside of the role.
    ReleaseNumber number() const noexcept { return numbers_.begun(); }
    /// The releases of other nodes that it has read bytes of.
    NeededReleases& needed() noexcept { return needed_; }
    const NeededReleases& needed() const noexcept { return needed_; }
    /// The blocks that the next one is to look at. Thread: any.
    UnmergedBlocks& unmerged() noexcept { return unmerged_; }

    /// Until the news have it, what is noted is of this release.
    void begin() noexcept {
        numbers_.begin();
        made_count_ = merged_count_ = 0;
        had_work_ = false;
        wts_ = {};
    }

    // The blocks to look at.
    /// Gathers them anew: report() calls add_written() for what write tracking has seen.
    template <class Report>
    void gather(Report&& report) noexcept {
        work_count_ = 0;
        report();
        reported_count_ = work_count_;
        work_count_ += unmerged_.take(work_.data() + work_count_);
    }
    /// Within gather(), in the order of blocks.
    void add_written(BlockId block) noexcept;
    std::span<const BlockId> work() noexcept { return work_.span().first(work_count_); }
    /// Whether write tracking has reported the block at `at`.
    bool is_reported(std::size_t at) const noexcept { return at < reported_count_; }
    /// Leaves of them those for which keep(position, block).
    template <class Keep>
    void keep_of_work(Keep&& keep) noexcept {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < work_count_; ++i)
            if (keep(i, work_[i])) work_[kept++] = work_[i];
        work_count_ = kept;
        reported_count_ = 0;
    }
    /// All blocks of the list have been merged.
    void note_work_done() noexcept { had_work_ |= work_count_ > 0; }

    // What was merged.
    std::size_t merged() const noexcept { return merged_count_; }
    /// Whether there is room for the notices of all work().
    bool has_room() const noexcept { return made_count_ + work_count_ <= made_.size(); }
    /// At which time a block is merged that may be at `earliest`: not before what this release has
    /// merged already. Later than need be does no harm, and one time for many blocks makes one
    /// notice of them.
    Timestamp time_of_merge(Timestamp earliest) noexcept {
        wts_ = std::max(earliest, wts_);
        return wts_;
    }
    /// Blocks in a row that were merged at the same time are one notice. False: it went on with the
    /// last.
    bool note_made(const Notice& next) noexcept;
    KnownNews::Made made() noexcept { return {made_.span().first(made_count_), had_work_}; }

private:
    friend class NodeView;

    Latch role_;
    std::atomic<bool> stops_{false};
    bool hides_ = false;
    OwnReleases numbers_;
    SparseArray<BlockId> work_;
    std::size_t work_count_ = 0, reported_count_ = 0;  ///< of work_, what the engine saw written
    SparseArray<Notice> made_;
    std::size_t made_count_ = 0, merged_count_ = 0;  ///< notices, blocks
    bool had_work_ = false;                          ///< there were blocks to look at
    Timestamp wts_;                                  ///< of the newest merge
    NeededReleases needed_;
    UnmergedBlocks unmerged_;
    void (*hook_)() noexcept = nullptr;
};

}  // namespace hiroba::dsm
