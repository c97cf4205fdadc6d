// SPDX-License-Identifier: BSD-3-Clause
// Role: worksharing: loops (and sections, which are loops), doacross, ordered, single, and what the
// threads of a construct share.
// Invariant: all threads of a team count the same constructs; a static loop without `ordered`
// needs no shared word and is not counted.
#include <cstring>
#include <utility>

#include "base/atomic_window.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"
#include "base/record.hpp"
#include "base/thread_context.hpp"
#include "dsm/dsm.hpp"
#include "omp/runtime_core.hpp"
#include "omp/task/reductions.hpp"

namespace hiroba::omp {

void RuntimeCore::loop_start(const Loop& loop) noexcept {
    Frame& frame = *self().frame;
    Loop resolved = loop;
    if (loop.schedule == Schedule::runtime) {
        resolved.schedule = frame.icvs.schedule;
        resolved.chunk = frame.icvs.chunk;
    }
    record(RecordKind::loop, static_cast<std::uint64_t>(resolved.schedule), resolved.chunk);
    Team* const team = frame.team;
    WordStore& words = team != nullptr ? *team->words : *everywhere_.words;
    if (frame.loop.begin(resolved, frame.place.team_size, frame.place.thread, words, frame.sequence,
                         cancellation_of(frame), node_share(frame))) {
        if (loop.sections && crosses_nodes(frame)) frame.sections = frame.sequence + 1;
        ++frame.sequence;
    }
}

/// How the threads of this node take the chunks of the frame's next construct.
NodeShare RuntimeCore::node_share(const Frame& frame) noexcept {
    const std::uint32_t team_size = frame.place.team_size;
    if (!is_spread(frame) || nodes_of(team_size) == 1) return {};
    return {&(*everywhere_.pools)[frame.sequence % Workshare::slots],
            {link_->region(), frame.sequence},
            local_members(team_size),
            nodes_of(team_size)};
}

bool RuntimeCore::loop_next(std::uint64_t* first, std::uint64_t* end) noexcept {
    Frame& frame = *self().frame;
    if (frame.sections == 0) [[likely]]
        return frame.loop.next(first, end);
    // Each section as a single is.
    const std::uint64_t sequence = frame.sections - 1;
    SingleTurn& turn = frame.team->singles[sequence % Workshare::slots];
    turn.ask();
    const bool found = frame.loop.next(first, end);
    found ? turn.won(sequence) : turn.goes_without();
    return found;
}

bool RuntimeCore::loop_next_closed(LoopChunk* chunk) noexcept {
    std::uint64_t end = 0;
    if (!loop_next(&chunk->first, &end)) return false;
    const LoopCursor& loop = self().frame->loop;
    chunk->step = loop.step();
    chunk->last = end - chunk->step;
    chunk->ends_loop = loop.is_at_end();
    return true;
}

void RuntimeCore::loop_end(bool wait) noexcept {
    Frame& frame = *self().frame;
    const std::uint32_t team_size = frame.place.team_size;
    frame.loop.finish();
    if (frame.doacross.used()) frame.doacross.finish();
    if (frame.loop_memory != nullptr) {
        if (team_size == 1 || !frame.loop_memory_share.joined() ||
            frame.loop_memory_share.leave(team_size))
            tasks_.free_argument(frame.loop_memory);
        frame.loop_memory = nullptr;
    }
    const std::uint64_t sections = std::exchange(frame.sections, 0);
    if (wait)
        barrier();
    else if (sections != 0)
        note_lost(self(), sections - 1);
}

Workshare RuntimeCore::join_construct(Frame& frame) noexcept {
    return {*frame.team->words, frame.sequence++, cancellation_of(frame)};
}

// --- what the threads of a construct share -------------------------------------------------------

template <class Make>
void* RuntimeCore::make_for_all(Frame& frame, Workshare& share, Make&& make) noexcept {
    if (frame.place.team_size == 1) return make();
    share = join_construct(frame);
    if (!share.joined()) return make();  // No thread shares it with this one.
    const bool travels = is_spread(frame);
    if (share.fetch_add_next(1) == 0) {
        if (travels) lock(share_key);
        void* const made = make();
        share.publish(made);
        if (travels) unlock(share_key);
        return made;
    }
    void* const made = share.await_published();
    // The thread that made it releases when it opens the lock.
    if (travels) {
        lock(share_key);
        unlock(share_key);
    }
    return made;
}

void* RuntimeCore::loop_memory(std::size_t bytes) noexcept {
    Frame& frame = *self().frame;
    frame.loop_memory = make_for_all(frame, frame.loop_memory_share, [&] {
        void* const memory = tasks_.allocate_argument(bytes, cache_line_bytes);
        return std::memset(memory, 0, bytes);
    });
    return frame.loop_memory;
}

void RuntimeCore::start_shared_reductions(std::uintptr_t* data) noexcept {
    taskgroup_start();
    Frame& frame = *self().frame;
    const std::uint32_t threads = frame.place.team_size;
    Task& task = current_task(frame);
    std::uintptr_t* const outer = task.group->reductions;
    Workshare share;
    void* const made = make_for_all(frame, share, [&] {
        reductions::allocate(data, outer, threads,
                             [this](std::size_t bytes, std::size_t alignment) {
                                 return tasks_.allocate_argument(bytes, alignment);
                             });
        return static_cast<void*>(data);
    });
    if (made != data) reductions::share(data, outer, static_cast<std::uintptr_t*>(made));
    if (threads > 1 && share.joined()) share.leave(threads);
    tasks_.with_books([&](TaskBook&) {
        task.group->reductions = data;
        task.group->implied = true;
    });
}

void RuntimeCore::end_shared_reductions(bool cancelled) noexcept {
    std::uintptr_t* const data = task_reductions();
    taskgroup_end();
    const bool frees = self().frame->place.thread == 0;
    if (!cancelled) barrier();
    if (frees) unregister_reductions(data);
}

// --- doacross ------------------------------------------------------------------------------------

void RuntimeCore::doacross_start(std::span<const std::uint64_t> counts, Schedule schedule,
                                 std::uint64_t chunk) noexcept {
    Frame& frame = *self().frame;
    if (schedule == Schedule::runtime) {
        schedule = frame.icvs.schedule;
        chunk = frame.icvs.chunk;
    }
    const bool blocks = schedule == Schedule::static_chunks || schedule == Schedule::automatic;
    if (!blocks && chunk == 0) chunk = 1;
    Loop loop;
    loop.end = counts[0];
    loop.is_unsigned = true;
    loop.chunk = schedule == Schedule::automatic ? 0 : chunk;
    loop_start(loop);
    bool empty = false;
    for (const std::uint64_t count : counts) empty |= count == 0;
    Team* const team = frame.team;
    if (team == nullptr || empty) return;
    if (environment_.cancellation) team->words->store(Workshare::doacross_begun, 1);
    if (!frame.doacross.begin(counts, loop.chunk, frame.place.team_size, frame.place.thread,
                              *team->words, *team->progress, frame.sequence++,
                              cancellation_of(frame)))
        die(exit_environment,
            "a doacross loop nest of depth %lu in a team of %u threads has too many iterations to "
            "number in 64 bits, more than %lu loops or more than %lu threads",
            static_cast<unsigned long>(counts.size()), frame.place.team_size,
            static_cast<unsigned long>(Doacross::dimensions_max),
            static_cast<unsigned long>(Doacross::threads_max));
}

// Flushes are totally ordered: a thread that sees that an iteration is done flushes after the
// thread that did it.
void RuntimeCore::doacross_post(const std::uint64_t* at) noexcept {
    Frame& frame = *self().frame;
    if (!frame.doacross.used()) return;
    if (is_spread(frame)) parts_.memory->flush();
    frame.doacross.post(at);
}

void RuntimeCore::doacross_wait(const std::uint64_t* at) noexcept {
    Frame& frame = *self().frame;
    if (!frame.doacross.used()) return;
    frame.doacross.wait(at);
    if (is_spread(frame)) parts_.memory->flush();
}

// --- ordered and single --------------------------------------------------------------------------

// The turn orders the threads; the lock makes memory travel from one to the next.
void RuntimeCore::ordered_start() noexcept {
    Frame& frame = *self().frame;
    if (frame.place.team_size == 1) return;
    frame.loop.await_turn();
    if (is_spread(frame)) lock(ordered_key);
}

void RuntimeCore::ordered_end() noexcept {
    if (is_spread(*self().frame)) unlock(ordered_key);
}

bool RuntimeCore::single_start() noexcept {
    Frame& frame = *self().frame;
    if (frame.place.team_size == 1) return true;
    SingleTurn& turn = frame.team->singles[frame.sequence % Workshare::slots];
    const std::uint64_t sequence = frame.sequence;
    Workshare workshare = join_construct(frame);
    if (!workshare.joined()) return false;
    turn.ask();  // before its answer, which orders it
    if (workshare.first_and_leave(frame.place.team_size)) {
        turn.won(sequence);
        return true;
    }
    turn.lost();
    if (crosses_nodes(frame) && !turn.is_own_since(sequence)) note_lost(self(), sequence);
    return false;
}

void RuntimeCore::note_lost(ThreadState& thread, std::uint64_t sequence) noexcept {
    thread.lost_singles.add(sequence);
    thread_part().lacks_stores = true;
    note_next_atomic();
}

void RuntimeCore::forget_lost(ThreadState& thread) noexcept {
    thread.lost_singles = {};
    thread_part().lacks_stores = false;
}

void RuntimeCore::acquire_lost(ThreadState& thread) noexcept {
    const LostSingles lost = thread.lost_singles;
    forget_lost(thread);
    if (lost.any()) tasks_.exchange()->acquire_singles(lost);
}

void acquire_lost_singles() noexcept {
    ThreadState& thread = *thread_part().state;
    const RuntimeScope here;
    // The thread's own stores in a single that it got are made.
    end_going_first(this_thread());
    static_cast<RuntimeCore*>(const_cast<void*>(thread.runtime))->acquire_lost(thread);
}

void* RuntimeCore::single_copy_start() noexcept {
    Frame& frame = *self().frame;
    if (frame.place.team_size == 1) return nullptr;
    frame.single_copy = join_construct(frame);
    Workshare& workshare = frame.single_copy;
    // Behind a cancelled construct no thread has anything to copy: each does it by itself.
    if (!workshare.joined() || workshare.fetch_add_next(1) == 0) return nullptr;
    barrier();
    void* const data = workshare.await_published();
    workshare.leave(frame.place.team_size);
    return data;
}

void RuntimeCore::single_copy_end(void* data) noexcept {
    Frame& frame = *self().frame;
    if (frame.place.team_size == 1 || !frame.single_copy.joined()) return;
    frame.single_copy.publish(data);
    barrier();
    frame.single_copy.leave(frame.place.team_size);
}

void* RuntimeCore::pass_on(void* data, bool gives) noexcept {
    Frame& frame = *self().frame;
    if (frame.place.team_size == 1) return data;
    Workshare workshare = join_construct(frame);
    // Behind a cancelled construct no thread has anything to copy.
    if (!workshare.joined()) return data;
    if (gives) workshare.publish(data);
    barrier();
    void* const given = workshare.published();
    workshare.leave(frame.place.team_size);
    return given != nullptr ? given : data;
}

}  // namespace hiroba::omp
