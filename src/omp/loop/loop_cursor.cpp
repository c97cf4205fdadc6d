// SPDX-License-Identifier: BSD-3-Clause
// Role: carries out the schedules; the arithmetic is in iteration_space.hpp.
// Invariant: dynamic loops add to a counter of chunks, guided ones swap a counter of iterations
// that never passes the end: neither can wrap.
#include "omp/loop/loop_cursor.hpp"

#include "base/fatal.hpp"

namespace hiroba::omp {

bool LoopCursor::begin(const Loop& loop, std::uint32_t threads, std::uint32_t thread,
                       WordStore& words, std::uint64_t sequence,
                       const Cancellation* cancellation) noexcept {
    HIROBA_INVARIANT(loop.schedule != Schedule::runtime, "the schedule was not looked up");
    space_ = IterationSpace(loop);
    schedule_ = loop.schedule == Schedule::automatic ? Schedule::static_chunks : loop.schedule;
    chunk_ = loop.schedule == Schedule::automatic ? 0 : loop.chunk;
    if (schedule_ != Schedule::static_chunks && chunk_ == 0) chunk_ = 1;
    if (threads == 1) {  // The same chunks without a shared word; sections rely on their size.
        if (schedule_ == Schedule::guided) chunk_ = 0;
        schedule_ = Schedule::static_chunks;
    }
    chunk_number_ = thread;
    current_ = {};
    threads_ = threads;
    thread_ = thread;
    ordered_ = loop.ordered && threads > 1;
    shared_ = ordered_ || schedule_ != Schedule::static_chunks;
    has_turn_ = exhausted_ = block_taken_ = false;
    if (!shared_) return false;
    workshare_ = Workshare(words, sequence, cancellation);
    if (!workshare_.joined()) {  // The region is cancelled: nothing of the loop is left to do.
        exhausted_ = true;
        shared_ = ordered_ = false;
    }
    return true;
}

bool LoopCursor::next(std::uint64_t* first, std::uint64_t* end) noexcept {
    pass_turn();
    current_ = exhausted_ ? IndexRange{} : take();
    exhausted_ = current_.empty();
    if (exhausted_) return false;
    *first = space_.value(current_.first);
    *end = space_.value(current_.end);
    return true;
}

void LoopCursor::finish() noexcept {
    pass_turn();
    current_ = {};
    exhausted_ = true;
    if (shared_) workshare_.leave(threads_);
    shared_ = false;
}

void LoopCursor::await_turn() noexcept {
    if (!ordered_ || has_turn_) return;
    workshare_.await_turn(current_.first);
    has_turn_ = true;
}

// A chunk without an ordered region still waits for its turn: the next chunk's turn means that all
// earlier ones are done.
void LoopCursor::pass_turn() noexcept {
    if (!ordered_ || current_.empty()) return;
    await_turn();
    has_turn_ = false;
    workshare_.give_turn(current_.end);
}

IndexRange LoopCursor::take() noexcept {
    switch (schedule_) {
        case Schedule::dynamic:
            return chunk_at(space_.count(), chunk_, workshare_.fetch_add_next(1));
        case Schedule::guided: return take_guided();
        default: return take_static();
    }
}

IndexRange LoopCursor::take_static() noexcept {
    if (chunk_ == 0) {
        if (block_taken_) return {};
        block_taken_ = true;
        return static_block(space_.count(), threads_, thread_);
    }
    const std::uint64_t number = chunk_number_;
    const IndexRange range = chunk_at(space_.count(), chunk_, number);
    // Near 2^64 chunks the next number would wrap and start over.
    chunk_number_ = number + threads_ < number ? UINT64_MAX : number + threads_;
    return range;
}

IndexRange LoopCursor::take_guided() noexcept {
    const std::uint64_t count = space_.count();
    std::uint64_t first = workshare_.next();
    while (first < count) {
        const std::uint64_t end = first + guided_share(count - first, threads_, chunk_);
        const std::uint64_t seen = workshare_.compare_swap_next(first, end);
        if (seen == first) return {first, end};
        first = seen;
    }
    return {};
}

}  // namespace hiroba::omp
