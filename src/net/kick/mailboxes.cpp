// SPDX-License-Identifier: BSD-3-Clause
#include "net/kick/mailboxes.hpp"

#include <cstring>

#include "base/fatal.hpp"
#include "base/settings.hpp"

namespace hiroba::net::kick {

namespace {

constexpr std::size_t place_bytes = PeerQueue::body_bytes_max;

std::size_t place_offset(std::uint32_t to, std::uint32_t number) noexcept {
    return (to * Mailboxes::places + number % Mailboxes::places) * place_bytes;
}

std::uint64_t number_of(Bytes message) noexcept {
    std::uint64_t number = 0;
    std::memcpy(&number, message.data(), sizeof number);
    return number;
}

}  // namespace

std::size_t Mailboxes::llcm_bytes(const Endpoint& endpoint) {
    // A window does not straddle pages: a part of each may stay empty.
    return std::size_t{2} * endpoint.nodes() * places * WindowPlace::bytes_for(window_bytes);
}

Result<std::unique_ptr<Board>> Mailboxes::make_board(Endpoint& endpoint, std::uint64_t job_key) {
    if (!endpoint.provider().limits().maps_peers) return std::unique_ptr<Board>{};
    return Board::create(endpoint, job_key, llcm_bytes(endpoint));
}

Mailboxes::Mailboxes(Endpoint& endpoint, Board* board)
    : endpoint_(endpoint),
      board_(endpoint.provider().limits().maps_peers ? board : nullptr),
      way_(setting("HIROBA_NEWS") == "message" ? Way::message : Way::window),
      peers_(endpoint.nodes()),
      queues_(endpoint.nodes()),
      message_(PeerQueue::body_bytes_max / sizeof(std::uint64_t)) {}

Result<std::unique_ptr<Mailboxes>> Mailboxes::create(Endpoint& endpoint, Board* board,
                                                     MessageKind kind) {
    std::unique_ptr<Mailboxes> made(new Mailboxes(endpoint, board));
    made->kind_ = kind;
    for (PeerQueue& queue : made->queues_)
        if (const auto reserved = queue.reserve(); !reserved) return reserved.error();
    if (made->board_ != nullptr) {
        if (const auto reserved = made->reserve_windows(); !reserved) return reserved.error();
    }
    endpoint.on(
        kind,
        [](void* context, NodeId from, Bytes body) noexcept {
            static_cast<Mailboxes*>(context)->arrive(from, body);
        },
        made.get());
    return made;
}

// Windows are reserved whatever the setting says, so that nodes with different settings understand
// each other.
Result<void> Mailboxes::reserve_windows() {
    const std::uint32_t nodes = endpoint_.nodes();
    const auto region = endpoint_.provider().allocate(nodes * places * place_bytes);
    if (!region) return region.error();
    long_mails_ = *region;
    windows_.resize(nodes);
    for (auto& of_sender : windows_) {
        for (std::size_t i = 0; i < places; ++i) {
            const auto place = WindowPlace::reserve(*board_, window_bytes);
            if (!place) return place.error();
            of_sender.push_back(*place);
        }
    }
    return {};
}

void Mailboxes::attach() {
    if (board_ == nullptr) return;
    for (std::uint32_t node = 0; node < peers_.size(); ++node)
        if (node != endpoint_.self().value && board_->at(NodeId{node}, 0) != nullptr)
            open_windows(node);
}

// At each node, windows_[peer] has where that peer's mail lands, and where it gives back.
void Mailboxes::open_windows(std::uint32_t node) {
    const std::uint32_t self = endpoint_.self().value;
    Peer& peer = peers_[node];
    peer.referred = endpoint_.provider().mapped(NodeId{node}, long_mails_) + place_offset(self, 0);
    for (std::size_t i = 0; i < places; ++i) {
        const WindowPlace& mine = windows_[self][i];
        const WindowPlace& theirs = windows_[node][i];
        auto out = Window::open(*board_, {mine.landing, theirs.taken, window_bytes}, NodeId{node});
        auto in = Landed::open(*board_, {theirs.landing, mine.taken, window_bytes}, NodeId{node});
        HIROBA_INVARIANT(out && in, "window %lu of node %u: %s", i, node,
                         (out ? in.error() : out.error()).text.c_str());
        peer.out.push_back(std::move(*out));
        peer.in.push_back(*in);
    }
}

void Mailboxes::arrive(NodeId from, Bytes body) noexcept {
    HIROBA_INVARIANT(body.size() >= sizeof(std::uint64_t), "a mail of %lu bytes from node %u",
                     body.size(), from.value);
    queues_[from.value].push(body);
}

// --- sending -------------------------------------------------------------------------------------

MutableBytes Mailboxes::compose(std::uint32_t to) noexcept {
    Peer& peer = peers_[to];
    if (goes_by_window(peer)) {
        peer.out[peer.posted % places].await_room();
        std::byte* const mine = endpoint_.provider().local(long_mails_).data();
        return {mine + place_offset(to, peer.posted), mail_bytes_max};
    }
    return std::as_writable_bytes(std::span(message_).subspan(1));
}

// As soon as the mail has gone, the peer may answer, and another thread of this node go on with the
// answer while this one is still here: nothing of the peer changes behind that.
void Mailboxes::post(std::uint32_t to, std::size_t bytes) noexcept {
    HIROBA_INVARIANT(bytes <= mail_bytes_max, "a mail of %lu bytes; at most %lu", bytes,
                     mail_bytes_max);
    Peer& peer = peers_[to];
    const std::uint32_t number = peer.posted++;
    if (goes_by_window(peer)) {
        const std::byte* const mine = endpoint_.provider().local(long_mails_).data();
        post_in_window(peer.out[number % places], {mine + place_offset(to, number), bytes});
    } else {
        message_[0] = number;
        const Bytes message = std::as_bytes(std::span(message_)).first(sizeof message_[0] + bytes);
        endpoint_.send(NodeId{to}, kind_, Urgency::when_polled, std::span(&message, 1));
    }
}

void Mailboxes::post_in_window(Window& window, Bytes mail) noexcept {
    std::byte* const payload = window.payload().data();
    const bool fits = mail.size() <= inline_bytes_max;
    const Referred referred = fits ? 0 : mail.size();
    std::memcpy(payload, &referred, sizeof referred);
    if (fits && !mail.empty()) std::memcpy(payload + sizeof referred, mail.data(), mail.size());
    const std::size_t bytes = sizeof referred + (fits ? mail.size() : 0);
    const Result<void> sent = window.send(static_cast<std::uint32_t>(bytes));
    HIROBA_INVARIANT(sent, "%s", sent.error().text.c_str());
}

// --- receiving -----------------------------------------------------------------------------------

bool Mailboxes::has_come(std::uint32_t from) noexcept {
    Peer& peer = peers_[from];
    if (lies_in_window(peer)) return true;
    const PeerQueue& queue = queues_[from];
    return !queue.empty() && number_of(queue.front()) == peer.taken;
}

Bytes Mailboxes::front(std::uint32_t from) noexcept {
    Peer& peer = peers_[from];
    if (!lies_in_window(peer)) return queues_[from].front().subspan(sizeof(std::uint64_t));
    const Bytes bytes = peer.in[peer.taken % places].bytes();
    Referred referred = 0;
    HIROBA_INVARIANT(bytes.size() >= sizeof referred, "a mail of %lu bytes from node %u",
                     bytes.size(), from);
    std::memcpy(&referred, bytes.data(), sizeof referred);
    if (referred == 0) return bytes.subspan(sizeof referred);
    HIROBA_INVARIANT(referred <= mail_bytes_max, "a mail of %lu bytes from node %u", referred,
                     from);
    return {peer.referred + place_offset(0, peer.taken), referred};
}

void Mailboxes::take(std::uint32_t from) noexcept {
    Peer& peer = peers_[from];
    const bool in_window = lies_in_window(peer);
    const std::uint32_t number = peer.taken++;  // as in post(): the peer may go on
    if (in_window) {
        peer.in[number % places].take();
    } else {
        queues_[from].pop();
    }
}

}  // namespace hiroba::net::kick
