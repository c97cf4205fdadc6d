// SPDX-License-Identifier: BSD-3-Clause
// Role: see ucx_provider.hpp; what UCX calls back, polling, the end of a peer, sleep.
// Invariant: callbacks run within ucp_worker_progress() or a posting call, with the latch held;
// they only queue what poll() tells afterwards.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "base/thread_context.hpp"
#include "net/provider/ucx/ucx_provider.hpp"

namespace hiroba::net::ucx {
namespace {

// How long the service thread does not watch the worker while others poll. One of them that begins
// to compute leaves what peers ask of its node waiting so long.
constexpr std::uint64_t look_beside_pollers_ns = 200'000;

}  // namespace

template <class T>
void UcxProvider::Queue<T>::push(T* item) noexcept {
    item->next = nullptr;
    (last != nullptr ? last->next : first) = item;
    last = item;
}

template <class T>
T* UcxProvider::Queue<T>::pop() noexcept {
    T* const item = first;
    if (item == nullptr) return nullptr;
    first = item->next;
    if (first == nullptr) last = nullptr;
    return item;
}

template struct UcxProvider::Queue<UcxProvider::Op>;
template struct UcxProvider::Queue<UcxProvider::Message>;

// --- what UCX calls back -------------------------------------------------------------------------

void UcxProvider::on_op_done(void* request, ucs_status_t status, void* data) noexcept {
    Op* const op = static_cast<Op*>(data);
    op->provider->ucp_.request_free(request);
    op->provider->op_done(op, status);
}

/// One of the calls for it has come back.
void UcxProvider::op_done(Op* op, ucs_status_t status) noexcept {
    op->failed |= status != UCS_OK;
    if (--op->under_way != 0 || op->waiting || op->parked) return;
    // One that is still to be told as failed is given back there.
    if (op->told) return op->queued ? void() : give_op(op);
    finish(op);
}

void UcxProvider::on_puts_flushed(void* request, ucs_status_t status, void* data) noexcept {
    Peer& peer = *static_cast<Peer*>(data);
    peer.provider->ucp_.request_free(request);
    peer.provider->end_puts(peer, status);
}

/// The flush is over that came behind `puts_before`. The next begins in poll(), outside of UCX.
void UcxProvider::end_puts(Peer& peer, ucs_status_t status) noexcept {
    for (Op* const op : peer.puts_before) op_done(op, status);
    peer.puts_before.clear();
    peer.flushing_puts = false;
    if (!peer.puts.empty()) to_flush_.push_back(&peer);
}

// A connection breaks a moment before the peer leaves in good order, too. So a request that fails
// by it is told as failed only when the launcher says that the peer is lost.
void UcxProvider::finish(Op* op) noexcept {
    op->parked = op->failed && !peers_[op->peer.value].lost;
    if (!op->parked) finished_.push(op);
}

void UcxProvider::on_sent(void* request, ucs_status_t, void* data) noexcept {
    Message* const message = static_cast<Message*>(data);
    message->provider->ucp_.request_free(request);
    --message->peer->sends;
    std::free(message);
}

void UcxProvider::on_flushed(void* request, ucs_status_t, void* data) noexcept {
    Peer& peer = *static_cast<Peer*>(data);
    peer.flushing = false;
    peer.provider->ucp_.request_free(request);
}

void UcxProvider::on_closed(void* request, ucs_status_t, void* data) noexcept {
    static_cast<UcxProvider*>(data)->ucp_.request_free(request);
}

void UcxProvider::on_error(void* data, ucp_ep_h, ucs_status_t) noexcept {
    Peer& peer = *static_cast<Peer*>(data);
    peer.broken = true;
    peer.provider->any_broken_ = true;
}

ucs_status_t UcxProvider::on_message(void* data, const void*, std::size_t, void* bytes,
                                     std::size_t count, const ucp_am_recv_param_t*) noexcept {
    UcxProvider& self = *static_cast<UcxProvider*>(data);
    Header header{};
    // A peer that can write to the worker can write to all memory; a bad length is a node's bug.
    HIROBA_INVARIANT(count >= sizeof header, "message of %lu bytes", count);
    std::memcpy(&header, bytes, sizeof header);
    HIROBA_INVARIANT(header.from < self.setup_.nodes, "message of node %u", header.from);
    const bool wakes_service = header.urgency == static_cast<std::uint8_t>(Urgency::wake_service);
    if (wakes_service) self.sleepers_[static_cast<std::size_t>(Sleeper::service)].ring();
    if (header.kind == bell) {
        ++self.bells_;
        return UCS_OK;
    }
    auto* const message = static_cast<Message*>(std::malloc(sizeof(Message) + count));
    HIROBA_INVARIANT(message != nullptr, "no memory for a message of %lu bytes", count);
    *message = {nullptr, &self, nullptr, count};
    std::memcpy(message->data(), bytes, count);
    (header.kind == word_kind ? self.words_ : self.arrived_).push(message);
    return UCS_OK;
}

// --- the end of a peer ---------------------------------------------------------------------------

void UcxProvider::close_endpoint(Peer& peer) noexcept {
    if (peer.endpoint == nullptr) return;
    const CallsOfOwnLibrary of_ucx;
    ucp_request_param_t forced{};
    forced.op_attr_mask =
        UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    forced.flags = UCP_EP_CLOSE_FLAG_FORCE;
    forced.cb.send = on_closed;
    forced.user_data = this;
    peer.keys.forget(ucp_);
    ucp_.ep_close_nbx(peer.endpoint, &forced);
    peer.endpoint = nullptr;
}

/// No key comes any more: they fail once somebody says that the peer is lost.
void UcxProvider::park_waiting(Peer& peer) noexcept {
    for (Op* const op : peer.waiting) {
        op->waiting = false;
        op->parked = true;
    }
    peer.waiting.clear();
}

/// Tells requests under way to the peer as failed at once, whether or not UCX ever calls back.
void UcxProvider::lose(Peer& peer) noexcept {
    if (peer.lost) return;
    peer.gone = peer.lost = true;
    peer.silent_at_ns = 0;
    close_endpoint(peer);
    park_waiting(peer);
    const NodeId rank{static_cast<std::uint32_t>(&peer - peers_.data())};
    for (std::size_t i = 0; i < ops_max; ++i) {
        Op& op = ops_[i];
        if (!op.in_use || op.told || op.peer != rank || (op.under_way == 0 && !op.parked)) continue;
        op.parked = false;
        op.told = true;
        op.queued = true;
        op.failed = true;
        finished_.push(&op);
    }
}

// The launcher reports nodes that died. A node that still runs long after a connection broke, and
// has heard nothing, has been cut off.
void UcxProvider::leave_broken() noexcept {
    any_broken_ = false;
    for (Peer& peer : peers_) {
        if (!peer.broken) continue;
        peer.broken = false;
        if (peer.gone) continue;
        peer.gone = true;
        close_endpoint(peer);
        park_waiting(peer);
        if (silence_max_s_ == 0) continue;
        peer.silent_at_ns = now_ns() + silence_max_s_ * 1'000'000'000;
        next_silent_ns_ = std::min(next_silent_ns_, peer.silent_at_ns);
    }
}

void UcxProvider::tell_silent(Arrivals& arrivals) noexcept {
    const std::uint64_t now = now_ns();
    if (now < next_silent_ns_) return;
    next_silent_ns_ = ~std::uint64_t{0};
    for (Peer& peer : peers_) {
        if (peer.silent_at_ns == 0) continue;
        if (peer.silent_at_ns > now) {
            next_silent_ns_ = std::min(next_silent_ns_, peer.silent_at_ns);
            continue;
        }
        lose(peer);
        latch_.unlock();
        arrivals.silent(NodeId{static_cast<std::uint32_t>(&peer - peers_.data())});
        latch_.lock();
    }
}

void UcxProvider::peer_lost(NodeId peer) noexcept {
    {
        const std::scoped_lock guard{latch_};
        if (peer.value >= peers_.size() || peer == setup_.self) return;
        lose(peers_[peer.value]);
    }
    for (Sleepers& sleepers : sleepers_) sleepers.ring();
}

// --- polling -------------------------------------------------------------------------------------

std::size_t UcxProvider::poll(Arrivals& arrivals, std::size_t count_max) noexcept {
    if (watch_.count_poll()) [[unlikely]]
        sleepers_[static_cast<std::size_t>(Sleeper::service)].ring();
    latch_.lock();
    {
        const CallsOfOwnLibrary of_ucx;
        // Once: what has come is told before more is looked for, which is a call of the kernel.
        ucp_.worker_progress(worker_);
        while (!to_flush_.empty()) {
            Peer* const peer = to_flush_.back();
            to_flush_.pop_back();
            flush_puts(*peer);
        }
        while (Message* const word = words_.pop()) {
            take_word(*word);
            std::free(word);
        }
    }
    std::size_t told = std::exchange(bells_, 0);
    if (any_broken_) [[unlikely]] {
        leave_broken();
    }
    if (next_silent_ns_ != ~std::uint64_t{0}) [[unlikely]]
        tell_silent(arrivals);
    while (Op* const op = finished_.pop()) {
        const OpId id = op->id;
        const NodeId peer = op->peer;
        const bool failed = op->failed;
        op->queued = false;
        if (!failed && op->old != nullptr) *op->old = op->result;
        // Otherwise UCX still knows of it, and on_op_done() gives it back.
        if (op->under_way == 0) give_op(op);
        latch_.unlock();
        if (failed)
            arrivals.failed(id, peer);
        else
            arrivals.completed(id);
        ++told;
        latch_.lock();
    }
    for (std::size_t i = 0; i < count_max; ++i) {
        Message* const message = arrived_.pop();
        if (message == nullptr) break;
        // A message of another node has no peer here.
        if (message->peer != nullptr) --message->peer->sends;
        latch_.unlock();
        Header header{};
        std::memcpy(&header, message->data(), sizeof header);
        arrivals.message(NodeId{header.from}, static_cast<MessageKind>(header.kind),
                         {message->data() + sizeof header, message->bytes - sizeof header});
        std::free(message);
        ++told;
        latch_.lock();
    }
    latch_.unlock();
    return told;
}

// --- sleep ---------------------------------------------------------------------------------------

/// Also arms the worker: from then on what comes makes its descriptor readable. A device need not
/// tell of what came just before: Soft-RoCE does not.
bool UcxProvider::anything_to_do() noexcept {
    const std::scoped_lock guard{latch_};
    const auto is_queued = [this] {
        return !finished_.empty() || !arrived_.empty() || !words_.empty() || bells_ != 0 ||
               any_broken_ || !to_flush_.empty();
    };
    if (is_queued()) return true;
    const CallsOfOwnLibrary of_ucx;
    return ucp_.worker_arm(worker_) != UCS_OK || ucp_.worker_progress(worker_) != 0 || is_queued();
}

void UcxProvider::sleep(Sleeper role, std::uint64_t timeout_ns, bool (*ready)(void*),
                        void* argument) noexcept {
    Sleepers& sleepers = sleepers_[static_cast<std::size_t>(role)];
    // Does not arm the worker: each arrival would wake it beside the thread that polls for it, and
    // over shared memory each sender would knock. A listener watches for threads that may be
    // asleep.
    const bool leaves_to_pollers = role == Sleeper::service && !setup_.has_listener;
    if (leaves_to_pollers && watch_.others_polled()) {
        sleepers.sleep({}, std::min(timeout_ns, look_beside_pollers_ns), ready, argument);
        return;
    }
    struct Question {
        UcxProvider* provider;
        bool leaves_to_pollers;
        bool (*ready)(void*);
        void* argument;
    } question{this, leaves_to_pollers, ready, argument};
    const auto arrived = [](void* asked) {
        const auto& about = *static_cast<Question*>(asked);
        return (about.leaves_to_pollers && about.provider->watch_.called_away()) ||
               about.ready(about.argument) || about.provider->anything_to_do();
    };
    // What another thread takes at once wakes this one all the same, inside the kernel.
    if (leaves_to_pollers) watch_.watch_device();
    sleepers.sleep({event_fd_, -1}, timeout_ns, arrived, &question);
    if (leaves_to_pollers) watch_.unwatch_device();
}

void UcxProvider::wake(NodeId node, Sleeper role) noexcept {
    if (node == setup_.self) return sleepers_[static_cast<std::size_t>(role)].ring();
    const Urgency urgency = role == Sleeper::service ? Urgency::wake_service : Urgency::when_polled;
    Message* const message = make_message(&peers_[node.value], bell, urgency, {});
    const std::scoped_lock guard{latch_};
    // Where sends_max messages are under way the target has enough to wake up for.
    send_bytes(peers_[node.value], message, true);
}

}  // namespace hiroba::net::ucx
