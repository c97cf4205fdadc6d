// SPDX-License-Identifier: BSD-3-Clause
// Role: this node's side of the job's one flush object
// (docs/decisions/one-object-for-all-flushes.md): which version of it has been learned here, what
// this node's last flush told, and how a thread waits whose flushes find nothing. Invariant: what
// is here changes under the latch, which comes before the release role. Hints are what is read
// without it: seen versions, flushes in vain.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "base/clock.hpp"
#include "base/latch.hpp"
#include "base/turns.hpp"
#include "dsm/dsm.hpp"
#include "dsm/news/flush_object.hpp"
#include "dsm/news/known_news.hpp"
#include "net/net.hpp"

namespace hiroba::dsm {

/// What the wait behind a flush that found nothing has come to. again: in vain, as the flush just
/// before, so that a thread of the program waits for a flag.
enum class FlushWait : std::uint8_t { learned, in_vain, again };

/// Thread: any; with the latch where nothing else is said.
class Flushes {
public:
    Flushes(net::Endpoint& endpoint, gas::Segment segment, std::size_t news_bytes_max,
            KnownNews& news)
        : endpoint_(endpoint), object_(endpoint, std::move(segment), news_bytes_max), news_(news) {}
    void attach() { object_.attach(); }

    void lock() noexcept { latch_.lock(); }
    void unlock() noexcept { latch_.unlock(); }

    /// A standstill of the program's other threads, for flushes of its own. Without the latch.
    void stand_still_by(SharedMemory::Standstill standstill) noexcept { standstill_ = standstill; }
    const SharedMemory::Standstill& standstill() const noexcept { return standstill_; }

    /// SharedMemory::others_rest(). Without the latch.
    void others_rest(bool rest) noexcept { others_rest_.store(rest); }
    /// Whether a flush has nobody to tell anything and nothing to learn: a fence, which this is.
    bool are_fences() noexcept {
        // Seq_cst, with others_rest(false): either this flush finds that others run, or what was
        // written ahead of it is in the release that has them run.
        std::atomic_thread_fence(std::memory_order_seq_cst);
        return others_rest_.load() && !is_something_new();
    }

    /// Whether another node has flushed something that was not learned here, as far as this node
    /// has been told. Without the latch.
    bool is_something_new() noexcept {
        return object_.newer_than(seen_.load(std::memory_order_relaxed));
    }
    /// Whether this node has news that were not flushed.
    bool has_untold() noexcept { return news_.last_sequence() != sequence_; }
    /// All that is known now is flushed, or need not be.
    void note_all_told() noexcept { sequence_ = news_.last_sequence(); }

    /// Waits for the object, which open() or open_with() gives up, and serves others meanwhile.
    template <class Serve>
    FlushObject::Content take(Serve&& serve) noexcept {
        return object_.lock(seen_, serve);
    }
    /// With the object: false: what it says has been learned before.
    bool is_new(const FlushObject::Content& flushed) const noexcept {
        return flushed.version != seen_;
    }
    void note_learned(const FlushObject::Content& flushed) noexcept { seen_ = flushed.version; }
    void open() noexcept { object_.unlock(); }
    /// Puts this node's news there. Later flushes tell them again, until all nodes are seen to have
    /// acquired them.
    void open_with_news() noexcept;

    /// Whether something was found: then no flush has been in vain. Without the latch.
    void note_found() noexcept { in_vain_.store(0, std::memory_order_relaxed); }
    /// After a flush that found nothing: waits a little where flushes in vain follow each other.
    /// learn(): whether something was flushed meanwhile, and is learned now. Without the latch.
    template <class Learn>
    FlushWait wait(Learn&& learn) noexcept;

private:
    friend class NodeView;

    net::Endpoint& endpoint_;
    FlushObject object_;
    KnownNews& news_;
    SharedMemory::Standstill standstill_;

    Latch latch_;
    std::atomic<FlushObject::Version> seen_{0};  ///< changes under the latch
    NewsSequence sequence_ = 0;                  ///< what this node had when it last flushed

    std::atomic<bool> others_rest_{false};
    std::atomic<std::uint32_t> in_vain_{0};     ///< in a row
    std::atomic<std::uint64_t> in_vain_ns_{0};  ///< when the last of them ended
    net::CoreShortage shortage_;                ///< what they have learned of this node's cores
};

// A thread that flushes, finds nothing, and comes back at once is waiting for a flag, though nobody
// has told us so: it serves its peers, leaves its core to them where cores are short, and looks
// whether somebody flushes. That costs a load, where another flush would have the engine look at
// what was written here. It has written nothing meanwhile, so that what is found only need be
// acquired.
template <class Learn>
FlushWait Flushes::wait(Learn&& learn) noexcept {
    constexpr std::uint64_t at_once_ns = 1'000, look_ns = 4'000;
    endpoint_.poll();
    // Relaxed, and no read-modify-write: they only say for about how long this has gone on.
    const std::uint32_t vain = in_vain_.load(std::memory_order_relaxed) + 1;
    in_vain_.store(vain, std::memory_order_relaxed);
    const std::uint64_t begin = now_ns();
    const bool takes_turns = turns_of_this_thread() != nullptr;
    const bool comes_back =
        takes_turns || begin - in_vain_ns_.load(std::memory_order_relaxed) < at_once_ns;
    for (std::uint64_t now = begin;;) {
        if (comes_back && learn()) {
            note_found();
            return FlushWait::learned;
        }
        if (now - begin >= look_ns) break;
        if (vain > std::min(shortage_.spins(), endpoint_.spins())) {
            yield();
            const std::uint64_t yielded = now_ns();
            if (!takes_turns) shortage_.yield_took(yielded - now);
            now = yielded;
        } else if (comes_back && !takes_turns) {
            __builtin_ia32_pause();
            now = now_ns();
        } else {
            break;
        }
        if (takes_turns) break;
    }
    in_vain_ns_.store(now_ns(), std::memory_order_relaxed);
    return comes_back ? FlushWait::again : FlushWait::in_vain;
}

}  // namespace hiroba::dsm
