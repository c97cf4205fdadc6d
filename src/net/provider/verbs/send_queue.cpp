// SPDX-License-Identifier: BSD-3-Clause
// Role: see send_queue.hpp.
#include "net/provider/verbs/send_queue.hpp"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "base/log.hpp"
#include "base/thread_context.hpp"
#include "net/provider/verbs/unfinished.hpp"

namespace hiroba::net::verbs {
namespace {

constexpr std::uint64_t ask_first_ns = 2'000'000, ask_last_ns = 100'000'000;
constexpr std::uint32_t unreported_max = SendQueue::depth / 4;
constexpr std::uint32_t first_packet = 0;
constexpr std::uint32_t mends_max = 8;

Change change_of(const ibv_send_wr& wr) noexcept {
    switch (wr.opcode) {
        case IBV_WR_RDMA_READ: return Change::reads;
        case IBV_WR_ATOMIC_CMP_AND_SWP:
        case IBV_WR_ATOMIC_FETCH_AND_ADD: return Change::atomic;
        default: return Change::sends;
    }
}

}  // namespace

SendQueue::SendQueue(Device& device, Introducer& introducer, std::uint32_t index,
                     std::uint32_t nodes, bool reports_each_list)
    : device_(device),
      introducer_(introducer),
      index_(index),
      reports_each_list_(reports_each_list),
      connections_(nodes) {}

SendQueue::~SendQueue() {
    const CallsOfOwnLibrary of_verbs;
    for (const auto& to : connections_)
        if (to != nullptr && to->qp != nullptr) device_.ibv().destroy_qp(to->qp);
    if (pieces_mr_ != nullptr) device_.ibv().dereg_mr(pieces_mr_);
    if (pieces_ != nullptr)
        munmap(pieces_, big_pieces * big_piece_bytes + small_pieces * small_piece_bytes);
    if (cq_ != nullptr) device_.ibv().destroy_cq(cq_);
}

Result<void> SendQueue::open() {
    auto cq = device_.make_cq(cqe_);
    if (!cq) return cq.error();
    cq_ = *cq;
    constexpr std::size_t bytes = big_pieces * big_piece_bytes + small_pieces * small_piece_bytes;
    // Shared, so that a fork of the program leaves the device and this node the same pages.
    void* const start =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return device_.wrong("mmap", errno);
    pieces_ = static_cast<std::byte*>(start);
    pieces_mr_ = device_.pin(pieces_, bytes);
    if (pieces_mr_ == nullptr) return device_.cannot_pin(bytes, errno);
    for (std::size_t i = 0; i < big_pieces; ++i)
        free_big_.push_back({pieces_ + i * big_piece_bytes, true});
    for (std::size_t i = 0; i < small_pieces; ++i)
        free_small_.push_back(
            {pieces_ + big_pieces * big_piece_bytes + i * small_piece_bytes, false});
    return {};
}

// --- connections ---------------------------------------------------------------------------------

bool SendQueue::is_open(NodeId peer) noexcept {
    auto& slot = connections_[peer.value];
    if (slot == nullptr) slot = std::make_unique<Connection>();
    Connection& to = *slot;
    if (to.state == Connection::State::open) return true;
    if (to.state != Connection::State::none) return false;
    const CallsOfOwnLibrary of_verbs;
    to.qp = device_.make_qp(cq_, cq_, nullptr, depth, inline_bytes_);
    if (to.qp == nullptr)
        die(exit_environment, "provider verbs (%s): no queue pair to node %u: %s; see ulimit -l",
            device_.name().c_str(), peer.value, strerror(errno));
    to.inlined = std::make_unique<std::byte[]>(std::size_t{depth} * inline_bytes_);
    has_connections_ = true;
    begin_to_ask(peer, to);
    return false;
}

void SendQueue::begin_to_ask(NodeId peer, Connection& to) noexcept {
    const std::uint64_t now = now_ns();
    to.state = Connection::State::asking;
    to.silence.begin(now);
    to.ask_after_ns = ask_first_ns;
    to.ask_at_ns = now + to.ask_after_ns;
    asking_.push_back(peer);
    introducer_.ask(peer, index_, to.qp->qp_num, to.instead_of);
}

void SendQueue::ask_again(std::uint64_t now) noexcept {
    for (const NodeId peer : asking_) {
        Connection& to = *connection(peer);
        if (now < to.ask_at_ns) continue;
        to.ask_after_ns = std::min(2 * to.ask_after_ns, ask_last_ns);
        to.ask_at_ns = now + to.ask_after_ns;
        introducer_.ask(peer, index_, to.qp->qp_num, to.instead_of);
    }
}

bool SendQueue::opened(NodeId peer, const PortAddress& address, std::uint32_t own_number,
                       std::uint32_t number, std::uint32_t expected) noexcept {
    Connection* const to = connection(peer);
    // An answer that came twice.
    if (to == nullptr || to->state != Connection::State::asking || to->qp->qp_num != own_number)
        return true;
    const CallsOfOwnLibrary of_verbs;
    std::erase(asking_, peer);
    to->silence.end();
    to->mtu_bytes = device_.path_mtu_bytes(address);
    if (!device_.accept_from(to->qp, address, number, first_packet) ||
        !device_.send_to(to->qp, address, first_packet)) {
        const int error = errno;
        fail_all(peer, *to);
        errno = error;
        return false;
    }
    to->state = Connection::State::open;
    post_unfinished(peer, *to, expected);
    return true;
}

// --- connections that break ----------------------------------------------------------------------

/// Another queue pair takes the place of the one that broke; what is under way waits for it.
void SendQueue::mend(NodeId peer, const char* why) noexcept {
    Connection& to = *connection(peer);
    log(LogLayer::net, LogLevel::info,
        "verbs (%s): connection %u of queue %u to node %u broke: %s; %u requests under way",
        device_.name().c_str(), to.qp->qp_num, index_, peer.value, why, to.posted - to.reaped);
    const CallsOfOwnLibrary of_verbs;
    std::uint32_t inline_bytes = inline_bytes_;
    ibv_qp* const fresh =
        ++to.mends > mends_max ? nullptr : device_.make_qp(cq_, cq_, nullptr, depth, inline_bytes);
    if (fresh == nullptr || inline_bytes < inline_bytes_) {
        say("provider verbs (%s): no way to node %u: %s", device_.name().c_str(), peer.value, why);
        if (fresh != nullptr) device_.ibv().destroy_qp(fresh);
        return fail_all(peer, to);
    }
    to.instead_of = to.qp->qp_num;
    device_.give_up(to.qp);
    device_.ibv().destroy_qp(to.qp);
    to.qp = fresh;
    begin_to_ask(peer, to);
}

/// Posts again what the other end has not done.
void SendQueue::post_unfinished(NodeId peer, Connection& to, std::uint32_t expected) noexcept {
    struct Left {
        Posted posted;
        Request request;
    };
    std::vector<Left> left;
    for (; to.reaped != to.posted; ++to.reaped, --under_way_) {
        const Request& request = to.requests[to.reaped % depth];
        const Posted& posted = to.sent[to.reaped % depth];
        switch (fate_of(change_of(posted.wr), posted.packets_end, expected)) {
            case Fate::carried_out:
                done_without_completion_.push_back({peer, request, true});
                break;
            case Fate::repeat: left.push_back({posted, request}); break;
            case Fate::unknown:
                say("provider verbs (%s): the connection to node %u broke before the answer of an "
                    "atomic came: nobody knows what it found",
                    device_.name().c_str(), peer.value);
                done_without_completion_.push_back({peer, request, false});
        }
    }
    to.unreported = 0;
    to.packets = first_packet;
    // Inlined bytes of each move to a place that none after it has left its own in.
    for (const Left& again : left) add(peer, again.posted.wr, again.posted.local, again.request);
    ring();
    if (to.instead_of != 0)
        log(LogLayer::net, LogLevel::info,
            "verbs (%s): connection %u of queue %u to node %u made anew; %lu requests repeated",
            device_.name().c_str(), to.qp->qp_num, index_, peer.value, left.size());
}

/// Gives the connection up for good, and fails all that was posted to it.
void SendQueue::fail_all(NodeId peer, Connection& to) noexcept {
    to.state = Connection::State::broken;
    device_.give_up(to.qp);
    for (; to.reaped != to.posted; ++to.reaped, --under_way_)
        done_without_completion_.push_back({peer, to.requests[to.reaped % depth], false});
}

/// As if the device had given up, at a moment when the fate of all that is under way can be told.
void SendQueue::break_for_test(Connection& to) noexcept {
    if (to.until_break != 0 || break_after_ == 0) return;
    for (std::uint32_t i = to.reaped; i != to.posted; ++i)
        if (change_of(to.sent[i % depth].wr) == Change::atomic) return;
    to.until_break = break_after_;
    device_.give_up(to.qp);
}

void SendQueue::give_up(NodeId peer) noexcept {
    Connection* const to = connection(peer);
    if (to == nullptr || to->qp == nullptr) return;
    const CallsOfOwnLibrary of_verbs;
    // Requests posted to an open connection come back by themselves.
    if (to->state == Connection::State::asking) fail_all(peer, *to);
    std::erase(asking_, peer);
    to->state = Connection::State::broken;
    device_.give_up(to->qp);
}

std::uint32_t SendQueue::under_way(NodeId peer) const noexcept {
    const Connection* const to = connection(peer);
    return to == nullptr ? 0 : to->posted - to->reaped;
}

bool SendQueue::is_silent(NodeId peer, std::uint64_t now, std::uint64_t silence_ns) noexcept {
    Connection* const to = connection(peer);
    if (to == nullptr || to->state == Connection::State::broken) return false;
    if (to->posted == to->reaped && to->state != Connection::State::asking) return false;
    // Requests that do not report are not waited for.
    if (to->state == Connection::State::open && to->posted - to->reaped == to->unreported)
        return false;
    to->silence.begin_once(now);
    return to->silence.is_longer_than(silence_ns, now);
}

bool SendQueue::reports_last(NodeId peer) const noexcept {
    const Connection* const to = connection(peer);
    return to == nullptr || to->unreported == 0;
}

// --- posting -------------------------------------------------------------------------------------

std::uint32_t SendQueue::room(NodeId peer) const noexcept {
    const Connection* const to = connection(peer);
    if (to == nullptr || to->state != Connection::State::open) return 0;
    // The queue must hold a completion of each, should all fail, beside those of queue pairs whose
    // place others have taken.
    const std::uint32_t most = std::max(cqe_ / 2, under_way_);
    return std::min(depth - (to->posted - to->reaped), most - under_way_);
}

Piece SendQueue::take_piece(std::size_t bytes) noexcept {
    auto& free = bytes <= small_piece_bytes && !free_small_.empty() ? free_small_ : free_big_;
    if (free.empty()) return {};
    const Piece piece = free.back();
    free.pop_back();
    return piece;
}

void SendQueue::give_piece(Piece piece) noexcept {
    // As many as there were at open(): no allocation.
    if (piece.memory != nullptr) (piece.is_big ? free_big_ : free_small_).push_back(piece);
}

void SendQueue::add(NodeId peer, const ibv_send_wr& wr, const ibv_sge& local,
                    const Request& request) noexcept {
    if (list_count_ == list_max || (list_count_ != 0 && list_peer_ != peer)) ring();
    Connection& to = *connection(peer);
    list_peer_ = peer;
    const std::size_t at = list_count_++;
    list_[at] = wr;
    list_[at].wr_id = std::uint64_t{peer.value} << 32 | to.posted;
    list_[at].next = nullptr;
    list_memory_[at] = local;
    const std::uint32_t place = to.posted % depth;
    // The caller's bytes need not outlive this call, and may have to be sent again.
    if ((wr.send_flags & IBV_SEND_INLINE) != 0 && local.length != 0) {
        std::byte* const kept = to.inlined.get() + std::size_t{place} * inline_bytes_;
        std::memmove(kept, reinterpret_cast<const void*>(local.addr), local.length);
        list_memory_[at].addr = reinterpret_cast<std::uintptr_t>(kept);
    }
    to.packets = (to.packets + packets_of(local.length, to.mtu_bytes)) & packet_mask;
    to.sent[place] = {wr, list_memory_[at], to.packets};
    if (break_after_ != 0 && to.until_break != 0) --to.until_break;
    list_[at].sg_list = &list_memory_[at];
    list_[at].num_sge = local.length == 0 ? 0 : 1;
    if (at != 0) list_[at - 1].next = &list_[at];
    to.requests[place] = request;
    ++to.posted;
    ++under_way_;
    ++to.unreported;
    if (to.unreported >= unreported_max ||
        (!reports_each_list_ && request.piece.memory != nullptr)) {
        list_[at].send_flags |= IBV_SEND_SIGNALED;
        to.unreported = 0;
    }
}

void SendQueue::ring() noexcept {
    const std::size_t count = std::exchange(list_count_, 0);
    if (count == 0) return;
    Connection& to = *connection(list_peer_);
    // Broken in the meantime: they go with what is posted again.
    if (to.state != Connection::State::open) return;
    if (reports_each_list_) {
        list_[count - 1].send_flags |= IBV_SEND_SIGNALED;
        to.unreported = 0;
    }
    ibv_send_wr* bad = nullptr;
    const CallsOfOwnLibrary of_verbs;
    const int error = ibv_post_send(to.qp, &list_[0], &bad);
    HIROBA_INVARIANT(error != ENOMEM, "send queue of depth %u to node %u is full: %u under way",
                     depth, list_peer_.value, to.posted - to.reaped);
    if (error != 0) return mend(list_peer_, strerror(error));
    break_for_test(to);
}

// --- completions ---------------------------------------------------------------------------------

std::size_t SendQueue::take_completions(std::size_t count_max) noexcept {
    next_ = kept_ = 0;
    if (under_way_ == 0) return 0;
    const CallsOfOwnLibrary of_verbs;
    const int count = ibv_poll_cq(cq_, static_cast<int>(std::min(count_max, completions_.size())),
                                  completions_.data());
    HIROBA_INVARIANT(count >= 0, "ibv_poll_cq gave %d", count);
    kept_ = static_cast<std::size_t>(count);
    return kept_;
}

bool SendQueue::arm(bool errors_only) noexcept {
    if (next_ != kept_ || !done_without_completion_.empty()) return true;
    // The peer's answer, which makes the first connection, wakes threads that sleep.
    if (!has_connections_ || (errors_only && under_way_ == 0)) return false;
    const CallsOfOwnLibrary of_verbs;
    ibv_req_notify_cq(cq_, errors_only ? 1 : 0);
    return take_completions(completions_.size()) != 0;
}

}  // namespace hiroba::net::verbs
