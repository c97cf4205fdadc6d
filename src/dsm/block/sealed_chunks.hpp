// SPDX-License-Identifier: BSD-3-Clause
// Role: where this node's program writes nothing yet: chunks of blocks that are sealed, so that no
// byte of them is written before each block has its twin (docs/decisions/twins-at-first-writes.md).
// Invariant: a chunk goes one way: fresh, then open, or sealing, sealed, opening, open. What is to
// be written makes a fresh chunk open first; a sealed one is opened with nothing held.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/latch.hpp"
#include "base/sparse_array.hpp"
#include "dsm/protocol/signature.hpp"

namespace hiroba::dsm {

/// Thread: any; async-signal-safe.
class SealedChunks {
public:
    SealedChunks(std::size_t blocks, std::uint32_t chunk_blocks)
        : chunk_blocks_(chunk_blocks), states_(blocks / chunk_blocks + 1) {}

    BlockId first_with(BlockId block) const noexcept { return block - block % chunk_blocks_; }
    std::uint32_t chunk_blocks() const noexcept { return chunk_blocks_; }

    /// Whether the block may be written. If so, its chunk is never sealed from now on.
    bool lets_writes(BlockId block) noexcept {
        std::atomic<State>& state = state_with(block);
        State now = state.load(std::memory_order_acquire);  // pairs with open()
        if (now == State::fresh) state.compare_exchange_strong(now, State::open);
        return now == State::fresh || now == State::open;
    }
    /// Whether blocks may come without a twin. With the block's latch: open() is behind it.
    bool is_sealed(BlockId block) const noexcept {
        return states_[block / chunk_blocks_].load(std::memory_order_acquire) == State::sealed;
    }
    bool is_fresh(BlockId block) const noexcept {
        return states_[block / chunk_blocks_].load(std::memory_order_relaxed) == State::fresh;
    }
    /// True for one thread, which then seals the chunk's pages.
    bool begin_seal(BlockId block) noexcept {
        State fresh = State::fresh;
        return state_with(block).compare_exchange_strong(fresh, State::sealing);
    }
    void end_seal(BlockId block, bool is_sealed) noexcept {
        state_with(block).store(is_sealed ? State::sealed : State::open, std::memory_order_release);
    }
    /// No block comes without a twin from now on. The caller then makes those that lack, lifts the
    /// seal, and calls open(); so may several threads.
    void begin_open(BlockId block) noexcept {
        std::atomic<State>& state = state_with(block);
        for (Backoff backoff; state.load(std::memory_order_acquire) == State::sealing;)
            backoff.pause();
        State sealed = State::sealed;
        state.compare_exchange_strong(sealed, State::opening);
    }
    void open(BlockId block) noexcept {
        state_with(block).store(State::open, std::memory_order_release);
    }
    std::uint8_t shown(BlockId block) const noexcept {
        return static_cast<std::uint8_t>(states_[block / chunk_blocks_].load());
    }

private:
    enum class State : std::uint8_t { fresh, sealing, sealed, opening, open };
    std::atomic<State>& state_with(BlockId block) noexcept {
        return states_[block / chunk_blocks_];
    }

    std::uint32_t chunk_blocks_;
    SparseArray<std::atomic<State>> states_;
};

}  // namespace hiroba::dsm
