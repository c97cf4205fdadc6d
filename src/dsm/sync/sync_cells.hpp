// SPDX-License-Identifier: BSD-3-Clause
// Role: what all synchronization objects of the program are made of: cells that hold an object's
// state, a list of the threads that wait for it, and the news that travel with it.
// Invariant: an object is known by its address. The address hashes to a bucket at some node, and
// a thread that reads or changes anything of the bucket's objects holds the bucket, for a short
// time (Visit). A cell that says nothing a fresh object would not say may be taken for another
// address; the news belong to the bucket, so they outlive it: more news than needed are always
// right.
//
// Every waiter waits on a word of its own node and is in at most one list. The thread that takes it
// out of the list decides how its wait ended, under the bucket: there is no moment at which a
// wake-up and the end of patience both or neither happen.
//
// Memory: publish() puts this node's news into the bucket, catch_up() takes them. `seen` says up to
// which version this node has, so an object that stays on one node costs no acquire. A node may
// also leave the bucket *unreleased*: it owes the release, and the next node to catch up asks for
// it. So a lock used on one node only costs no release either. The debt is paid by a thread that
// does nothing else, because handlers may not release and the program's threads may compute for
// long.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/latch.hpp"
#include "base/sparse_array.hpp"
#include "dsm/dsm.hpp"
#include "dsm/sync/deadline.hpp"
#include "dsm/sync/debt_payer.hpp"
#include "dsm/sync/interruptions.hpp"
#include "gas/gas.hpp"
#include "net/net.hpp"

namespace hiroba::dsm {

/// Names an object: an address of the program.
using SyncKey = std::uint64_t;
/// Names a thread of the job; 0 is none.
using SyncThread = std::uint64_t;

/// What a cell is at present. A fresh object of a kind has state, amount and list all zero.
enum class CellKind : std::uint64_t {
    none,
    mutex,
    rwlock,
    condition,
    barrier,
    semaphore,
    once,
    futex
};

/// The place in which one thread waits; 0 is none.
struct SyncWaiter {
    std::uint64_t raw = 0;
    static SyncWaiter make(NodeId node, std::uint32_t index) {
        return {std::uint64_t{node.value} << 32 | (index + 1u)};
    }
    NodeId node() const { return NodeId{static_cast<std::uint32_t>(raw >> 32)}; }
    std::uint32_t index() const { return static_cast<std::uint32_t>(raw) - 1; }
    explicit operator bool() const { return raw != 0; }
};

class SyncCells {
public:
    SyncCells(net::Endpoint& endpoint, SharedMemory& memory, DebtPayer& payer,
              gas::Segment segment);
    ~SyncCells() { payer_.stop(); }
    static std::size_t segment_bytes(const SharedMemory& memory);
    /// After Endpoint::connect().
    void attach() { segment_.attach(); }
    void interrupt_waits_for(Interruptions interruptions) noexcept {
        interruptions_ = interruptions;
    }

    SyncThread self() const noexcept;
    /// Waits until `waiter`, of this node, is granted (true) or `deadline` is over (false). On the
    /// program's stack.
    bool await(SyncWaiter waiter, const Deadline* deadline) noexcept;
    /// As await(), but it ends too when a handler of the program has run meanwhile; then
    /// `interrupted`.
    bool await(SyncWaiter waiter, const Deadline& deadline, bool* interrupted) noexcept;
    /// After the end of the wait is decided.
    void give_back(SyncWaiter waiter) noexcept;
    /// Whether catch_up() would do nothing. Without the bucket: for what was written before.
    bool is_caught_up(SyncKey key) noexcept;

    class Visit;

private:
    struct Bucket {
        NodeId node;
        std::uint32_t index;
    };
    struct Cell {
        NodeId node;
        std::uint32_t index;  ///< plus one; 0 is none
    };

    gas::GlobalAddress at(Bucket bucket, std::size_t word) const noexcept;
    gas::GlobalAddress at(Cell cell, std::size_t word) const noexcept;
    gas::GlobalAddress at(SyncWaiter waiter, std::size_t word) const noexcept;
    gas::GlobalAddress used_cells(NodeId node) const noexcept;
    gas::GlobalAddress news_of(Bucket bucket) const noexcept;
    Bucket bucket_of(SyncKey key) const noexcept;
    std::atomic<std::uint64_t>& seen(Bucket bucket) noexcept;
    Cell new_cell(NodeId node) noexcept;
    SyncWaiter take_waiter() noexcept;

    bool await_until(SyncWaiter waiter, const Deadline* deadline, bool* interrupted) noexcept;
    void put_news(Bucket bucket) noexcept;
    void take_news(Bucket bucket) noexcept;
    static void on_debt(void* cells, NodeId from, Bytes body) noexcept;
    static void pay_debt(void* cells, std::uint64_t bucket, NodeId creditor) noexcept;

    net::Endpoint& endpoint_;
    SharedMemory& memory_;
    gas::Segment segment_;
    std::size_t news_stride_;
    DebtPayer& payer_;
    Interruptions interruptions_;
    SparseArray<std::atomic<std::uint64_t>>
        seen_;  ///< by node and bucket; written under the bucket

    Latch waiters_latch_;
    SparseArray<std::uint32_t> free_waiters_;  ///< a stack
    std::uint32_t free_waiter_count_;
    Latch buffer_latch_;
    SparseArray<std::byte> buffer_;
};

/// Holds the bucket of one key. On the runtime stack, so that no handler of the program interrupts
/// it; short, and waits for nothing but an owed release. Works on copies of the bucket's words and
/// the cell's, written back at its end: over a wire each look would be an exchange.
class SyncCells::Visit {
public:
    enum class Find : std::uint8_t { nothing, existing, existing_or_new };
    Visit(SyncCells& cells, SyncKey key, CellKind kind, Find find = Find::existing_or_new) noexcept;
    ~Visit();
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

    /// Without a cell nothing below may be asked but catch_up() and publish().
    bool has_cell() const noexcept { return cell_.index != 0; }
    /// The cell was taken for the key by this visit.
    bool is_fresh() const noexcept { return fresh_; }

    std::uint64_t state() const noexcept;
    void set_state(std::uint64_t value) noexcept;
    std::uint64_t amount() const noexcept;
    void set_amount(std::uint64_t value) noexcept;

    /// Appends the calling thread. `mode` is the caller's to read again from next_mode().
    SyncWaiter enqueue(std::uint64_t mode = 0) noexcept;
    bool has_waiters() const noexcept;
    NodeId next_node() const noexcept;
    std::uint64_t next_mode() const noexcept;
    /// Takes the thread that has waited longest out of the list and lets it go on.
    /// @return that thread
    SyncThread grant_next() noexcept;
    void grant_all() noexcept;
    /// As grant_next(), of those whose mode has one of the bits. @return how many
    std::uint32_t grant_some(std::uint64_t bits, std::uint32_t at_most) noexcept;
    /// Takes `waiter` out of the list; false when it was granted meanwhile.
    bool withdraw(SyncWaiter waiter) noexcept;

    /// Acquires what others have published in this bucket, after having it published.
    void catch_up() noexcept;
    /// Publishes what this node has released. The caller has released since its last write, and
    /// caught up in this visit.
    void publish() noexcept;
    /// True when the object may be given up without a release: the next waiter is of this node, or
    /// no thread waits and this node alone has used it for a while. This node then owes the
    /// release.
    bool owe_release() noexcept;

private:
    using Line = std::array<std::uint64_t, cache_line_bytes / sizeof(std::uint64_t)>;
    using Access = gas::Segment::Access;
    void write_back() noexcept;
    std::uint64_t get(std::size_t word) const noexcept;
    void set(std::size_t word, std::uint64_t value) noexcept;
    std::uint64_t get_of_bucket(std::size_t word) const noexcept;
    void set_of_bucket(std::size_t word, std::uint64_t value) noexcept;
    void get_cell(Cell cell) noexcept;
    void find_cell(SyncKey key, CellKind kind, Find find) noexcept;
    void take_cell(Cell cell, SyncKey key, CellKind kind, std::uint64_t next) noexcept;
    bool is_idle() const noexcept;
    void take_out(SyncWaiter waiter, SyncWaiter before) noexcept;

    SyncCells& cells_;
    Bucket bucket_;
    Cell cell_{};
    bool fresh_ = false;
    Line bucket_words_{}, cell_words_{};
    bool bucket_changed_ = false, cell_changed_ = false;
};

}  // namespace hiroba::dsm
