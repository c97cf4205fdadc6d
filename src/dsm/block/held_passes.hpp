// SPDX-License-Identifier: BSD-3-Clause
// Role: the blocks that are held and open to atomics without a call: these note no release, so each
// release closes them first.
// Invariant: a block that is open and held is on the list; who opens one looks behind that whether
// a release has begun.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "base/latch.hpp"
#include "dsm/protocol/signature.hpp"

namespace hiroba::dsm {

/// Thread: any; async-signal-safe.
class HeldPasses {
public:
    static constexpr std::size_t most = 2048;

    bool any() const noexcept { return count_.load(std::memory_order_seq_cst) != 0; }
    /// False: there is no room, or another thread is at the list.
    bool put(BlockId block) noexcept {
        if (!latch_.try_lock()) return false;
        const std::size_t count = count_.load(std::memory_order_relaxed);
        const bool has_room = count < most;
        if (has_room) {
            blocks_[count] = block;
            // Sequentially consistent: pairs with any(), behind the release's number.
            count_.store(count + 1, std::memory_order_seq_cst);
        }
        latch_.unlock();
        return has_room;
    }
    /// Calls close(block) with each, and forgets all.
    template <class Close>
    void take(Close&& close) noexcept {
        latch_.lock();
        const std::size_t count = count_.load(std::memory_order_relaxed);
        const std::array<BlockId, most> blocks = blocks_;
        count_.store(0, std::memory_order_relaxed);
        latch_.unlock();
        for (std::size_t i = 0; i < count; ++i) close(blocks[i]);
    }

private:
    Latch latch_;
    std::atomic<std::size_t> count_{0};
    std::array<BlockId, most> blocks_{};
};

}  // namespace hiroba::dsm
