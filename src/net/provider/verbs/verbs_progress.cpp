// SPDX-License-Identifier: BSD-3-Clause
// Role: see verbs_provider.hpp; polling, what providers say to each other, the end of a peer,
// sleep.
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "base/thread_context.hpp"
#include "net/provider/apply_atomic.hpp"
#include "net/provider/verbs/verbs_provider.hpp"

namespace hiroba::net::verbs {
namespace {

// About a millisecond of the processor's counter, which is cheaper to read than the clock.
constexpr std::uint64_t look_every_ticks = 1u << 21;
// Polls. Connections are made once, and what was sent is gone: nobody waits for either but who
// finds no room, which is seen at once.
constexpr std::uint32_t introduce_every = 32, reap_sends_every = 8;
constexpr std::size_t arrivals_max = 16;
constexpr std::uint64_t look_beside_pollers_ns = 200'000;

}  // namespace

// --- polling -------------------------------------------------------------------------------------

std::size_t VerbsProvider::poll(Arrivals& arrivals, std::size_t count_max) noexcept {
    if (!connected_) return 0;
    watch_.count_poll();
    const std::uint32_t round = ++polls_;
    // Relaxed: a hint alone; introduce() reads what peers sent under the meeting's latch.
    if (round % introduce_every == 0 || was_met_.load(std::memory_order_relaxed)) introduce();
    std::size_t told = 0;
    for (const auto& lane : lanes_)
        if (!lane->is_idle()) told += poll(*lane, arrivals, count_max);
    if (round % reap_sends_every == 0 || messages_.any_waits())
        messages_.poll(count_max, [this](NodeId peer) { broke(peer); });
    told += deliver(arrivals, count_max);
    told += deliver_own(arrivals, count_max);
    look_after_peers(arrivals);
    return told;
}

std::size_t VerbsProvider::poll_own(Arrivals& arrivals, std::size_t count_max) noexcept {
    if (!connected_) return 0;
    Lane& lane = lane_of_thread();
    return lane.is_idle() ? 0 : poll(lane, arrivals, count_max);
}

std::size_t VerbsProvider::poll(Lane& lane, Arrivals& arrivals, std::size_t count_max) noexcept {
    return lane.poll(count_max, [&](OpId id, NodeId peer, bool failed) {
        if (failed)
            arrivals.failed(id, peer);
        else
            arrivals.completed(id);
    });
}

/// Connections that were asked for.
void VerbsProvider::introduce() noexcept {
    was_met_.store(false, std::memory_order_relaxed);
    std::array<Meeting::Datagram, 16> answers;
    const std::size_t count = meeting_.poll(answers);
    for (std::size_t i = 0; i < count; ++i) {
        const Meeting::Datagram& datagram = answers[i];
        if (datagram.index > lanes_.size()) continue;
        SendQueue& queue =
            datagram.index == 0 ? messages_.queue() : lanes_[datagram.index - 1]->queue();
        const NodeId peer{datagram.from};
        const std::scoped_lock guard{queue.latch()};
        if (!queue.opened(peer, meeting_.address(peer), datagram.asker, datagram.answerer,
                          datagram.expected)) {
            say("provider verbs (%s): no way to node %u: %s", device_->name().c_str(), peer.value,
                strerror(errno));
            broke(peer);
        }
    }
}

std::size_t VerbsProvider::deliver(Arrivals& arrivals, std::size_t count_max) noexcept {
    std::array<ibv_wc, arrivals_max> come;
    const std::size_t count =
        messages_.receive(std::span(come).first(std::min(count_max, arrivals_max)));
    for (std::size_t i = 0; i < count; ++i) {
        const ibv_wc& arrival = come[i];
        if (arrival.status != IBV_WC_SUCCESS) continue;  // a connection that ends
        const NodeId from = meeting_.sender(arrival.qp_num);
        const Tag tag = Tag::decode(ntohl(arrival.imm_data));
        if (tag.wakes_service) sleepers_[static_cast<std::size_t>(Sleeper::service)].ring();
        const Bytes body{messages_.buffer(arrival), arrival.byte_len};
        if (tag.kind == MessageQueue::word_kind) {
            take_word(from, body);
            continue;
        }
        std::vector<std::byte>& partial = peers_[from.value].partial;
        if (!tag.more && partial.empty()) {
            arrivals.message(from, static_cast<MessageKind>(tag.kind), body);
            continue;
        }
        partial.insert(partial.end(), body.begin(), body.end());
        HIROBA_INVARIANT(partial.size() <= message_bytes_max, "message of %lu bytes of node %u",
                         partial.size(), from.value);
        if (tag.more) continue;
        arrivals.message(from, static_cast<MessageKind>(tag.kind), partial);
        partial.clear();
    }
    messages_.give_back(std::span(come).first(count));
    return count;
}

std::size_t VerbsProvider::deliver_own(Arrivals& arrivals, std::size_t count_max) noexcept {
    std::size_t told = 0;
    // Relaxed: the latch orders what is there; whoever sends rings behind it.
    if (!any_own_.load(std::memory_order_relaxed)) return 0;
    for (; told < count_max; ++told) {
        OwnMessage message;
        {
            const std::scoped_lock guard{own_latch_};
            if (own_messages_.empty()) break;
            message = std::move(own_messages_.front());
            own_messages_.erase(own_messages_.begin());
            any_own_.store(!own_messages_.empty(), std::memory_order_relaxed);
        }
        arrivals.message(setup_.self, message.kind, message.body);
    }
    return told;
}

// --- what providers say to each other ------------------------------------------------------------

// A peer that can write to the queue pair can write to all memory; a bad number is a node's bug.
void VerbsProvider::take_word(NodeId from, Bytes body) noexcept {
    if (body.empty()) return;  // a bell: it woke whoever took it
    Word word;
    HIROBA_INVARIANT(body.size() == sizeof word, "word of %lu bytes of node %u", body.size(),
                     from.value);
    std::memcpy(&word, body.data(), sizeof word);
    HIROBA_INVARIANT(word.region < regions_.count(), "region %u of node %u", word.region,
                     from.value);
    switch (word.what) {
        case Word::What::key_wanted: return answer_key(from, word);
        case Word::What::key: return keys_->tell(from, word.region, word.chunk, word.number);
        case Word::What::no_key:
            die(exit_environment,
                "node %u cannot pin more of its memory: %s; raise `ulimit -l` there, or lower "
                "HIROBA_HEAP",
                from.value, strerror(static_cast<int>(word.number)));
        case Word::What::atomic_wanted: {
            std::byte* const place = own_place(RegionId{word.region}, word.offset, 8);
            const std::atomic_ref<std::uint64_t> target(*reinterpret_cast<std::uint64_t*>(place));
            word.operand =
                apply_atomic(target, static_cast<AtomicOp>(word.op), word.operand, word.expected);
            word.what = Word::What::atomic_done;
            return messages_.say(from, word);
        }
        case Word::What::atomic_done: {
            HIROBA_INVARIANT(word.chunk - 1 < lanes_.size(), "lane %u of node %u", word.chunk,
                             from.value);
            Lane& lane = *lanes_[word.chunk - 1];
            const std::scoped_lock guard{lane.queue().latch()};
            lane.answered(word.number, word.generation, word.operand);
            return lane.queue().ring();
        }
        case Word::What::bell: return;
    }
}

void VerbsProvider::answer_key(NodeId from, const Word& word) noexcept {
    Word answer = word;
    const ibv_mr* const pinned = regions_.pin(word.region, word.chunk);
    answer.what = pinned != nullptr ? Word::What::key : Word::What::no_key;
    answer.number = pinned != nullptr ? pinned->rkey : static_cast<std::uint32_t>(errno);
    messages_.say(from, answer);
}

// --- the end of a peer ---------------------------------------------------------------------------

/// Tells requests under way to the peer as failed at once.
void VerbsProvider::lose(NodeId rank) noexcept {
    Peer& peer = peers_[rank.value];
    if (peer.lost.exchange(true)) return;
    peer.gone.store(true);
    peer.silent_at_ns.store(0);
    messages_.lose(rank);
    for (const auto& lane : lanes_) {
        const std::scoped_lock guard{lane->queue().latch()};
        lane->lose(rank);
    }
}

void VerbsProvider::peer_lost(NodeId peer) noexcept {
    if (!connected_ || peer.value >= peers_.size() || peer == setup_.self) return;
    lose(peer);
    for (Sleepers& sleepers : sleepers_) sleepers.ring();
}

// The launcher reports nodes that died. A node that still runs long after a connection broke, or
// after a peer was asked something and did not answer, has been cut off.
void VerbsProvider::look_after_peers(Arrivals& arrivals) noexcept {
    const std::uint64_t ticks = __builtin_ia32_rdtsc();
    if (!any_broken_.load(std::memory_order_relaxed) && ticks - looked_at_ticks_ < look_every_ticks)
        return;
    any_broken_.exchange(false, std::memory_order_acquire);  // pairs with broke()
    looked_at_ticks_ = ticks;
    const std::uint64_t now = now_ns();
    const auto each_queue = [this](auto&& look) {
        for (std::size_t i = 0; i <= lanes_.size(); ++i) {
            if (i != 0 && lanes_[i - 1]->is_idle()) continue;
            SendQueue& queue = i == 0 ? messages_.queue() : lanes_[i - 1]->queue();
            const std::scoped_lock guard{queue.latch()};
            look(queue);
        }
    };
    each_queue([&](SendQueue& queue) { queue.ask_again(now); });
    for (std::uint32_t rank = 0; rank < setup_.nodes; ++rank) {
        Peer& peer = peers_[rank];
        if (peer.broken.exchange(false) && !peer.gone.exchange(true) && silence_max_ns_ != 0)
            peer.silent_at_ns.store(now + silence_max_ns_);
        if (peer.lost.load(std::memory_order_relaxed) || silence_max_ns_ == 0) continue;
        const std::uint64_t silent_at = peer.silent_at_ns.load();
        bool is_silent = silent_at != 0 && now >= silent_at;
        each_queue([&](SendQueue& queue) {
            is_silent |= queue.is_silent(NodeId{rank}, now, silence_max_ns_);
        });
        if (!is_silent || rank == setup_.self.value) continue;
        lose(NodeId{rank});
        arrivals.silent(NodeId{rank});
    }
}

bool VerbsProvider::drained() noexcept {
    if (!connected_) return true;
    for (const auto& lane : lanes_) {
        const std::scoped_lock guard{lane->queue().latch()};
        if (!lane->is_drained()) return false;
    }
    bool all = true;
    for (std::uint32_t rank = 0; rank < setup_.nodes; ++rank) {
        const NodeId peer{rank};
        if (is_gone(peer)) continue;
        messages_.flush(peer);
        const std::scoped_lock guard{messages_.queue().latch()};
        all = all && messages_.queue().under_way(peer) == 0 && !messages_.has_waiting(peer);
    }
    return all;
}

// --- sleep ---------------------------------------------------------------------------------------

/// Takes the events that have come: the descriptor is quiet until another one comes.
void VerbsProvider::silence_channel() noexcept {
    const CallsOfOwnLibrary of_verbs;
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    while (device_->ibv().get_cq_event(device_->channel(), &cq, &context) == 0)
        device_->ibv().ack_cq_events(cq, 1);
}

/// Also arms the queues: from then on what comes makes the channel readable.
bool VerbsProvider::anything_to_do(Sleeper role) noexcept {
    silence_channel();
    if (any_broken_.load(std::memory_order_relaxed)) return true;
    {
        const std::scoped_lock guard{own_latch_};
        if (!own_messages_.empty()) return true;
    }
    // Also those with nothing under way: a thread may post to one while this one sleeps, and
    // compute.
    for (const auto& lane : lanes_) {
        const std::scoped_lock guard{lane->queue().latch()};
        if (lane->has_finished() || lane->queue().arm()) return true;
    }
    if (messages_.arm_sends()) return true;
    if (meeting_.arm()) {
        was_met_.store(true, std::memory_order_relaxed);
        return true;
    }
    return messages_.arm(role == Sleeper::service && !setup_.has_listener);
}

void VerbsProvider::sleep(Sleeper role, std::uint64_t timeout_ns, bool (*ready)(void*),
                          void* argument) noexcept {
    Sleepers& sleepers = sleepers_[static_cast<std::size_t>(role)];
    // A listener is to hear of each arrival, unless somebody polls for it.
    if (role == Sleeper::service && setup_.has_listener && watch_.others_polled()) {
        sleepers.sleep({}, std::min(timeout_ns, look_beside_pollers_ns), ready, argument);
        return;
    }
    struct Question {
        VerbsProvider* provider;
        Sleeper role;
        bool (*ready)(void*);
        void* argument;
    } question{this, role, ready, argument};
    const auto arrived = [](void* asked) {
        const auto& about = *static_cast<Question*>(asked);
        return about.ready(about.argument) ||
               (about.provider->connected_ && about.provider->anything_to_do(about.role));
    };
    sleepers.sleep({device_->channel()->fd, -1}, timeout_ns, arrived, &question);
}

void VerbsProvider::wake(NodeId node, Sleeper role) noexcept {
    if (node == setup_.self) return sleepers_[static_cast<std::size_t>(role)].ring();
    if (!connected_ || is_gone(node)) return;
    Word word;
    word.what = Word::What::bell;
    word.op = role == Sleeper::service ? 1 : 0;
    messages_.say(node, word);
}

}  // namespace hiroba::net::verbs
