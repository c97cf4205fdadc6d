// SPDX-License-Identifier: BSD-3-Clause
// Role: flush: a release and an acquire in one critical section on one job-wide object, so that
// all flushes are totally ordered (docs/decisions/one-object-for-all-flushes.md).
#include <mutex>

#include "base/clock.hpp"
#include "base/thread_context.hpp"
#include "dsm/engine/node.hpp"

namespace hiroba::dsm {

void Node::flush() noexcept {
    count(&PlaceCounters::flushes);
    news_.note_own_flush();
    if (is_alone_ || flushes_.are_fences()) return;
    const Standstill& standstill = flushes_.standstill();
    const bool alone = standstill.begin != nullptr && standstill.begin(standstill.context);
    const Others others = alone ? Others::stopped : Others::running;
    on_runtime_stack([&] {
        if (flush_on_runtime_stack(Flusher::program, others)) {
            flushes_.note_found();
            return;
        }
        const FlushWait waited = flushes_.wait([this] { return learn_flushed(); });
        if (waited == FlushWait::learned) acquire_flushed(Flusher::program, others);
        if (waited == FlushWait::again) note_spin_by_flushes();
    });
    if (alone) standstill.end(standstill.context);
}

// Without anything of this node's: a flush of this thread has just told of that.
bool Node::learn_flushed() noexcept {
    if (!flushes_.is_something_new()) return false;
    const std::scoped_lock guard{flushes_};
    // Releases of other threads stay untold, and no thread releases meanwhile.
    const std::scoped_lock role{release_};
    const bool all_told = !flushes_.has_untold();
    learn_flushed(flushes_.take([this] { serve_wanted(); }), true);
    races_.know_what_was_flushed();
    flushes_.open();
    if (all_told) flushes_.note_all_told();
    return true;
}

// Learns what was flushed. With the flush object's lock. The node whose order the bytes have is
// known before they can be shown: another thread of this node may read them and write at once.
void Node::learn_flushed(const FlushObject::Content& flushed, bool orders) noexcept {
    if (!flushes_.is_new(flushed)) return;
    news_.epochs().remember_flushed(flushed.news);
    if (orders) races_.know_what_was_flushed();
    learn_notices(told_by_nobody, flushed.news);
    const std::scoped_lock joins{acquire_};
    acquire_.join(news_);
    flushes_.note_learned(flushed);
}

bool Node::flush_aside() noexcept {
    bool found = false;
    if (is_alone_) return found;
    if (!somebody_spins() && guess_.rhythm.comes_soon(release_.number(), now_ns())) return found;
    on_runtime_stack([&] { found = flush_on_runtime_stack(Flusher::background, Others::running); });
    guess_.rhythm.pass_over(release_.number());
    return found;
}

bool Node::flush_on_runtime_stack(Flusher flusher, Others others) noexcept {
    const bool found = flush_in_order(flusher, others);
    acquire_flushed(flusher, others);
    return found;
}

// Acquires what other nodes have flushed and a thread of this node has learned and joined. Their
// releases may wait for one of this node, so this thread holds nothing.
void Node::acquire_flushed(Flusher flusher, Others others) noexcept {
    if (!news_.learned().any() && !acquire_.is_unfinished() &&  // as in acquire()
        !news_.needs_open())
        return;
    acquire_on_runtime_stack(others, flusher);
    if (flusher == Flusher::background) guess_.spins.note_acquired_aside(now_ns());
}

// The merges happen inside the object's critical section, so that all flushes have one order.
bool Node::flush_in_order(Flusher flusher, Others others) noexcept {
    // A program that flushes orders its writes by flags: a flag that the background flusher has
    // told of, or learned of, a moment before the program's own flush orders them as well.
    const bool orders = flusher == Flusher::program || news_.program_flushes();
    const std::scoped_lock guard{flushes_};
    const std::scoped_lock role{release_};
    // The background flusher asks nobody: a node that only computes goes on when another has died.
    if (flusher == Flusher::program) ask_what_is_acquired();
    begin_release();
    gather_work(others);
    drop_unchanged_work(Look::first);
    const bool untold = has_untold_work();
    if (!untold && !flushes_.is_something_new()) {
        end_release();
        // After a flush of its own the program knows what the background flusher has learned.
        if (orders) races_.know_what_was_flushed();
        return false;
    }
    // The node that has it may wait for a block kept here, while this thread has the release's
    // role.
    const FlushObject::Content flushed = flushes_.take([this] { serve_wanted(); });
    merge_until_quiet(others);
    end_release();
    learn_flushed(flushed, orders);
    if (orders) races_.know_what_was_flushed();
    if (untold) {
        flushes_.open_with_news();
    } else {
        flushes_.open();
    }
    flushes_.note_all_told();
    return true;
}

// Behind a release of the program's, with nothing held. A thread elsewhere waits by flushes for
// what this node may just have written: its flushes see what was flushed, and no other release.
void Node::flush_for_spins(Others others) noexcept {
    if (!news_.program_flushes() || !somebody_spins() || flushes_.are_fences()) return;
    on_runtime_stack([&] { flush_on_runtime_stack(Flusher::program, others); });
}

bool Node::has_untold_work() noexcept {
    return !release_.work().empty() || release_.numbers().is_owed(release_.number()) ||
           flushes_.has_untold();
}

}  // namespace hiroba::dsm
