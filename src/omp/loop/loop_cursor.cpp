// SPDX-License-Identifier: BSD-3-Clause
// Role: carries out the schedules; the arithmetic is in iteration_space.hpp.
// Invariant: dynamic and guided loops add to a counter of chunks, and only as long as it has not
// passed the last one: it cannot wrap.
#include "omp/loop/loop_cursor.hpp"

#include "base/fatal.hpp"

namespace hiroba::omp {

bool LoopCursor::begin(const Loop& loop, std::uint32_t threads, std::uint32_t thread,
                       WordStore& words, std::uint64_t sequence, const Cancellation* cancellation,
                       const NodeShare& node) noexcept {
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
    const bool is_guided = schedule_ == Schedule::guided;
    if (is_guided) guided_ = GuidedChunks{space_.count(), threads, chunk_};
    // The turns of an ordered loop would make nodes wait for all that another has in store.
    const bool stores =
        !ordered_ && (is_guided || chunk_count(space_.count(), chunk_) < ChunkPool::numbers_end);
    node_ = stores ? node : NodeShare{};
    join(words, sequence, cancellation);
    return true;
}

void LoopCursor::join(WordStore& words, std::uint64_t sequence,
                      const Cancellation* cancellation) noexcept {
    if (node_.pool != nullptr && node_.pool->serves(node_.key)) {
        workshare_ = Workshare::seen(words, sequence, cancellation);
        return;
    }
    workshare_ = Workshare(words, sequence, cancellation);
    if (!workshare_.joined()) {  // The region is cancelled: nothing of the loop is left to do.
        exhausted_ = true;
        shared_ = ordered_ = false;
    } else if (node_.pool != nullptr) {
        node_.pool->begin(node_.key, node_.threads);
    }
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
    if (shared_) leave();
    shared_ = false;
}

// The last thread of a node leaves for all of them.
void LoopCursor::leave() noexcept {
    std::uint32_t leavers = 1;
    if (node_.pool != nullptr) {
        if (!node_.pool->is_last_to_leave(node_.threads)) return;
        leavers = node_.threads;
    }
    if (!workshare_.is_last_to_leave(threads_, leavers)) return;
    if (ordered_)
        workshare_.clear();
    else
        workshare_.clear_counts();
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
        case Schedule::dynamic: return take_dynamic();
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

/// Takes the number of the next chunk; behind the last one any number that is `end` or more.
std::uint64_t LoopCursor::take_number(std::uint64_t end) noexcept {
    if (node_.pool == nullptr) return workshare_.fetch_add_next(1);
    const std::uint64_t shares = std::uint64_t{2} * node_.nodes;
    const auto most = [&](std::uint64_t taken_until) {
        // A guided chunk is a share of what is left already.
        if (schedule_ == Schedule::guided) return threads_ / shares;
        return (end - std::min(end, taken_until)) / shares;
    };
    return node_.pool->take(
        end, most, [this](std::uint32_t amount) { return workshare_.fetch_add_next(amount); });
}

IndexRange LoopCursor::take_dynamic() noexcept {
    return chunk_at(space_.count(), chunk_, take_number(chunk_count(space_.count(), chunk_)));
}

IndexRange LoopCursor::take_guided() noexcept {
    const IndexRange range = guided_.at(take_number(ChunkPool::numbers_end));
    if (range.empty() && node_.pool != nullptr) node_.pool->exhaust();
    return range;
}

}  // namespace hiroba::omp
