// SPDX-License-Identifier: BSD-3-Clause
// Role: one completion queue and the reliable connections that report to it, one for each peer,
// made on first use: collects work requests into lists that leave with one doorbell, of which only
// the last reports, and tells of each request in the order posted.
// Invariant: everything but index() is called with latch() held. Requests of one peer are carried
// out in order; a completion says that all before it are complete too.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.hpp"
#include "base/latch.hpp"
#include "net/provider/verbs/device.hpp"

namespace hiroba::net::verbs {

struct Op;

/// A piece of pinned memory for bytes on their way from or to memory that is not.
struct Piece {
    std::byte* memory = nullptr;  ///< nullptr: none
    bool is_big = false;
};

/// What becomes of a work request.
struct Request {
    Op* op = nullptr;         ///< whose it is; nullptr: a message's
    Piece piece;              ///< given back when it is complete
    std::byte* to = nullptr;  ///< where `bytes` of the piece are copied then
    std::uint32_t bytes = 0;
};

/// How connections come about: the provider's meeting.
class Introducer {
public:
    virtual ~Introducer() = default;
    /// Asks `peer` for the other end of `qp`, which is queue `index`'s. Asked again and again.
    virtual void ask(NodeId peer, std::uint32_t index, std::uint32_t qp_number) noexcept = 0;
};

class SendQueue {
public:
    static constexpr std::uint32_t depth = 128;  ///< requests under way to one peer
    static constexpr std::size_t big_piece_bytes = 8192, small_piece_bytes = 64;
    static constexpr std::size_t list_max = 32;

    /// @param reports_each_list  else a list without pieces reports now and then
    SendQueue(Device& device, Introducer& introducer, std::uint32_t index, std::uint32_t nodes,
              bool reports_each_list);
    ~SendQueue();
    SendQueue(const SendQueue&) = delete;

    Result<void> open();

    std::uint32_t index() const noexcept { return index_; }
    Latch& latch() noexcept { return latch_; }

    /// Whether there is a connection; else begins to make one.
    bool is_open(NodeId peer) noexcept;
    /// The peer has answered: `number` is the other end. False: the device refuses.
    bool opened(NodeId peer, const PortAddress& address, std::uint32_t own_number,
                std::uint32_t number) noexcept;
    /// Peers asked that have not answered.
    bool is_asking() const noexcept { return !asking_.empty(); }
    void ask_again(std::uint64_t now_ns) noexcept;

    /// Requests there is room for. 0: try after the next completion.
    std::uint32_t room(NodeId peer) const noexcept;
    std::uint32_t inline_bytes() const noexcept { return inline_bytes_; }
    Piece take_piece(std::size_t bytes) noexcept;
    void give_piece(Piece piece) noexcept;
    std::uint32_t piece_key() const noexcept { return pieces_mr_->lkey; }

    /// Appends to the list; `wr` needs opcode, flags and what belongs to the opcode, `local` its
    /// memory (nothing where bytes are 0). There is room().
    void add(NodeId peer, const ibv_send_wr& wr, const ibv_sge& local,
             const Request& request) noexcept;
    /// Hands the list over.
    void ring() noexcept;

    /// Calls done(peer, request, whether it was carried out) for up to `count_max` completions'
    /// requests. Returns how many completions there were.
    template <class Done>
    std::size_t reap(std::size_t count_max, Done&& done) noexcept;

    /// What is under way to the peer comes back with an error.
    void give_up(NodeId peer) noexcept;
    std::uint32_t under_way(NodeId peer) const noexcept;
    std::uint32_t under_way() const noexcept { return under_way_; }
    /// Whether something has been under way to the peer for `silence_ns`, and nothing came back.
    bool is_silent(NodeId peer, std::uint64_t now_ns, std::uint64_t silence_ns) noexcept;
    /// Whether the last requests of the peer report.
    bool reports_last(NodeId peer) const noexcept;

    /// Asks the device to knock at the next completion, and keeps those that are there already.
    /// True: there are some.
    bool arm() noexcept;

private:
    struct Connection {
        enum class State : std::uint8_t { none, asking, open, broken };
        State state = State::none;
        ibv_qp* qp = nullptr;
        std::uint32_t posted = 0, reaped = 0, unreported = 0;
        std::uint64_t ask_at_ns = 0, ask_after_ns = 0;
        std::uint64_t waits_since_ns = 0;  ///< something has been under way, and nothing came back
        std::array<Request, depth> requests;
    };
    static constexpr std::size_t big_pieces = 64, small_pieces = 256;

    Connection* connection(NodeId peer) const noexcept { return connections_[peer.value].get(); }
    std::size_t take_completions(std::size_t count_max) noexcept;

    Device& device_;
    Introducer& introducer_;
    std::uint32_t index_;
    bool reports_each_list_;
    Latch latch_;
    ibv_cq* cq_ = nullptr;
    std::uint32_t cqe_ = 4096;
    std::uint32_t under_way_ = 0;
    std::uint32_t inline_bytes_ = 220;
    std::vector<std::unique_ptr<Connection>> connections_;
    std::vector<NodeId> asking_;
    std::byte* pieces_ = nullptr;
    ibv_mr* pieces_mr_ = nullptr;
    std::vector<Piece> free_big_, free_small_;

    NodeId list_peer_;
    std::size_t list_count_ = 0;
    std::array<ibv_send_wr, list_max> list_;
    std::array<ibv_sge, list_max> list_memory_;
    std::array<std::byte, list_max * 8> list_words_;  ///< what small requests send, as it was

    std::array<ibv_wc, 32> completions_;
    std::size_t kept_ = 0, next_ = 0;  ///< of completions_: taken from the device, not told yet
    struct Refused {
        NodeId peer;
        Request request;
    };
    std::vector<Refused> refused_;  ///< by the device when they were posted
};

template <class Done>
std::size_t SendQueue::reap(std::size_t count_max, Done&& done) noexcept {
    std::size_t told = 0;
    while (!refused_.empty()) {
        const Refused refused = refused_.back();
        refused_.pop_back();
        done(refused.peer, refused.request, false);
        give_piece(refused.request.piece);
    }
    while (told < count_max) {
        if (next_ == kept_ && take_completions(count_max - told) == 0) break;
        const ibv_wc completion = completions_[next_++];
        ++told;
        const NodeId peer{static_cast<std::uint32_t>(completion.wr_id >> 32)};
        const auto last = static_cast<std::uint32_t>(completion.wr_id);
        Connection& to = *connection(peer);
        to.waits_since_ns = 0;
        if (completion.status != IBV_WC_SUCCESS) to.state = Connection::State::broken;
        // What was posted before and did not report has succeeded: errors are always reported.
        while (to.reaped != last + 1) {
            const bool is_last = to.reaped == last;
            const Request request = to.requests[to.reaped % depth];
            ++to.reaped;
            --under_way_;
            done(peer, request, !is_last || completion.status == IBV_WC_SUCCESS);
            give_piece(request.piece);
        }
    }
    return told;
}

}  // namespace hiroba::net::verbs
