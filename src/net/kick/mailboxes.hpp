// SPDX-License-Identifier: BSD-3-Clause
// Role: what nodes tell each other at forks and barriers: short bytes, in order, from each to each.
//
// Where peers are mapped a mail goes by kick window: a short one inline, with the store that tells
// of it; a long one by reference: it stays in its author's memory, and the reader reads it there.
// Elsewhere, and where HIROBA_NEWS says so, it is a message, which waits in a PeerQueue. Who sends
// decides, mail by mail; mails are numbered, and the reader looks both ways for the next number.
//
// Invariant: number n goes through window n % places. A window's bytes, and those it refers to,
// change only after its reader has taken the former mail: the sender waits for that. The user
// of mailboxes keeps a node at most `places` mails ahead of a peer's take(): a message has no such
// wait, and one too many is fatal.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "net/kick/peer_queue.hpp"
#include "net/kick/window.hpp"

namespace hiroba::net::kick {

/// One node's end. Thread: one at a time, on which everything that one has done is visible to the
/// next; not from handlers.
class Mailboxes {
public:
    static constexpr std::size_t places = PeerQueue::places;
    static constexpr std::size_t mail_bytes_max = PeerQueue::body_bytes_max - sizeof(std::uint64_t);
    /// Longer mails go by reference. Room for a fork and some 20 notices, a barrier and some 40.
    static constexpr std::size_t inline_bytes_max = 760;

    enum class Way : std::uint8_t { message, window };

    /// The bytes of a board's LLCM that mailboxes take, at most.
    static std::size_t llcm_bytes(const Endpoint& endpoint);
    /// A board for mailboxes alone; nullptr where no peer is mapped. As Board::create().
    static Result<std::unique_ptr<Board>> make_board(Endpoint& endpoint, std::uint64_t job_key);

    /// Registers memory and the handler of `kind`; before Endpoint::connect(). On all nodes.
    /// @param board  nullptr: all mails are messages; else it is attached before attach()
    static Result<std::unique_ptr<Mailboxes>> create(Endpoint& endpoint, Board* board,
                                                     MessageKind kind);
    Mailboxes(const Mailboxes&) = delete;
    Mailboxes& operator=(const Mailboxes&) = delete;
    /// After Endpoint::connect().
    void attach();

    /// How mails go from here on where a peer is mapped; at first as HIROBA_NEWS says.
    void choose(Way way) noexcept { way_ = way; }

    /// Whether this node reaches that one's memory.
    bool is_mapped(std::uint32_t node) const noexcept { return !peers_[node].out.empty(); }

    /// Where the next mail to `to` is composed: mail_bytes_max bytes, aligned to 8, valid until
    /// post(). Waits until `to` has taken the mail that was there.
    MutableBytes compose(std::uint32_t to) noexcept;
    /// Sends the first `bytes` bytes of what was composed, and wakes `to`.
    void post(std::uint32_t to, std::size_t bytes) noexcept;

    /// Whether the next mail of `from` is there.
    bool has_come(std::uint32_t from) noexcept;
    /// The next mail, aligned to 8, until take(). Only when has_come().
    Bytes front(std::uint32_t from) noexcept;
    /// Gives its place back.
    void take(std::uint32_t from) noexcept;

    /// Waits until look() is true, which may look at has_come() and be asked again after it was.
    template <class Look>
    void wait_for(Look&& look) noexcept {
        if (board_ != nullptr) {
            board_->wait_for(look);
        } else {
            endpoint_.wait_until(look);
        }
    }

private:
    /// In front of an inline mail, or alone: how long the mail is that lies with its author.
    using Referred = std::uint64_t;
    static constexpr std::uint32_t window_bytes = sizeof(Referred) + inline_bytes_max;

    struct Peer {
        std::uint32_t posted = 0, taken = 0;
        std::vector<Window> out;  ///< `places`, where the peer is mapped; else none
        std::vector<Landed> in;
        const std::byte* referred = nullptr;  ///< `places` long mails of the peer to this node
    };

    Mailboxes(Endpoint& endpoint, Board* board);
    Result<void> reserve_windows();
    void open_windows(std::uint32_t node);
    bool goes_by_window(const Peer& peer) const noexcept {
        return way_ == Way::window && !peer.out.empty();
    }
    bool lies_in_window(Peer& peer) noexcept {
        return !peer.in.empty() && peer.in[peer.taken % places].arrived();
    }
    static void post_in_window(Window& window, Bytes mail) noexcept;
    void arrive(NodeId from, Bytes body) noexcept;

    Endpoint& endpoint_;
    MessageKind kind_{};
    Board* board_;
    Way way_ = Way::window;
    RegionId long_mails_;                            ///< `places` of this node to each
    std::vector<std::vector<WindowPlace>> windows_;  ///< per sender
    std::vector<Peer> peers_;
    std::vector<PeerQueue> queues_;  ///< what came as a message: its number, and the mail
    std::vector<std::uint64_t> message_;
};

}  // namespace hiroba::net::kick
