// SPDX-License-Identifier: BSD-3-Clause
// Role: sends and awaits the messages of regions.
// Invariant: release() comes before the first message of a phase is encoded, acquire() after the
// last one was learned; remote frees go out right after a release and come in right after an
// acquire.
#include "omp/team/team_link.hpp"

#include <unistd.h>

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/fatal.hpp"
#include "dsm/dsm.hpp"
#include "dsm/heap/heap.hpp"
#include "dsm/sync/publisher.hpp"

namespace hiroba::omp {

namespace {
constexpr std::uint32_t all_to_all_max = 8;
constexpr std::size_t windows_per_peer = PeerQueue::places;
/// Room for a fork and some 20 notices, or a barrier with some 30.
constexpr std::uint32_t window_bytes = 768;
/// What a region reads first: the struct of its shared variables.
constexpr std::size_t data_prefetch_bytes = 256;
static_assert(std::is_trivially_copyable_v<Fork>);
}  // namespace

TeamLink::TeamLink(const Parts& parts)
    : parts_(parts),
      self_(parts.endpoint->self().value),
      queues_(parts.endpoint->nodes()),
      news_(parts.memory->news_bytes_max()) {}

Result<std::unique_ptr<TeamLink>> TeamLink::create(const Parts& parts) {
    std::unique_ptr<TeamLink> link(new TeamLink(parts));
    const std::size_t longest = sizeof(Header) + sizeof(Fork) + link->news_.size();
    if (longest > PeerQueue::body_bytes_max)
        return Error{ErrorKind::usage, "a fork message of " + std::to_string(longest) +
                                           " bytes is longer than " +
                                           std::to_string(PeerQueue::body_bytes_max) +
                                           "; set HIROBA_NOTICES to a smaller number"};
    if (const auto reserved = link->reserve_windows(); !reserved) return reserved.error();
    for (PeerQueue& queue : link->queues_)
        if (const auto reserved = queue.reserve(); !reserved) return reserved.error();
    parts.endpoint->on(
        net::MessageKind::team_news,
        [](void* context, NodeId from, Bytes body) noexcept {
            static_cast<TeamLink*>(context)->on_team_message(from, body);
        },
        link.get());
    parts.endpoint->on(
        net::MessageKind::quit,
        [](void* context, NodeId, Bytes) noexcept { static_cast<TeamLink*>(context)->on_quit(); },
        link.get());
    return link;
}

// At each node, places_[peer] has what comes from that peer and what it gives back.
Result<void> TeamLink::reserve_windows() {
    const std::uint32_t nodes = parts_.endpoint->nodes();
    const std::size_t bytes =
        nodes * windows_per_peer * net::kick::WindowPlace::bytes_for(window_bytes);
    // A window does not straddle pages: a quarter of each may stay empty.
    auto board = net::kick::Board::create(*parts_.endpoint, parts_.job_key,
                                          net::kick::Board::llcm_bytes_default + 2 * bytes);
    if (!board) return board.error();
    board_ = std::move(*board);
    places_.resize(nodes);
    for (auto& places : places_) {
        for (std::size_t i = 0; i < windows_per_peer; ++i) {
            const auto place = net::kick::WindowPlace::reserve(*board_, window_bytes);
            if (!place) return place.error();
            places.push_back(*place);
        }
    }
    return {};
}

void TeamLink::attach() {
    board_->attach();
    peers_.resize(places_.size());
    for (std::uint32_t node = 0; node < peers_.size(); ++node) {
        if (node == self_ || board_->at(NodeId{node}, 0) == nullptr) continue;
        for (std::size_t i = 0; i < windows_per_peer; ++i) {
            const net::kick::WindowPlace& mine = places_[self_][i];
            const net::kick::WindowPlace& theirs = places_[node][i];
            auto out = net::kick::Window::open(*board_, {mine.landing, theirs.taken, window_bytes},
                                               NodeId{node});
            auto in = net::kick::Landed::open(*board_, {theirs.landing, mine.taken, window_bytes},
                                              NodeId{node});
            HIROBA_INVARIANT(out && in, "window %lu of node %u: %s", i, node,
                             (out ? in.error() : out.error()).text.c_str());
            peers_[node].out.push_back(std::move(*out));
            peers_[node].in.push_back(std::move(*in));
        }
    }
}

void TeamLink::on_team_message(NodeId from, Bytes body) noexcept {
    queues_[from.value].push(body);
    // The waiter may sleep while the service thread polls.
    parts_.endpoint->wake_local();
}

void TeamLink::on_quit() noexcept {
    over_.store(true);
    if (in_region_.load()) {
        // exit() in the middle of a region: no thread of it runs on.
        if (parts_.flush_streams != nullptr) parts_.flush_streams();
        if (parts_.leave != nullptr) parts_.leave();
        _exit(0);
    }
    parts_.endpoint->wake_local();
}

void TeamLink::release() noexcept {
    const bool alone = program_threads_.load() == 0;
    parts_.memory->release(alone ? dsm::Others::stopped : dsm::Others::running);
    parts_.heap->flush_remote_frees();
}

void TeamLink::acquire() noexcept {
    const bool alone = program_threads_.load() == 0;
    parts_.memory->acquire(alone ? dsm::Others::stopped : dsm::Others::running);
    parts_.heap->accept_remote_frees();
}

void TeamLink::send(std::uint32_t to, Kind kind, Bytes extra) noexcept {
    const Header header{kind, phase_, region_};
    const std::size_t news_bytes = parts_.memory->news_for(NodeId{to}, news_);
    const std::array<Bytes, 3> body{std::as_bytes(std::span(&header, 1)), extra,
                                    Bytes(news_).first(news_bytes)};
    if (peers_[to].out.empty()) {
        return parts_.endpoint->send(NodeId{to}, net::MessageKind::team_news,
                                     net::Urgency::when_polled, body);
    }
    net::kick::Window& window = peers_[to].next_out();
    window.await_room();
    std::uint32_t length = 0;
    if (sizeof header + extra.size() + news_bytes <= window_bytes) {
        std::byte* const payload = window.payload().data();
        for (const Bytes part : body) {
            if (!part.empty()) std::memcpy(payload + length, part.data(), part.size());
            length += static_cast<std::uint32_t>(part.size());
        }
    } else {
        parts_.endpoint->send(NodeId{to}, net::MessageKind::team_news, net::Urgency::when_polled,
                              body);
    }
    const Result<void> sent = window.send(length);
    HIROBA_INVARIANT(sent, "%s", sent.error().text.c_str());
}

void TeamLink::receive(std::uint32_t from, Kind kind, MutableBytes extra) noexcept {
    if (peers_[from].in.empty()) return read_message(from, kind, extra);
    net::kick::Landed& window = peers_[from].next_in();
    board_->wait_for([&window] { return window.arrived(); });
    if (const Bytes body = window.bytes(); !body.empty()) {
        read(from, kind, body, extra);
    } else {
        read_message(from, kind, extra);
    }
    window.take();
    ++peers_[from].received;
}

void TeamLink::read_message(std::uint32_t from, Kind kind, MutableBytes extra) noexcept {
    PeerQueue& queue = queues_[from];
    parts_.endpoint->wait_until([&queue] { return !queue.empty(); });
    read(from, kind, queue.front(), extra);
    queue.pop();
}

void TeamLink::read(std::uint32_t from, Kind kind, Bytes body, MutableBytes extra) noexcept {
    HIROBA_INVARIANT(body.size() >= sizeof(Header) + extra.size(), "%lu bytes from node %u",
                     static_cast<unsigned long>(body.size()), from);
    Header header{};
    std::memcpy(&header, body.data(), sizeof header);
    if (kind == Kind::fork) region_ = header.region;
    HIROBA_INVARIANT(header.kind == kind && header.phase == phase_ && header.region == region_,
                     "node %u sent kind %u of phase %u, region %lu; expected %u, %u, %lu", from,
                     static_cast<unsigned>(header.kind), header.phase,
                     static_cast<unsigned long>(header.region), static_cast<unsigned>(kind), phase_,
                     static_cast<unsigned long>(region_));
    if (!extra.empty()) std::memcpy(extra.data(), body.data() + sizeof header, extra.size());
    parts_.memory->learn(NodeId{from}, body.subspan(sizeof header + extra.size()));
}

void TeamLink::fork(const Fork& fork, std::uint32_t members) noexcept {
    members_ = members;
    region_runs(true);
    ++region_;
    phase_ = 0;
    release();
    for (std::uint32_t node = 1; node < members_; ++node)
        send(node, Kind::fork, std::as_bytes(std::span(&fork, 1)));
    all_nodes_know();
}

// A fork and a barrier of all nodes leave everybody with the same news.
void TeamLink::all_nodes_know() noexcept {
    if (members_ == parts_.endpoint->nodes()) parts_.memory->everyone_knows();
}

void TeamLink::join() noexcept {
    for (std::uint32_t node = 1; node < members_; ++node) receive(node, Kind::join);
    region_runs(false);
    acquire();
    members_ = 1;
}

bool TeamLink::await_fork(Fork* fork) noexcept {
    const auto arrived = [this] {
        return peers_[0].in.empty() ? !queues_[0].empty() : peers_[0].next_in().arrived();
    };
    board_->wait_for([&] { return arrived() || over_.load(); });
    if (!arrived()) return false;
    in_region_.store(true);
    region_runs(true);
    phase_ = 0;
    receive(0, Kind::fork, std::as_writable_bytes(std::span(fork, 1)));
    acquire();
    members_ = (fork->place.team_size - 1) / parts_.threads_per_node + 1;
    all_nodes_know();
    if (fork->data != nullptr && parts_.memory->contains(fork->data))
        parts_.memory->prefetch(fork->data, data_prefetch_bytes);
    return true;
}

void TeamLink::region_runs(bool runs) noexcept {
    if (parts_.publisher != nullptr) parts_.publisher->set_active(runs);
}

// The publisher goes on: other nodes may still be in the region and spin on what was written here.
void TeamLink::arrive_at_join() noexcept {
    release();
    in_region_.store(false);
    send(0, Kind::join);
}

void TeamLink::barrier() noexcept {
    release();
    if (members_ <= all_to_all_max)
        barrier_all_to_all();
    else
        barrier_over_node_0();
    all_nodes_know();
    ++phase_;
}

void TeamLink::barrier_all_to_all() noexcept {
    // Starting behind oneself spreads the load over the receivers.
    for (std::uint32_t i = 1; i < members_; ++i) send((self_ + i) % members_, Kind::barrier);
    for (std::uint32_t i = 1; i < members_; ++i) receive((self_ + i) % members_, Kind::barrier);
    acquire();
}

void TeamLink::barrier_over_node_0() noexcept {
    if (self_ != 0) {
        send(0, Kind::gather);
        receive(0, Kind::spread);
        acquire();
        return;
    }
    for (std::uint32_t node = 1; node < members_; ++node) receive(node, Kind::gather);
    acquire();
    // What node 0 has acquired is part of its own news.
    for (std::uint32_t node = 1; node < members_; ++node) send(node, Kind::spread);
}

void TeamLink::send_quit() noexcept {
    for (std::uint32_t node = 0; node < parts_.endpoint->nodes(); ++node)
        if (node != self_)
            parts_.endpoint->send(NodeId{node}, net::MessageKind::quit, net::Urgency::wake_service,
                                  {});
}

}  // namespace hiroba::omp
