// SPDX-License-Identifier: BSD-3-Clause
// Role: how two nodes make a connection while the job runs: a question and an answer by unreliable
// datagrams of a queue pair whose number every node has told in its card. Invariant: who asks
// repeats until the answer comes; who answers makes the other end once, and answers each time.
// What is not of this job is dropped.
//
// Who asks for a connection in place of one that broke is told how far that had come; its end
// receives no more from then on, and stays for what it has received.
//
// A connection carries requests one way, from whoever asked for it: no two nodes can make the same
// one at once. The end that answers only receives, so it is ready when the answer leaves.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ids.hpp"
#include "base/latch.hpp"
#include "net/provider/verbs/device.hpp"
#include "net/provider/verbs/send_queue.hpp"

namespace hiroba::net::verbs {

/// How a node is reached by datagrams.
struct MeetingAddress {
    PortAddress port;
    std::uint32_t number = 0;  ///< of its queue pair for datagrams
};

class Meeting final : public Introducer {
public:
    /// What a datagram says.
    struct Datagram {
        std::uint64_t job = 0;
        std::uint32_t from = 0;
        std::uint32_t index = 0;       ///< the asker's queue
        std::uint32_t asker = 0;       ///< queue pair of who asks
        std::uint32_t answerer = 0;    ///< 0: a question
        std::uint32_t instead_of = 0;  ///< the asker's queue pair that broke, or 0
        std::uint32_t expected = 0;    ///< packet that the other end of that waited for
    };

    Meeting(Device& device, NodeId self, std::uint64_t job);
    ~Meeting() override;

    /// @param receives  where what the answering ends receive is reported
    Result<void> open(ibv_srq* srq, ibv_cq* receives);
    std::uint32_t number() const noexcept { return qp_->qp_num; }
    /// Before the first ask().
    void learn(std::vector<MeetingAddress> peers) { peers_ = std::move(peers); }

    void ask(NodeId peer, std::uint32_t index, std::uint32_t qp_number,
             std::uint32_t instead_of) noexcept override;
    /// Reads what has come: questions are answered, up to `answers.size()` answers returned.
    /// Progress role.
    std::size_t poll(std::span<Datagram> answers) noexcept;
    /// The node that sends to the queue pair of this number. Progress role.
    NodeId sender(std::uint32_t qp_number) const noexcept;
    const PortAddress& address(NodeId peer) const noexcept { return peers_[peer.value].port; }
    /// As SendQueue::arm(). Any thread.
    bool arm() noexcept;

private:
    static constexpr std::uint32_t datagrams_max = 128;  ///< on their way, each direction
    static constexpr std::size_t routing_bytes = 40;     ///< before each datagram that comes
    static constexpr std::size_t place_bytes = 128;
    static constexpr std::size_t places_bytes = 2 * std::size_t{datagrams_max} * place_bytes;

    void send(NodeId to, const Datagram& datagram) noexcept;
    void expect(std::uint32_t place) noexcept;
    void answer(const Datagram& question) noexcept;
    ibv_ah* path(NodeId peer) noexcept;

    Device& device_;
    NodeId self_;
    std::uint64_t job_;
    std::vector<MeetingAddress> peers_;
    std::uint32_t qkey_;
    ibv_srq* srq_ = nullptr;
    ibv_cq* receives_ = nullptr;
    ibv_cq* spare_ = nullptr;  ///< for sends of ends that never send

    Latch latch_;  ///< guards all below but ends_
    ibv_cq* cq_ = nullptr;
    ibv_qp* qp_ = nullptr;
    std::byte* places_ = nullptr;  ///< datagrams_max to receive, then as many to send
    ibv_mr* mr_ = nullptr;
    std::vector<std::uint32_t> free_places_;
    std::vector<ibv_ah*> paths_;
    std::vector<ibv_wc> kept_;

    struct End {
        ibv_qp* qp;
        NodeId from;
        Datagram answer;
    };
    std::unordered_map<std::uint32_t, NodeId> senders_;  ///< progress role, as ends_
    std::vector<End> ends_;
};

}  // namespace hiroba::net::verbs
