// SPDX-License-Identifier: BSD-3-Clause
// Role: collects delegated commands and their answers into messages, one batch for each node.
// Invariant: records for one node leave in the order they were appended, from whichever threads;
// nothing is sent while the batcher's latch, or a latch of a caller that appends, is held: a sender
// that meets a full queue polls, and the handlers it runs append again.
//
// When a batch leaves: at once when nothing asked of that node is unanswered; else with the answer
// to an earlier question, when it is full, or when a thread waits. So single commands are not held
// back, many share a datagram, and no clock is needed.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/latch.hpp"
#include "net/net.hpp"

namespace hiroba::gas {

/// Any thread, handlers too.
class CommandBatcher {
public:
    /// @param kind  of its messages, which have an order of their own
    CommandBatcher(net::Endpoint& endpoint, net::MessageKind kind);

    enum class Record : std::uint8_t { question, answer };
    /// Adds a record to the batch for `to`; sends nothing.
    /// @param data  copied; filled up to a multiple of 8 bytes
    void append(NodeId to, Bytes head, Bytes data, Record record);
    /// One question to `by` has its answer. Unknown nodes are ignored.
    void answered(NodeId by) noexcept;

    enum class When : std::uint8_t { due, now };
    /// Sends the batches that are due, or all. Not with a latch held.
    void flush(When when);

    /// The most bytes of data that one record may carry.
    std::size_t data_bytes_max() const noexcept { return data_bytes_max_; }
    /// Memory held for the nodes talked to; grows with their number, not with the job's.
    std::size_t memory_bytes() const noexcept;

private:
    using Batch = std::vector<std::byte>;
    struct Peer {
        NodeId node;
        std::deque<Batch> batches;  ///< the last one grows
        std::uint64_t asked = 0;    ///< questions that have left
        std::uint64_t to_ask = 0;   ///< questions in the batches
        std::uint64_t answered = 0;
        bool waiting = false;  ///< is in waiting_
        bool sending = false;  ///< a thread sends its batches, this one's records too
    };
    bool is_due(const Peer& peer) const noexcept;
    Peer& peer_of(NodeId node);
    Batch new_batch();
    void send_batches(Peer& peer);

    net::Endpoint& endpoint_;
    net::MessageKind kind_;
    std::size_t message_bytes_max_;
    std::size_t data_bytes_max_;
    mutable Latch latch_;
    std::unordered_map<std::uint32_t, std::unique_ptr<Peer>> peers_;
    std::vector<Peer*> waiting_;  ///< have batches that no thread is sending
    std::vector<Batch> spare_;
};

}  // namespace hiroba::gas
