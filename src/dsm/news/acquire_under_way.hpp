// SPDX-License-Identifier: BSD-3-Clause
// Role: the acquire role of a node and what it works on: the notices that it applies, the blocks
// that it makes inaccessible or brings up to date in place, on whose behalf; and how far the
// acquires of this node have come.
// Invariant: one thread has the role. Releases count as acquired only when all that they have made
// stale is inaccessible or up to date.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/latch.hpp"
#include "base/sparse_array.hpp"
#include "dsm/block/invalidation.hpp"
#include "dsm/dsm.hpp"
#include "dsm/news/known_news.hpp"
#include "dsm/news/releases_of_others.hpp"
#include "dsm/protocol/signature.hpp"

namespace hiroba::dsm {

/// The side on which a thread flushes or acquires.
enum class Flusher : std::uint8_t { program, background };

/// Thread: the one with the role, where nothing else is said.
class AcquireUnderWay {
public:
    AcquireUnderWay(std::uint32_t nodes, std::size_t blocks)
        : acquired_(nodes), taken_(LearnedNews::notices_max), applied_(nodes), put_off_(blocks) {}

    // The role. Thread: any.
    void lock() noexcept { role_.lock(); }
    bool try_lock() noexcept { return role_.try_lock(); }
    void unlock() noexcept { role_.unlock(); }
    void await_open() const noexcept { role_.await_open(); }

    // How far acquires have come. Thread: any.
    const AcquiredReleases& acquired() const noexcept { return acquired_; }
    /// An acquire has rounds to go.
    bool is_unfinished() const noexcept { return unfinished_.load(std::memory_order_acquire); }
    /// Whether leases that end before `min_wts` have been looked at; this node's own min_wts may be
    /// ahead (invariant 6).
    bool has_expired(Timestamp min_wts) const noexcept {
        return min_wts.value <= expired_to_.load(std::memory_order_acquire);
    }
    /// The number of acquires so far, modulo: a hint.
    std::uint16_t rounds() const noexcept { return rounds_.load(std::memory_order_relaxed); }

    // A round.
    /// @param follows  blocks that were followed are brought up to date in place, too
    void begin(Flusher flusher, bool stopped, bool follows) noexcept {
        flusher_ = flusher;
        stopped_ = stopped;
        follows_ = follows;
        rounds_.fetch_add(1, std::memory_order_relaxed);     // a hint elsewhere
        unfinished_.store(true, std::memory_order_release);  // pairs with is_unfinished()
    }
    /// All that was applied is inaccessible, but for what is put off or held back.
    void set_inaccessible() noexcept { acquired_.set_inaccessible(applied_.span()); }
    void count_as_acquired() noexcept { acquired_.set_acquired(applied_.span()); }
    void end(Timestamp expired_to) noexcept {
        expired_to_.store(expired_to.value, std::memory_order_release);  // pairs with the readers
        unfinished_.store(false, std::memory_order_release);
    }
    /// On behalf of the background flusher.
    bool is_aside() const noexcept { return flusher_ == Flusher::background; }
    /// No thread of the program runs.
    bool stopped() const noexcept { return stopped_; }
    bool follows() const noexcept { return follows_; }
    void follow_nothing() noexcept { follows_ = false; }

    // What is applied.
    /// Takes what was learned, for this round or, outside of one, the next.
    void join(KnownNews& news) noexcept {
        taken_count_ += news.join(taken_.span().subspan(taken_count_), applied_.span());
    }
    std::span<Notice> taken() noexcept { return taken_.span().first(taken_count_); }
    void forget_taken() noexcept { taken_count_ = 0; }
    /// Per node, up to which release what was joined tells.
    std::span<ReleaseNumber> applied() noexcept { return applied_.span(); }
    Invalidation& invalidation() noexcept { return invalidation_; }

    // Stale and accessible, to be brought up to date when the rest is inaccessible.
    void put_off(BlockId block) noexcept { put_off_[put_off_count_++] = block; }
    std::span<BlockId> put_off_blocks() noexcept { return put_off_.span().first(put_off_count_); }
    void drop_put_off() noexcept { --put_off_count_; }
    /// The first `count` of them are left.
    void shrink_put_off(std::size_t count) noexcept { put_off_count_ = count; }

private:
    friend class NodeView;

    Latch role_;
    AcquiredReleases acquired_;
    std::atomic<bool> unfinished_{false};
    std::atomic<std::uint64_t> expired_to_{0};
    std::atomic<std::uint16_t> rounds_{0};
    SparseArray<Notice> taken_;
    std::size_t taken_count_ = 0;
    SparseArray<ReleaseNumber> applied_;
    SparseArray<BlockId> put_off_;
    std::size_t put_off_count_ = 0;
    Invalidation invalidation_;
    Flusher flusher_ = Flusher::program;  ///< on whose behalf the role is held
    bool stopped_ = false, follows_ = false;
};

}  // namespace hiroba::dsm
