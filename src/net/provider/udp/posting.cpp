// SPDX-License-Identifier: BSD-3-Clause
// Role: see udp_provider.hpp; what users post: puts, gets, atomics, lists, kicks, messages. All of
// it is composed into the peer's send window, and leaves by transmit().
#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/fatal.hpp"
#include "net/provider/apply_atomic.hpp"
#include "net/provider/checks.hpp"
#include "net/provider/udp/udp_provider.hpp"

namespace hiroba::net::udp {
namespace {

constexpr std::uint64_t get_bytes_max = ~std::uint32_t{0};

}  // namespace

// --- one-sided access ----------------------------------------------------------------------------

Post UdpProvider::post_op(NodeId to, const Op& op) noexcept {
    const std::scoped_lock lock{latch_};
    Peer& peer = *talk_to(to.value);
    const Post outcome = take_op(peer, op);
    if (outcome != Post::again) transmit(peer);
    return outcome;
}

/// Takes `op` over and composes it; transmit() is the caller's.
Post UdpProvider::take_op(Peer& peer, const Op& op) noexcept {
    if (free_ops_.empty()) return Post::again;
    const std::uint32_t index = free_ops_.take(ops_.get());
    ops_[index] = op;
    compose_taken(peer, index);
    return Post::posted;
}

/// The operation is where it stays until it is complete.
void UdpProvider::compose_taken(Peer& peer, std::uint32_t index) noexcept {
    ops_[index].peer = peer.node.value;
    ops_[index].pending = true;
    // Relaxed: written under the latch only. Who sees too few posts by himself.
    if (ops_[index].id.is_request())
        requests_.store(requests_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (peer.lost) {
        ops_[index].failed = true;
        return finish(index);
    }
    peer.to_compose.append(ops_.get(), index);
    compose(peer);
}

// The begin_* functions finish what concerns this node's own memory, or nothing at all; else the
// caller is to take over `op`. Its id, region and offset are the caller's.

Post UdpProvider::begin_put(NodeId to, Bytes from, Op& op) noexcept {
    std::byte* const target = mapped_address(to.value, op.region, op.offset, from.size());
    op.kind = Op::Kind::put;
    op.memory = const_cast<std::byte*>(from.data());
    op.bytes = from.size();
    if (from.empty()) return Post::done;
    if (to != setup_.self) return Post::posted;
    std::memcpy(target, from.data(), from.size());
    return Post::done;
}

Post UdpProvider::begin_get(NodeId from, MutableBytes to, Op& op) noexcept {
    const std::byte* const source = mapped_address(from.value, op.region, op.offset, to.size());
    HIROBA_INVARIANT(to.size() <= get_bytes_max, "get of %lu bytes; at most %lu", to.size(),
                     get_bytes_max);
    op.kind = Op::Kind::get;
    op.memory = to.data();
    op.bytes = to.size();
    if (to.empty()) return Post::done;
    if (from != setup_.self) return Post::posted;
    std::memcpy(to.data(), source, to.size());
    return Post::done;
}

Post UdpProvider::begin_atomic(NodeId at, std::uint64_t* old, Op& op) noexcept {
    HIROBA_INVARIANT((op.offset & 7) == 0, "atomic at offset %lu of region %u", op.offset,
                     op.region);
    std::byte* const word = mapped_address(at.value, op.region, op.offset, 8);
    op.kind = Op::Kind::atomic;
    op.memory = reinterpret_cast<std::byte*>(old);
    op.bytes = 8;
    if (at != setup_.self) return Post::posted;
    *old = apply_atomic(std::atomic_ref(*reinterpret_cast<std::uint64_t*>(word)), op.atomic,
                        op.rest.words.operand, op.rest.words.expected);
    return Post::done;
}

Post UdpProvider::put(OpId id, NodeId to, RegionId region, std::uint64_t offset,
                      Bytes from) noexcept {
    Op op{.region = region.value, .id = id, .offset = offset};
    return begin_put(to, from, op) == Post::done ? Post::done : post_op(to, op);
}

Post UdpProvider::get(OpId id, MutableBytes to, NodeId from, RegionId region,
                      std::uint64_t offset) noexcept {
    Op op{.region = region.value, .id = id, .offset = offset};
    return begin_get(from, to, op) == Post::done ? Post::done : post_op(from, op);
}

Post UdpProvider::atomic(OpId id, AtomicOp which, NodeId at, RegionId region, std::uint64_t offset,
                         std::uint64_t operand, std::uint64_t expected,
                         std::uint64_t* old) noexcept {
    Op op{.atomic = which,
          .region = region.value,
          .id = id,
          .offset = offset,
          .rest = {.words = {operand, expected}}};
    return begin_atomic(at, old, op) == Post::done ? Post::done : post_op(at, op);
}

Post UdpProvider::begin(const Work& work, Op& op) noexcept {
    op = {.atomic = work.op, .region = work.region.value, .id = work.id, .offset = work.offset};
    if (work.kind == Work::Kind::atomic)
        op.rest.words = {work.operand, work.expected};
    else
        op.rest.then = work.then;
    switch (work.kind) {
        case Work::Kind::put: return begin_put(work.peer, {work.memory, work.bytes}, op);
        case Work::Kind::get: return begin_get(work.peer, {work.memory, work.bytes}, op);
        case Work::Kind::atomic: return begin_atomic(work.peer, work.old, op);
        case Work::Kind::send: break;
    }
    return Post::posted;
}

std::size_t UdpProvider::post(std::span<Work> list) noexcept {
    if (list.size() == 1) return Provider::post(list);  // the shorter way
    const std::scoped_lock lock{latch_};
    Peer* composed = nullptr;
    const std::size_t taken = take_list(list, composed);
    if (composed != nullptr) transmit(*composed);
    return taken;
}

// The thread that holds the latch may be in a system call, which is not waited for unless `waits`.
std::size_t UdpProvider::post_with_next(std::span<Work> list, bool waits) noexcept {
    std::unique_lock lock{latch_, std::defer_lock};
    if (waits) {
        lock.lock();
    } else if (!lock.try_lock()) {
        return 0;
    }
    const bool is_alone = list.size() == 1 && list[0].peer != setup_.self;
    if (is_alone && (list[0].kind == Work::Kind::put || list[0].kind == Work::Kind::get)) {
        Peer& peer = *talk_to(list[0].peer.value);
        if (compose_record(list[0], peer)) {
            list[0].outcome = Post::posted;
            keep_for_next(peer, 1);
            return 1;
        }
    }
    Peer* composed = nullptr;
    const std::size_t taken = take_list(list, composed);
    if (composed != nullptr) keep_for_next(*composed, taken);
    return taken;
}

/// A put or get of one record that nothing waits before: what take_list() and compose() make of it,
/// in one step. False: there is more to it, and nothing was done.
bool UdpProvider::compose_record(const Work& work, Peer& peer) noexcept {
    const bool is_put = work.kind == Work::Kind::put;
    const std::size_t bytes = work.bytes, carried = is_put ? bytes : 0;
    const std::size_t bytes_max = is_put ? smallest_piece_bytes : get_bytes_max;
    const bool is_next = peer.to_compose.empty() && peer.answers.empty() && peer.wakes == 0;
    if (bytes == 0 || bytes > bytes_max || !is_next || peer.lost || free_ops_.empty() ||
        peer.send.free_packets() <= packets_for_messages || !peer.send.wants_more()) {
        return false;
    }
    mapped_address(work.peer.value, work.region.value, work.offset, bytes);
    std::byte* const at = peer.send.take(wire::padded_record_bytes(carried));
    if (at == nullptr) return false;
    const std::uint32_t index = free_ops_.take(ops_.get());
    wire::encode_wire_record({.kind = is_put ? wire::RecordKind::put : wire::RecordKind::get,
                              .payload_bytes = static_cast<std::uint16_t>(carried),
                              .tag = index,
                              .offset = work.offset,
                              .region = work.region.value,
                              .total_bytes = is_put ? 0 : static_cast<std::uint32_t>(bytes)},
                             carried == 8 ? nullptr : work.memory, at);
    if (carried == 8) std::memcpy(at + wire::wire_record_bytes, work.memory, 8);
    Op& op = ops_[index];
    op.kind = is_put ? Op::Kind::put : Op::Kind::get;
    op.pending = true;
    op.failed = false;
    op.peer = peer.node.value;
    op.id = work.id;
    op.memory = work.memory;
    op.bytes = bytes;
    op.position = carried;
    op.last_sequence = peer.send.last_composed();
    op.rest.then = work.then;
    if (op.id.is_request())
        requests_.store(requests_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (is_put) peer.to_arrive.append(ops_.get(), index);
    return true;
}

/// Sends what is composed, unless the peer will answer anyway to what it was sent before: then a
/// poll comes, which sends all that was gathered. What fills a call of the system goes at once, and
/// so do many small ones: half of all there may be, so that the peer works beside this node.
void UdpProvider::keep_for_next(Peer& peer, std::size_t works) noexcept {
    constexpr std::uint64_t packets_of_call = 4;
    constexpr std::uint32_t kept_max = ops_max / 2;
    const bool was_kept = peer.kept != 0;
    peer.kept += static_cast<std::uint32_t>(works);
    if (!was_kept) kept_.push_back(&peer);
    if (peer.send.outstanding() && peer.send.unsent_packets() <= packets_of_call &&
        peer.kept < kept_max) {
        return;
    }
    transmit(peer);
    peer.kept = 1;  // it stays in the list, for nothing
}

/// @param composed  for whom there is something that was not sent
std::size_t UdpProvider::take_list(std::span<Work> list, Peer*& composed) noexcept {
    std::size_t taken = 0;
    for (; taken < list.size(); ++taken) {
        Work& work = list[taken];
        std::uint32_t index = no_op;
        if (work.kind != Work::Kind::send) {
            work.outcome = Post::again;
            if (free_ops_.empty()) break;
            index = free_ops_.take(ops_.get());
            work.outcome = begin(work, ops_[index]);
            if (work.outcome == Post::done) {
                free_ops_.append(ops_.get(), index);
                continue;
            }
        }
        Peer& peer = *talk_to(work.peer.value);
        if (composed != nullptr && composed != &peer) transmit(*composed);
        composed = &peer;
        if (index != no_op) {
            compose_taken(peer, index);
            continue;
        }
        work.outcome = compose_message(peer, work.message, work.parts);
        if (work.outcome == Post::again) break;
    }
    return taken;
}

bool UdpProvider::prepare(PreparedKick& kick) noexcept {
    static_assert(sizeof kick.header == wire::kick_record_bytes);
    mapped_address(kick.to.value, kick.region.value, kick.page_offset, kick.bytes);
    wire::encode_kick_record(kick.region.value, kick.bytes, kick.header);
    return true;
}

// The send window is the ring of credits: nothing is looked at per kick until it is full.
Post UdpProvider::kick(const PreparedKick& kick, std::uint32_t offset, std::uint64_t value,
                       bool more) noexcept {
    const std::scoped_lock lock{latch_};
    Peer& peer = *talk_to(kick.to.value);
    if (peer.lost) return Post::done;  // no process there takes it
    std::byte* const at = peer.send.take(wire::kick_record_bytes);
    if (at == nullptr) return Post::again;
    std::memcpy(at, kick.header, wire::kick_record_bytes);
    wire::patch_kick_record(kick.page_offset + offset, value, at);
    if (!more) transmit(peer);
    return Post::done;
}

// --- messages ------------------------------------------------------------------------------------

Post UdpProvider::send(NodeId to, MessageKind kind, Urgency,
                       std::span<const Bytes> parts) noexcept {
    // Urgent or not, the datagram itself wakes whoever sleeps there.
    const std::scoped_lock lock{latch_};
    Peer& peer = *talk_to(to.value);
    const Post outcome = compose_message(peer, kind, parts);
    if (outcome != Post::again) transmit(peer);
    return outcome;
}

/// transmit() is the caller's.
Post UdpProvider::compose_message(Peer& peer, MessageKind kind,
                                  std::span<const Bytes> parts) noexcept {
    const std::size_t body_bytes = check_message_bytes(parts, message_bytes_max);
    if (peer.lost) return Post::done;  // no process there reads it
    return send_in_parts(peer, kind, parts, body_bytes);
}

Post UdpProvider::send_in_parts(Peer& peer, MessageKind kind, std::span<const Bytes> parts,
                                std::size_t body_bytes) noexcept {
    const std::size_t part_max = peer.send.body_bytes_max() - wire::wire_record_bytes;
    const bool fits_last = peer.send.room(wire::padded_record_bytes(body_bytes)) != 0;
    const std::size_t packets = std::max<std::size_t>(1, (body_bytes + part_max - 1) / part_max);
    if (packets > peer.send.free_packets() && !(packets == 1 && fits_last)) return Post::again;

    std::size_t part = 0, in_part = 0, position = 0;
    do {
        const std::size_t bytes = std::min(part_max, body_bytes - position);
        const wire::WireRecord record{.kind = wire::RecordKind::message,
                                      .sub = static_cast<std::uint8_t>(kind),
                                      .payload_bytes = static_cast<std::uint16_t>(bytes),
                                      .offset = position,
                                      .total_bytes = static_cast<std::uint32_t>(body_bytes)};
        std::byte* at = peer.send.take(wire::padded_record_bytes(bytes));
        HIROBA_INVARIANT(at != nullptr, "no packet for %lu of %lu bytes to node %u", bytes,
                         body_bytes, peer.node.value);
        wire::encode_wire_record(record, nullptr, at);
        at += wire::wire_record_bytes;
        for (std::size_t left = bytes; left != 0;) {
            const std::size_t some = std::min(left, parts[part].size() - in_part);
            if (some != 0) std::memcpy(at, parts[part].data() + in_part, some);
            at += some;
            left -= some;
            in_part += some;
            if (in_part == parts[part].size()) ++part, in_part = 0;
        }
        position += bytes;
    } while (position < body_bytes);
    return Post::done;
}

}  // namespace hiroba::net::udp
