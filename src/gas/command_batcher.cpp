// SPDX-License-Identifier: BSD-3-Clause
#include "gas/command_batcher.hpp"

#include <mutex>

#include "gas/delegation_record.hpp"

namespace hiroba::gas {
namespace {

constexpr std::size_t spare_batches_max = 4;

}  // namespace

CommandBatcher::CommandBatcher(net::Endpoint& endpoint, net::MessageKind kind)
    : endpoint_(endpoint),
      kind_(kind),
      message_bytes_max_(endpoint.provider().limits().message_bytes_max),
      // Two full records to a message.
      data_bytes_max_(round_down(message_bytes_max_ / 2 - delegation_head_bytes_max, 64)) {}

CommandBatcher::Peer& CommandBatcher::peer_of(NodeId node) {
    std::unique_ptr<Peer>& known = peers_[node.value];
    if (known == nullptr) {
        known = std::make_unique<Peer>();
        known->node = node;
    }
    return *known;
}

CommandBatcher::Batch CommandBatcher::new_batch() {
    if (spare_.empty()) return {};
    Batch batch = std::move(spare_.back());
    spare_.pop_back();
    return batch;
}

void CommandBatcher::append(NodeId to, Bytes head, Bytes data, Record record) {
    const std::scoped_lock guard{latch_};
    Peer& peer = peer_of(to);
    const std::size_t bytes = head.size() + round_up(data.size(), 8);
    if (peer.batches.empty() || peer.batches.back().size() + bytes > message_bytes_max_) {
        peer.batches.push_back(new_batch());
    }
    Batch& batch = peer.batches.back();
    batch.insert(batch.end(), head.begin(), head.end());
    batch.insert(batch.end(), data.begin(), data.end());
    batch.resize(round_up(batch.size(), 8));
    if (record == Record::question) ++peer.to_ask;
    if (peer.waiting || peer.sending) return;
    peer.waiting = true;
    waiting_.push_back(&peer);
}

void CommandBatcher::answered(NodeId by) noexcept {
    const std::scoped_lock guard{latch_};
    if (const auto known = peers_.find(by.value); known != peers_.end()) ++known->second->answered;
}

bool CommandBatcher::is_due(const Peer& peer) const noexcept {
    const bool is_full = peer.batches.size() > 1 || peer.batches.front().size() > data_bytes_max_;
    return is_full || peer.asked == peer.answered || peer.to_ask == 0;
}

void CommandBatcher::flush(When when) {
    latch_.lock();
    for (std::size_t i = 0; i < waiting_.size();) {
        Peer& peer = *waiting_[i];
        if (when == When::due && !is_due(peer)) {
            ++i;
            continue;
        }
        waiting_[i] = waiting_.back();
        waiting_.pop_back();
        send_batches(peer);
        i = 0;  // others came and went meanwhile
    }
    latch_.unlock();
}

/// Sends until no batch is left; opens the latch for each. Records that other threads append
/// meanwhile are sent here as well, behind those that were there.
void CommandBatcher::send_batches(Peer& peer) {
    peer.waiting = false;
    peer.sending = true;
    while (!peer.batches.empty()) {
        Batch batch = std::move(peer.batches.front());
        peer.batches.pop_front();
        // Counts all queued requests when the first batch leaves: only "zero or not" is ever
        // tested.
        peer.asked += peer.to_ask;
        peer.to_ask = 0;
        latch_.unlock();
        const Bytes parts[] = {batch};
        endpoint_.send(peer.node, kind_, net::Urgency::wake_service, parts);
        batch.clear();
        latch_.lock();
        if (spare_.size() < spare_batches_max) spare_.push_back(std::move(batch));
    }
    peer.sending = false;
}

std::size_t CommandBatcher::memory_bytes() const noexcept {
    const std::scoped_lock guard{latch_};
    std::size_t bytes = peers_.size() * (sizeof(Peer) + 64);
    for (const auto& [node, peer] : peers_) {
        for (const Batch& batch : peer->batches) bytes += batch.capacity();
    }
    for (const Batch& batch : spare_) bytes += batch.capacity();
    return bytes;
}

}  // namespace hiroba::gas
