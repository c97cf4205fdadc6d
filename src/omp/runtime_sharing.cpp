// SPDX-License-Identifier: BSD-3-Clause
// Role: worksharing: loops (and sections, which are loops), ordered, single.
// Invariant: all threads of a team count the same constructs; a static loop without `ordered`
// needs no shared word and is not counted.
#include "base/thread_context.hpp"
#include "omp/runtime_core.hpp"

namespace hiroba::omp {

void RuntimeCore::loop_start(const Loop& loop) noexcept {
    Frame& frame = *self().frame;
    Loop resolved = loop;
    if (loop.schedule == Schedule::runtime) {
        resolved.schedule = frame.icvs.schedule;
        resolved.chunk = frame.icvs.chunk;
    }
    if (frame.loop.begin(resolved, frame.place.team_size, frame.place.thread, *words_,
                         frame.sequence))
        ++frame.sequence;
}

bool RuntimeCore::loop_next(std::uint64_t* first, std::uint64_t* end) noexcept {
    return self().frame->loop.next(first, end);
}

void RuntimeCore::loop_end(bool wait) noexcept {
    self().frame->loop.finish();
    if (wait) barrier();
}

// The turn orders the threads; the lock makes memory travel from one to the next.
void RuntimeCore::ordered_start() noexcept {
    Frame& frame = *self().frame;
    if (frame.place.team_size == 1) return;
    frame.loop.await_turn();
    if (link_ != nullptr) lock(ordered_key);
}

void RuntimeCore::ordered_end() noexcept {
    if (link_ != nullptr && self().frame->place.team_size > 1) unlock(ordered_key);
}

bool RuntimeCore::single_start() noexcept {
    Frame& frame = *self().frame;
    if (frame.place.team_size == 1) return true;
    return Workshare(*words_, frame.sequence++).first_and_leave(frame.place.team_size);
}

void* RuntimeCore::single_copy_start() noexcept {
    Frame& frame = *self().frame;
    if (frame.place.team_size == 1) return nullptr;
    Workshare workshare(*words_, frame.sequence++);
    if (workshare.fetch_add_next(1) == 0) {
        frame.single_copy = workshare;
        return nullptr;
    }
    barrier();
    void* const data = workshare.published();
    workshare.leave(frame.place.team_size);
    return data;
}

void RuntimeCore::single_copy_end(void* data) noexcept {
    Frame& frame = *self().frame;
    if (frame.place.team_size == 1) return;
    frame.single_copy.publish(data);
    barrier();
    frame.single_copy.leave(frame.place.team_size);
}

}  // namespace hiroba::omp
