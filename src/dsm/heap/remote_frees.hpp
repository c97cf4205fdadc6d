// SPDX-License-Identifier: BSD-3-Clause
// Role: blocks on their way from the node that freed them to the node whose arena they are from.
// Invariant: an address leaves Outgoing only in a batch that was sealed before a release began;
// what lies in Arrived is an exact copy of messages, in the order they came. Nothing here knows
// heaps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/latch.hpp"
#include "base/sparse_array.hpp"

namespace hiroba::dsm {

/// Front of a remote_free message; `news_bytes` bytes of news (padded to 8) and `count` addresses
/// follow. The news go with the first message of a batch; the channel keeps the order.
struct RemoteFreeHeader {
    std::uint32_t news_bytes = 0;
    std::uint32_t count = 0;
};

/// Addresses freed here that belong elsewhere. add(): any thread; seal(): one thread at a time.
class OutgoingFrees {
public:
    bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }
    void add(std::uintptr_t address) noexcept;
    /// Takes out everything added so far; valid until the next seal().
    std::span<const std::uintptr_t> seal() noexcept;

private:
    Latch latch_;
    std::atomic<std::size_t> count_{0};  // written under latch_; read alone only as a hint
    SparseArray<std::uintptr_t> waiting_;
    SparseArray<std::uintptr_t> sealed_;
};

/// Messages that came and wait for a point of synchronization. add(), empty(): any thread; the
/// rest: one thread at a time.
class ArrivedFrees {
public:
    struct Batch {
        NodeId from;
        Bytes news;  ///< empty: they came with the message before
        std::span<const std::uintptr_t> addresses;
    };

    bool empty() const noexcept { return bytes_.load(std::memory_order_relaxed) == 0; }
    /// Copies a message; a body that is not one is fatal.
    void add(NodeId from, Bytes body) noexcept;
    /// Takes all messages out for next(); forgets those taken before. Spans live until then.
    void take() noexcept;
    /// Reads the taken messages from the start again.
    void rewind() noexcept { at_ = 0; }
    std::optional<Batch> next() noexcept;

private:
    Latch latch_;
    std::atomic<std::size_t> bytes_{0};  // written under latch_; read alone only as a hint
    SparseArray<std::byte> waiting_;
    SparseArray<std::byte> taken_;
    std::size_t taken_bytes_ = 0;
    std::size_t at_ = 0;
};

}  // namespace hiroba::dsm
