// SPDX-License-Identifier: BSD-3-Clause
// Role: where locks of the program lie, and how a thread finds them.
// Invariant: the node that a key hashes to has a slot for it, which names the last cell of the
// lock's queue of nodes. Each node that has ever used the lock has one cell for it, for good: it
// stands for the node in that queue. A key, once bound to a slot or cell, stays bound. A key that
// finds all slots of its window bound to others has none, now and later, on every node. Layout of
// the segment on every node: slots, cells, news of each cell.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/sparse_array.hpp"
#include "dsm/dsm.hpp"
#include "dsm/sync/lock_keeping.hpp"
#include "gas/gas.hpp"
#include "net/net.hpp"

namespace hiroba::dsm {

/// What a lock is on one node.
enum class LockState : std::uint64_t {
    away,       ///< on another node, or nowhere yet
    joining,    ///< a thread of this node is about to queue up
    fetching,   ///< this node is in the queue
    held,       ///< by a thread of this node
    open,       ///< kept here, held by no thread; this node owes the release
    published,  ///< as `open`, but the news lie ready: any node that comes may take it
    leaving,    ///< on its way to another node
    promised    ///< as `open`, but the node named above it has it once the release is paid
};
/// `promised` to a node: a value of its own for each.
constexpr LockState promised_to(NodeId node) noexcept {
    constexpr unsigned state_bits = 8;
    return static_cast<LockState>((std::uint64_t{node.value} + 1) << state_bits |
                                  static_cast<std::uint64_t>(LockState::promised));
}
constexpr bool is_promised(LockState state) noexcept {
    constexpr std::uint64_t state_mask = 0xff;
    return (static_cast<std::uint64_t>(state) & state_mask) ==
           static_cast<std::uint64_t>(LockState::promised);
}

/// A node's place in the queue of a lock; 0 is none.
struct LockCell {
    std::uint64_t raw = 0;
    static LockCell make(NodeId node, std::uint32_t index) noexcept {
        return {std::uint64_t{node.value} << 32 | (index + 1u)};
    }
    NodeId node() const noexcept { return NodeId{static_cast<std::uint32_t>(raw >> 32)}; }
    std::uint32_t index() const noexcept { return static_cast<std::uint32_t>(raw) - 1; }
    explicit operator bool() const noexcept { return raw != 0; }
};

class LockCells {
public:
    static std::size_t segment_bytes(const SharedMemory& memory, std::uint32_t nodes);
    LockCells(const net::Endpoint& endpoint, const SharedMemory& memory, gas::Segment segment);
    void attach();

    /// What only this node's threads look at. All zero at first.
    struct alignas(cache_line_bytes) Own {
        std::atomic<std::uint64_t> key{0};      ///< plus one; 0: free
        std::atomic<std::uint32_t> waiters{0};  ///< threads here that may sleep for it
        std::atomic<bool> presses{false};       ///< a thread asks the node before to hurry
        std::atomic<bool> debt{false};          ///< the payer has been told of it
        std::atomic<std::uint64_t> before{0};   ///< the cell in front in the queue, raw; 0: none
        std::atomic<std::uint64_t> slot{0};     ///< of the key, plus one; 0: not looked up yet
        LockKeeping keeping;
    };
    /// What other nodes look at, too. All zero at first.
    struct alignas(cache_line_bytes) Shared {
        std::atomic<std::uint64_t> state;       ///< LockState
        std::atomic<std::uint64_t> next;        ///< the cell behind in the queue, raw; 0: none
        std::atomic<std::uint64_t> urgent;      ///< it has waited long
        std::atomic<std::uint64_t> granted;     ///< bytes of news that came with the lock, plus one
        std::atomic<std::uint64_t> news_bytes;  ///< published
    };
    /// Where they find it.
    enum Word : std::size_t {
        state_word = offsetof(Shared, state),
        next_word = offsetof(Shared, next),
        urgent_word = offsetof(Shared, urgent),
        granted_word = offsetof(Shared, granted),
        news_bytes_word = offsetof(Shared, news_bytes)
    };

    /// This node's cell for a key, by its index. False: there are too many locks, and the key has
    /// none on any node.
    bool bind(std::uint64_t key, std::uint32_t* index) noexcept;
    /// As bind(), but false if the key was never used here.
    bool find(std::uint64_t key, std::uint32_t* index) noexcept;
    Own& own(std::uint32_t index) noexcept { return own_[index]; }
    Shared& shared(std::uint32_t index) noexcept { return shared_[index]; }
    LockCell here(std::uint32_t index) const noexcept { return LockCell::make(self_, index); }
    /// The cell's news: of this node.
    MutableBytes news(std::uint32_t index) noexcept {
        return {segment_.local() + news_at_ + index * news_stride_, news_stride_};
    }

    // What lies on any node.
    gas::Segment& segment() noexcept { return segment_; }
    /// The word that names the last cell of the queue.
    gas::GlobalAddress tail_of(std::uint32_t index) noexcept;
    gas::GlobalAddress at(LockCell cell, Word word) const noexcept;
    gas::GlobalAddress news_of(LockCell cell) const noexcept {
        return {cell.node(), news_at_ + cell.index() * news_stride_};
    }

private:
    /// Node and index; ~0: there is none.
    std::uint64_t find_slot(std::uint64_t key) noexcept;

    NodeId self_;
    std::uint32_t nodes_, slots_;  ///< slots of each node, without the last ones' windows
    gas::Segment segment_;
    std::size_t cells_at_, news_stride_, news_at_;
    SparseArray<Own> own_;
    SparseArray<std::atomic<std::uint64_t>> bound_;  ///< keys of slots as far as seen, plus one
    Shared* shared_ = nullptr;
};

}  // namespace hiroba::dsm
