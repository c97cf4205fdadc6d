// SPDX-License-Identifier: BSD-3-Clause
// Role: messages of one peer that came before this node was ready for them.
// Invariant: the protocol of regions lets a peer be at most one phase ahead, so few places are
// enough; a full queue is a bug. Written by the polling thread, read by the node's leader.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace hiroba::net::kick {

/// One writer, one reader at a time. Its memory is reserved, and used only as far as needed.
class PeerQueue {
public:
    static constexpr std::size_t places = 4;
    static constexpr std::size_t body_bytes_max = std::size_t{64} << 10;

    PeerQueue() = default;
    PeerQueue(const PeerQueue&) = delete;
    PeerQueue& operator=(const PeerQueue&) = delete;
    ~PeerQueue();
    Result<void> reserve();

    /// Copies `body`. Fatal when it is too long or the queue is full.
    void push(Bytes body) noexcept;
    bool empty() const noexcept {
        return head_.load(std::memory_order_relaxed) == tail_.load(std::memory_order_acquire);
    }
    /// The oldest message, valid until pop(). Not when empty.
    Bytes front() const noexcept;
    void pop() noexcept;

private:
    std::byte* place(std::uint32_t index) const noexcept {
        return memory_ + index % places * body_bytes_max;
    }
    std::byte* memory_ = nullptr;
    std::uint32_t lengths_[places] = {};
    std::atomic<std::uint32_t> head_{0};  ///< next to read
    std::atomic<std::uint32_t> tail_{0};  ///< next to write
};

}  // namespace hiroba::net::kick
