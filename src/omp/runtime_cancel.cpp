// SPDX-License-Identifier: BSD-3-Clause
// Role: cancellation of regions, worksharing constructs and taskgroups (OpenMP 5.2, section 11.2).
// Invariant: a cancelled region is left by way of its end, where all its threads meet: so what it
// leaves in shared words can be cleared there. A thread of a cancelled region never waits for
// something only another thread of its team does.
#include "base/thread_context.hpp"
#include "omp/runtime_core.hpp"

namespace hiroba::omp {

bool RuntimeCore::cancel(Cancel what) noexcept {
    if (!environment_.cancellation) return false;
    Frame& frame = *self().frame;
    switch (what) {
        case Cancel::parallel: cancel_team(frame); break;
        case Cancel::taskgroup: cancel_group(frame); break;
        default: cancel_work(frame);
    }
    return true;
}

bool RuntimeCore::cancellation_point(Cancel what) noexcept {
    if (!environment_.cancellation) return false;
    const Frame& frame = *self().frame;
    switch (what) {
        case Cancel::parallel: return is_cancelled(frame);
        case Cancel::taskgroup: return is_group_cancelled(frame) || is_cancelled(frame);
        default:
            return frame.team != nullptr ? frame.team->cancellation.work(frame.phase)
                                         : frame.cancelled_work == frame.phase + 1;
    }
}

bool RuntimeCore::barrier_cancel() noexcept {
    barrier();
    return is_cancelled(*self().frame);
}

bool RuntimeCore::loop_end_cancel() noexcept {
    loop_end(false);
    return barrier_cancel();
}

// --- marking -------------------------------------------------------------------------------------

void RuntimeCore::cancel_team(Frame& frame) noexcept {
    Team* const team = frame.team;
    if (team == nullptr) {
        frame.cancelled = frame.place.level > 0;
        return;
    }
    const std::uint64_t number = team->cancellation.number();
    team->cancellation.cancel_region(number);
    tasks_.ring();  // Threads of this node that wait at a barrier.
    if (is_spread(frame)) link_->tell_cancelled({number, 0, true});
}

void RuntimeCore::cancel_work(Frame& frame) noexcept {
    Team* const team = frame.team;
    if (team == nullptr) {
        if (frame.place.level > 0) frame.cancelled_work = frame.phase + 1;
        return;
    }
    const std::uint64_t number = team->cancellation.number();
    team->cancellation.cancel_work(number, frame.phase);
    if (is_spread(frame)) link_->tell_cancelled({number, frame.phase, false});
}

void RuntimeCore::cancel_group(Frame& frame) noexcept {
    // A task without a descriptor is in the group of its parent; so is one that has made none.
    Task* const task = frame.task;
    if (task == nullptr) return;
    TaskBook::Cancelled cancelled;
    tasks_.with_books([&](TaskBook& book) {
        book.cancel_group(*task);
        std::swap(cancelled, book.cancelled());
    });
    if (!cancelled.empty()) tasks_.exchange()->tell_cancelled(cancelled);
}

// --- asking --------------------------------------------------------------------------------------

bool RuntimeCore::is_group_cancelled(const Frame& frame) noexcept {
    const Task* const task = frame.task;
    return task != nullptr &&
           tasks_.with_books([task](TaskBook&) { return TaskBook::is_cancelled(*task); });
}

/// Whether a task that has not begun is left out.
bool RuntimeCore::is_discarded(const Frame& frame, const Task& task) noexcept {
    if (!environment_.cancellation || task.runs_anyway) return false;
    return is_cancelled(frame) ||
           tasks_.with_books([&task](TaskBook&) { return TaskBook::is_cancelled(task); });
}

// --- cleaning up ---------------------------------------------------------------------------------

/// Behind the end of the region, on the node that has the team's words: threads have left
/// constructs out, each others.
void RuntimeCore::clean_after_cancellation(Team& team) noexcept {
    if (!team.cancellation.region()) return;
    const bool had_doacross = team.words->load(Workshare::doacross_begun) != 0;
    for (std::size_t word = 0; word < store_words; ++word) team.words->store(word, 0);
    for (std::size_t word = 0; had_doacross && word < Doacross::words; ++word)
        team.progress->store(word, 0);
    team.sequence = 0;
}

}  // namespace hiroba::omp
