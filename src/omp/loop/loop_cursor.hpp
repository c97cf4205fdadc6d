// SPDX-License-Identifier: BSD-3-Clause
// Role: one thread's way through one worksharing loop.
// Invariant: over all threads of a team every iteration is handed out exactly once, whatever the
// schedule; with `ordered`, chunks pass the turn in the order of their iterations, and a thread
// gives the turn on only after it had it.
#pragma once

#include <cstdint>

#include "omp/loop/chunk_pool.hpp"
#include "omp/loop/iteration_space.hpp"
#include "omp/loop/workshare.hpp"

namespace hiroba::omp {

/// The part of a loop that the threads of one node of several share; without a pool they share
/// nothing.
struct NodeShare {
    ChunkPool* pool = nullptr;  ///< of the construct's slot
    ChunkPool::Key key;
    std::uint32_t threads = 1;  ///< of the team, on this node
    std::uint32_t nodes = 1;    ///< with threads of the team
};

/// Owned by one thread. begin(), next() until it returns false, finish(); none may be left out.
class LoopCursor {
public:
    /// @param loop  its schedule is not Schedule::runtime
    /// @return whether the loop uses construct number `sequence` (static ones need no shared word)
    bool begin(const Loop& loop, std::uint32_t threads, std::uint32_t thread, WordStore& words,
               std::uint64_t sequence, const Cancellation* cancellation = nullptr,
               const NodeShare& node = {}) noexcept;
    /// Takes the next chunk as values of the loop variable, [*first, *end). False: none left.
    bool next(std::uint64_t* first, std::uint64_t* end) noexcept;
    void finish() noexcept;
    std::uint64_t step() const noexcept { return space_.step(); }
    /// The chunk taken last holds the loop's last iteration.
    bool is_at_end() const noexcept { return current_.end == space_.count(); }

    /// Waits until all earlier chunks are done.
    void await_turn() noexcept;

private:
    void join(WordStore& words, std::uint64_t sequence, const Cancellation* cancellation) noexcept;
    IndexRange take() noexcept;
    IndexRange take_dynamic() noexcept;
    std::uint64_t take_number(std::uint64_t end) noexcept;
    void leave() noexcept;
    IndexRange take_static() noexcept;
    IndexRange take_guided() noexcept;
    void pass_turn() noexcept;

    IterationSpace space_;
    GuidedChunks guided_;
    Workshare workshare_;
    NodeShare node_;
    std::uint64_t chunk_ = 0;  ///< 0: one block per thread
    std::uint64_t chunk_number_ = 0;
    IndexRange current_;
    std::uint32_t threads_ = 1, thread_ = 0;
    Schedule schedule_ = Schedule::static_chunks;
    bool ordered_ = false, shared_ = false, has_turn_ = false;
    bool block_taken_ = false, exhausted_ = true;
};

}  // namespace hiroba::omp
