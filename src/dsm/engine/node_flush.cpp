// SPDX-License-Identifier: BSD-3-Clause
// Role: flush: a release and an acquire in one critical section on one job-wide object, so that
// all flushes are totally ordered (docs/decisions/one-object-for-all-flushes.md).
#include <algorithm>
#include <mutex>

#include "base/clock.hpp"
#include "base/thread_context.hpp"
#include "base/turns.hpp"
#include "dsm/engine/node.hpp"
#include "dsm/messages.hpp"

namespace hiroba::dsm {

void Node::flush() noexcept {
    count(&PlaceCounters::flushes);
    // Relaxed: whatever reads an old value is silent about a race a little later.
    if (!program_flushes_.load(std::memory_order_relaxed))
        program_flushes_.store(true, std::memory_order_relaxed);
    const bool alone = standstill_.begin != nullptr && standstill_.begin(standstill_.context);
    const Others others = alone ? Others::stopped : Others::running;
    on_runtime_stack([&] {
        if (flush_on_runtime_stack(Flusher::program, others)) {
            vain_flushes_.store(0, std::memory_order_relaxed);
        } else {
            wait_for_flushes(others);
        }
    });
    if (alone) standstill_.end(standstill_.context);
}

// A thread that flushes, finds nothing, and comes back at once is waiting for a flag, though nobody
// has told us so: it serves its peers, leaves its core to them where cores are short, and looks
// whether somebody flushes. That costs a load, where another flush would have the engine look at
// what was written here. It has written nothing meanwhile, so that what is found only need be
// acquired.
void Node::wait_for_flushes(Others others) noexcept {
    constexpr std::uint64_t at_once_ns = 1'000, look_ns = 4'000;
    endpoint_.poll();
    // Relaxed, and no read-modify-write: they only say for about how long this has gone on.
    const std::uint32_t vain = vain_flushes_.load(std::memory_order_relaxed) + 1;
    vain_flushes_.store(vain, std::memory_order_relaxed);
    const std::uint64_t begin = now_ns();
    const bool takes_turns = turns_of_this_thread() != nullptr;
    const bool comes_back =
        takes_turns || begin - vain_flush_ns_.load(std::memory_order_relaxed) < at_once_ns;
    for (std::uint64_t now = begin;;) {
        if (comes_back && learn_flushed()) {
            vain_flushes_.store(0, std::memory_order_relaxed);
            return acquire_flushed(Flusher::program, others);
        }
        if (now - begin >= look_ns) break;
        if (vain > std::min(flush_shortage_.spins(), endpoint_.spins())) {
            yield();
            const std::uint64_t yielded = now_ns();
            if (!takes_turns) flush_shortage_.yield_took(yielded - now);
            now = yielded;
        } else if (comes_back && !takes_turns) {
            __builtin_ia32_pause();
            now = now_ns();
        } else {
            break;
        }
        if (takes_turns) break;
    }
    vain_flush_ns_.store(now_ns(), std::memory_order_relaxed);
}

// Without anything of this node's: a flush of this thread has just told of that.
bool Node::learn_flushed() noexcept {
    if (!flush_object_.newer_than(flush_seen_.load(std::memory_order_relaxed))) return false;
    const std::scoped_lock guard{flush_latch_};
    // What other threads have released stays untold, and nobody releases meanwhile.
    const std::scoped_lock role{release_};
    const bool all_told = last_sequence() == flush_sequence_;
    learn_flushed(flush_object_.lock(flush_seen_), true);
    know_what_was_flushed();
    flush_object_.unlock();
    if (all_told) flush_sequence_ = last_sequence();
    return true;
}

// With the flush object's lock. Whose order it is is known before the bytes can be shown: another
// thread of this node may read them and write at once.
void Node::learn_flushed(const FlushObject::Content& flushed, bool orders) noexcept {
    if (flushed.version == flush_seen_) return;
    if (flush_object_.all_saw(flushed_last_.version)) raise_known_release(flushed_last_.release);
    remember_flushed(flushed.news);
    if (orders) know_what_was_flushed();
    learn_notices(NodeId{~0u}, flushed.news);
    const std::scoped_lock joins{acquire_};
    join_pending();
    flush_seen_ = flushed.version;
}

bool Node::flush_aside() noexcept {
    bool found = false;
    close_waited_for(Spins::no_block);
    on_runtime_stack([&] { found = flush_on_runtime_stack(Flusher::background, Others::running); });
    return found;
}

bool Node::flush_on_runtime_stack(Flusher flusher, Others others) noexcept {
    const bool found = flush_in_order(flusher, others);
    acquire_flushed(flusher, others);
    return found;
}

// What others have flushed, this thread or another of the node has learned and joined. Their
// releases may wait for one of this node: nothing is held.
void Node::acquire_flushed(Flusher flusher, Others others) noexcept {
    if (!has_pending_.load(std::memory_order_acquire) &&  // as in acquire()
        !unfinished_.load(std::memory_order_acquire) &&
        !needs_open_.load(std::memory_order_acquire))
        return;
    acquire_on_runtime_stack(others, flusher);
    if (flusher == Flusher::background)
        spins_.acquired_aside_ns.store(now_ns(), std::memory_order_relaxed);  // a hint
}

// The merges happen inside the object's critical section, so that all flushes have one order.
bool Node::flush_in_order(Flusher flusher, Others others) noexcept {
    // A program that flushes orders its writes by flags: a flag that the background flusher has
    // told of, or learned of, a moment before the program's own flush orders them as well.
    const bool orders =
        flusher == Flusher::program || program_flushes_.load(std::memory_order_relaxed);
    const std::scoped_lock guard{flush_latch_};
    const std::scoped_lock role{release_};
    begin_release();
    gather_work(others);
    drop_unchanged_work();
    const bool untold = has_untold_work();
    if (!untold && !flush_object_.newer_than(flush_seen_)) {
        end_release();
        // What the background flusher has learned the program knows after a flush of its own.
        if (orders) know_what_was_flushed();
        return false;
    }
    const FlushObject::Content flushed = flush_object_.lock(flush_seen_);
    merge_until_quiet(others);
    end_release();
    learn_flushed(flushed, orders);
    if (orders) know_what_was_flushed();
    if (untold) {
        ++flush_seen_;
        flushed_last_ = {flush_seen_, begun_.load(std::memory_order_relaxed)};  // with the role
        const std::size_t bytes = news_for_anyone(flush_object_.own_news());
        keep_flushed(flush_object_.own_news().first(bytes));
        flush_object_.unlock_with(flush_seen_, bytes);
    } else {
        flush_object_.unlock();
    }
    flush_sequence_ = last_sequence();
    return true;
}

bool Node::has_untold_work() noexcept {
    return work_count_ > 0 || debt_.load(std::memory_order_seq_cst) >= begun_.load() ||
           last_sequence() != flush_sequence_;
}

NewsSequence Node::last_sequence() noexcept {
    const std::scoped_lock guard{signature_latch_};
    return signature_.last_sequence();
}

}  // namespace hiroba::dsm
