// SPDX-License-Identifier: BSD-3-Clause
// Role: one completion queue and the reliable connections that report to it, one for each peer,
// made on first use: collects work requests into lists that leave with one doorbell, of which only
// the last reports, and tells of each request in the order posted.
// Invariant: everything but index() is called with latch() held. Requests of one peer are carried
// out in order; a completion says that all before it are complete too.
//
// A connection that breaks is made anew: requests stay, the other end says how far it has come
// (unfinished.hpp), and what it has not done is posted again. Users of the queue see only that the
// peer is not open for a while. It is broken for good when that fails again and again.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/ids.hpp"
#include "base/latch.hpp"
#include "net/provider/verbs/device.hpp"
#include "net/provider/verbs/silence.hpp"

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
    /// Asks `peer` for the other end of `qp_number`, which is queue `index`'s. Asked again and
    /// again.
    /// @param instead_of  the queue pair that it takes the place of, or 0
    virtual void ask(NodeId peer, std::uint32_t index, std::uint32_t qp_number,
                     std::uint32_t instead_of) noexcept = 0;
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
    /// For tests: each connection is broken after so many requests; 0: never.
    void break_after(std::uint32_t requests) noexcept { break_after_ = requests; }

    std::uint32_t index() const noexcept { return index_; }
    Latch& latch() noexcept { return latch_; }

    /// Whether there is a connection; else begins to make one.
    bool is_open(NodeId peer) noexcept;
    /// The peer has answered: `number` is the other end. False: the device refuses.
    /// @param expected  the packet that the end which this one takes the place of waited for
    bool opened(NodeId peer, const PortAddress& address, std::uint32_t own_number,
                std::uint32_t number, std::uint32_t expected) noexcept;
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

    /// Fails all requests under way to the peer.
    void give_up(NodeId peer) noexcept;
    std::uint32_t under_way(NodeId peer) const noexcept;
    std::uint32_t under_way() const noexcept { return under_way_; }
    /// Whether something has been under way to the peer for `silence_ns`, and nothing came back.
    bool is_silent(NodeId peer, std::uint64_t now_ns, std::uint64_t silence_ns) noexcept;
    /// Whether the last requests of the peer report.
    bool reports_last(NodeId peer) const noexcept;

    /// Asks the device to knock at the next completion, and keeps those that are there already.
    /// True: there are some.
    /// @param errors_only  those that succeed are left for the next poll (Soft-RoCE 6.1 does not
    /// knock for errors alone; they wait for the end of a sleep)
    bool arm(bool errors_only = false) noexcept;

private:
    /// A request as it was posted.
    struct Posted {
        ibv_send_wr wr;
        ibv_sge local;
        std::uint32_t packets_end;  ///< number of the packet after its last
    };
    struct Connection {
        enum class State : std::uint8_t { none, asking, open, broken };
        State state = State::none;
        ibv_qp* qp = nullptr;
        std::uint32_t instead_of = 0;  ///< the queue pair before
        std::uint32_t mends = 0;       ///< since something was carried out
        std::uint32_t posted = 0, reaped = 0, unreported = 0;
        std::uint32_t packets = 0;  ///< number of the next one
        std::uint32_t mtu_bytes = 0;
        std::uint32_t until_break = 0;
        std::uint64_t ask_at_ns = 0, ask_after_ns = 0;
        Silence silence;  ///< begins where something is under way, and nothing comes back
        std::array<Request, depth> requests;
        std::array<Posted, depth> sent;
        std::unique_ptr<std::byte[]> inlined;  ///< inline_bytes_ for each of `sent`
    };
    static constexpr std::size_t big_pieces = 64, small_pieces = 256;

    Connection* connection(NodeId peer) const noexcept { return connections_[peer.value].get(); }
    std::size_t take_completions(std::size_t count_max) noexcept;
    void begin_to_ask(NodeId peer, Connection& to) noexcept;
    void mend(NodeId peer, const char* why) noexcept;
    void post_unfinished(NodeId peer, Connection& to, std::uint32_t expected) noexcept;
    void fail_all(NodeId peer, Connection& to) noexcept;
    void break_for_test(Connection& to) noexcept;

    Device& device_;
    Introducer& introducer_;
    std::uint32_t index_;
    bool reports_each_list_;
    Latch latch_;
    ibv_cq* cq_ = nullptr;
    std::uint32_t cqe_ = 4096;
    std::uint32_t under_way_ = 0;
    bool has_connections_ = false;  ///< has had one
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

    std::array<ibv_wc, 32> completions_;
    std::size_t kept_ = 0, next_ = 0;  ///< of completions_: taken from the device, not told yet
    struct Finished {
        NodeId peer;
        Request request;
        bool carried_out;
    };
    std::deque<Finished> done_without_completion_;
    std::uint32_t break_after_ = 0;
};

template <class Done>
std::size_t SendQueue::reap(std::size_t count_max, Done&& done) noexcept {
    std::size_t told = 0;
    while (!done_without_completion_.empty()) {
        const Finished finished = done_without_completion_.front();
        done_without_completion_.pop_front();
        done(finished.peer, finished.request, finished.carried_out);
        give_piece(finished.request.piece);
    }
    while (told < count_max) {
        if (next_ == kept_ && take_completions(count_max - told) == 0) break;
        const ibv_wc completion = completions_[next_++];
        ++told;
        const NodeId peer{static_cast<std::uint32_t>(completion.wr_id >> 32)};
        const auto last = static_cast<std::uint32_t>(completion.wr_id);
        Connection& to = *connection(peer);
        // Another one has taken its place, or all of it is told.
        if (completion.qp_num != to.qp->qp_num || to.reaped == to.posted) continue;
        const bool succeeded = completion.status == IBV_WC_SUCCESS;
        const bool was_open = to.state == Connection::State::open;
        if (succeeded) to.mends = 0;
        to.silence.end();
        // Requests that were posted before and did not report have succeeded: errors are always
        // reported.
        const std::uint32_t end = succeeded || !was_open ? last + 1 : last;
        while (to.reaped != end && to.reaped != to.posted) {  // done() may have it fail for good
            const bool is_last = to.reaped == last;
            const Request request = to.requests[to.reaped % depth];
            ++to.reaped;
            --under_way_;
            done(peer, request, !is_last || succeeded);
            give_piece(request.piece);
        }
        if (!succeeded && was_open && to.state == Connection::State::open)
            mend(peer, device_.ibv().wc_status_str(completion.status));
    }
    return told;
}

}  // namespace hiroba::net::verbs
