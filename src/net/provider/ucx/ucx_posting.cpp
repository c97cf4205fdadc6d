// SPDX-License-Identifier: BSD-3-Clause
// Role: see ucx_provider.hpp; what users post, what providers say to each other.
// Invariant: an operation is posted chunk by chunk, in the order of its bytes, as far as there are
// keys; it counts one more call under way while it is being posted, since UCX may call back then.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/fatal.hpp"
#include "base/thread_context.hpp"
#include "net/provider/apply_atomic.hpp"
#include "net/provider/checks.hpp"
#include "net/provider/store_whole.hpp"
#include "net/provider/ucx/ucx_provider.hpp"

namespace hiroba::net::ucx {
namespace {

ucp_atomic_op_t opcode_of(AtomicOp op) {
    switch (op) {
        case AtomicOp::fetch_add: return UCP_ATOMIC_OP_ADD;
        case AtomicOp::fetch_and: return UCP_ATOMIC_OP_AND;
        case AtomicOp::fetch_or: return UCP_ATOMIC_OP_OR;
        case AtomicOp::fetch_xor: return UCP_ATOMIC_OP_XOR;
        case AtomicOp::swap: return UCP_ATOMIC_OP_SWAP;
        case AtomicOp::compare_swap: return UCP_ATOMIC_OP_CSWAP;
    }
    fatal("atomic operation %u does not exist", static_cast<unsigned>(op));
}

ucp_request_param_t with_callback(ucp_send_nbx_callback_t callback, void* data) noexcept {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send = callback;
    param.user_data = data;
    return param;
}

/// UCS_INPROGRESS: a callback will tell.
ucs_status_t status_of(ucs_status_ptr_t request) noexcept {
    if (request == nullptr) return UCS_OK;
    return UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_INPROGRESS;
}

}  // namespace

// --- puts, gets, atomics -------------------------------------------------------------------------

UcxProvider::Op* UcxProvider::take_op(const Op& wanted) noexcept {
    Op* const op = free_ops_;
    if (op == nullptr) return nullptr;
    free_ops_ = op->next;
    *op = wanted;
    op->provider = this;
    op->in_use = true;
    return op;
}

void UcxProvider::give_op(Op* op) noexcept {
    op->in_use = false;
    op->next = std::exchange(free_ops_, op);
}

Post UcxProvider::post_op(const Op& wanted) noexcept {
    // Regions have one size on all nodes.
    own_place(RegionId{wanted.region}, wanted.offset, wanted.bytes);
    HIROBA_INVARIANT(wanted.peer.value < setup_.nodes, "node %u of %u", wanted.peer.value,
                     setup_.nodes);
    const std::scoped_lock guard{latch_};
    Peer& peer = peers_[wanted.peer.value];
    Op* const op = take_op(wanted);
    if (op == nullptr) return Post::again;
    if (peer.lost) {
        op->failed = true;
        finished_.push(op);
        return Post::posted;
    }
    const CallsOfOwnLibrary of_ucx;
    if (peer.gone || !open_endpoint(peer))
        op->parked = true;
    else
        advance(*op);
    return Post::posted;
}

/// Posts what there are keys for. Its peer is not gone.
void UcxProvider::advance(Op& op) noexcept {
    Peer& peer = peers_[op.peer.value];
    ++op.under_way;
    while (op.posted != op.bytes && !op.failed) {
        const auto [chunk, left] = peer.keys.chunk_at(op.region, op.offset + op.posted);
        bool has_to_ask = false;
        const ucp_rkey_h key = peer.keys.look(ucp_, peer.endpoint, op.region, chunk, has_to_ask);
        if (has_to_ask) tell_peer(peer, {false, op.region, chunk, UCS_OK}, {});
        if (key == nullptr) {
            op.waiting = true;
            peer.waiting.push_back(&op);
            break;
        }
        ++op.under_way;
        const ucs_status_t status = start(peer, key, op, std::min(op.bytes - op.posted, left));
        if (status == UCS_INPROGRESS) continue;
        --op.under_way;
        op.failed |= status != UCS_OK;
    }
    if (op.kind == Work::Kind::put && !op.waiting && !op.failed && op.bytes != 0) {
        peer.puts.push_back(&op);  // with the call that is counted for the posting
        return flush_puts(peer);
    }
    op_done(&op, UCS_OK);
}

/// One call of UCX, for the next `bytes`.
ucs_status_t UcxProvider::start(Peer& peer, ucp_rkey_h key, Op& op, std::size_t bytes) noexcept {
    std::byte* const memory = op.memory + op.posted;
    const std::uint64_t at = peer.keys.start(op.region) + op.offset + op.posted;
    op.posted += bytes;
    if (op.kind == Work::Kind::put) {
        // The request has no callback: the flush behind it tells.
        const ucp_request_param_t param{};
        const ucs_status_ptr_t request =
            ucp_.put_nbx(peer.endpoint, memory, bytes, at, key, &param);
        if (UCS_PTR_IS_ERR(request)) return UCS_PTR_STATUS(request);
        if (request != nullptr) ucp_.request_free(request);
        return UCS_OK;
    }
    ucp_request_param_t param = with_callback(on_op_done, &op);
    if (op.kind == Work::Kind::get)
        return status_of(ucp_.get_nbx(peer.endpoint, memory, bytes, at, key, &param));
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
    param.datatype = ucp_dt_make_contig(sizeof(std::uint64_t));
    param.reply_buffer = &op.result;
    return status_of(
        ucp_.atomic_op_nbx(peer.endpoint, opcode_of(op.op), &op.operand, 1, at, key, &param));
}

/// Unless a flush is under way, at whose end this is called again.
void UcxProvider::flush_puts(Peer& peer) noexcept {
    if (peer.flushing_puts || peer.puts.empty()) return;
    peer.flushing_puts = true;
    peer.puts_before.swap(peer.puts);
    ucs_status_t status = UCS_ERR_CONNECTION_RESET;  // closed meanwhile
    if (peer.endpoint != nullptr) {
        const ucp_request_param_t param = with_callback(on_puts_flushed, &peer);
        status = status_of(ucp_.ep_flush_nbx(peer.endpoint, &param));
    }
    if (status != UCS_INPROGRESS) end_puts(peer, status);
}

Post UcxProvider::put(OpId id, NodeId to, RegionId region, std::uint64_t offset,
                      Bytes from) noexcept {
    if (to == setup_.self) {
        std::byte* const place = own_place(region, offset, from.size());
        if (reinterpret_cast<std::uintptr_t>(place) % std::max<std::size_t>(from.size(), 1) != 0 ||
            !store_whole(place, from))
            std::memcpy(place, from.data(), from.size());
        return Post::done;
    }
    return post_op({.id = id,
                    .peer = to,
                    .kind = Work::Kind::put,
                    .region = region.value,
                    .offset = offset,
                    .memory = const_cast<std::byte*>(from.data()),
                    .bytes = from.size()});
}

Post UcxProvider::get(OpId id, MutableBytes to, NodeId from, RegionId region,
                      std::uint64_t offset) noexcept {
    if (from == setup_.self) {
        std::memcpy(to.data(), own_place(region, offset, to.size()), to.size());
        return Post::done;
    }
    return post_op({.id = id,
                    .peer = from,
                    .kind = Work::Kind::get,
                    .region = region.value,
                    .offset = offset,
                    .memory = to.data(),
                    .bytes = to.size()});
}

Post UcxProvider::atomic(OpId id, AtomicOp op, NodeId at, RegionId region, std::uint64_t offset,
                         std::uint64_t operand, std::uint64_t expected,
                         std::uint64_t* old) noexcept {
    const bool aligned = offset % sizeof(std::uint64_t) == 0;
    HIROBA_INVARIANT(aligned, "atomic at offset %lu", offset);
    if (at == setup_.self) {
        std::byte* const place = own_place(region, offset, sizeof(std::uint64_t));
        const std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(place));
        *old = apply_atomic(word, op, operand, expected);
        return Post::done;
    }
    // compare_swap: the buffer is compared with, the result holds what goes in.
    return post_op({.id = id,
                    .peer = at,
                    .kind = Work::Kind::atomic,
                    .op = op,
                    .region = region.value,
                    .offset = offset,
                    .bytes = sizeof(std::uint64_t),
                    .operand = op == AtomicOp::compare_swap ? expected : operand,
                    .result = operand,
                    .old = old});
}

// --- messages ------------------------------------------------------------------------------------

UcxProvider::Message* UcxProvider::make_message(Peer* peer, std::uint8_t kind, Urgency urgency,
                                                std::span<const Bytes> parts) noexcept {
    std::size_t bytes = sizeof(Header);
    for (const Bytes& part : parts) bytes += part.size();
    auto* const message = static_cast<Message*>(std::malloc(sizeof(Message) + bytes));
    HIROBA_INVARIANT(message != nullptr, "no memory for a message of %lu bytes", bytes);
    *message = {nullptr, this, peer, bytes};
    const Header header{setup_.self.value, kind, static_cast<std::uint8_t>(urgency), 0};
    std::memcpy(message->data(), &header, sizeof header);
    std::size_t at = sizeof header;
    for (const Bytes& part : parts) {
        if (!part.empty()) std::memcpy(message->data() + at, part.data(), part.size());
        at += part.size();
    }
    return message;
}

Post UcxProvider::send(NodeId to, MessageKind kind, Urgency urgency,
                       std::span<const Bytes> parts) noexcept {
    HIROBA_INVARIANT(to.value < setup_.nodes, "node %u of %u", to.value, setup_.nodes);
    check_message_bytes(parts, message_bytes_max);
    Peer& peer = peers_[to.value];
    Message* const message = make_message(&peer, static_cast<std::uint8_t>(kind), urgency, parts);
    const std::scoped_lock guard{latch_};
    if (to != setup_.self) return send_bytes(peer, message, true);
    if (peer.sends >= sends_max) {
        std::free(message);
        return Post::again;
    }
    ++peer.sends;
    arrived_.push(message);
    sleepers_[static_cast<std::size_t>(Sleeper::waiter)].ring();
    if (urgency == Urgency::wake_service)
        sleepers_[static_cast<std::size_t>(Sleeper::service)].ring();
    return Post::done;
}

/// Takes `message` over.
/// @param is_bounded  it may be refused where too many are under way
Post UcxProvider::send_bytes(Peer& peer, Message* message, bool is_bounded) noexcept {
    if (peer.gone || (is_bounded && peer.sends >= sends_max)) {
        std::free(message);
        return peer.gone ? Post::done : Post::again;
    }
    const CallsOfOwnLibrary of_ucx;
    if (!open_endpoint(peer)) {
        std::free(message);
        return Post::done;
    }
    ucp_request_param_t param = with_callback(on_sent, message);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_EAGER;
    const ucs_status_ptr_t request = ucp_.am_send_nbx(peer.endpoint, message_id, nullptr, 0,
                                                      message->data(), message->bytes, &param);
    peer.unflushed = true;
    if (request == nullptr || UCS_PTR_IS_ERR(request)) {
        // An error is told of by on_error(), and the message vanishes as all to a lost node do.
        std::free(message);
    } else {
        ++peer.sends;
    }
    return Post::done;
}

// --- what providers say to each other ------------------------------------------------------------

/// Wakes the service thread there: the others may compute.
void UcxProvider::tell_peer(Peer& peer, const Word& word, Bytes key) noexcept {
    const Bytes parts[] = {std::as_bytes(std::span(&word, 1)), key};
    send_bytes(peer, make_message(&peer, word_kind, Urgency::wake_service, parts), false);
}

void UcxProvider::take_word(Message& message) noexcept {
    Header header{};
    Word word;
    const std::byte* const bytes = message.data();
    HIROBA_INVARIANT(message.bytes >= sizeof header + sizeof word, "word of %lu bytes",
                     message.bytes);
    std::memcpy(&header, bytes, sizeof header);
    std::memcpy(&word, bytes + sizeof header, sizeof word);
    Peer& peer = peers_[header.from];
    if (peer.gone) return;
    if (!word.is_answer) {
        HIROBA_INVARIANT(
            word.region < regions_.count() && word.chunk < regions_.chunks(word.region),
            "node %u asks for chunk %u of region %u", header.from, word.chunk, word.region);
        std::vector<std::byte> key;
        word.is_answer = true;
        word.status = regions_.pack_key(context_, word.region, word.chunk, key);
        return tell_peer(peer, word, key);
    }
    if (word.status != UCS_OK)
        die(exit_environment,
            "node %u cannot register more of its memory: %s; raise `ulimit -l` there, or lower "
            "HIROBA_HEAP",
            header.from, ucp_.status_string(word.status));
    const std::size_t before = sizeof header + sizeof word;
    if (!open_endpoint(peer)) return;
    const bool was_asked = peer.keys.tell(ucp_, peer.endpoint, word.region, word.chunk,
                                          {bytes + before, message.bytes - before});
    HIROBA_INVARIANT(was_asked, "node %u tells the key of chunk %u of region %u unasked",
                     header.from, word.chunk, word.region);
    for (Op* const op : std::exchange(peer.waiting, {})) {
        op->waiting = false;
        advance(*op);
    }
}

bool UcxProvider::drained() noexcept {
    const std::scoped_lock guard{latch_};
    const CallsOfOwnLibrary of_ucx;
    bool all = finished_.empty();
    for (Peer& peer : peers_) {
        if (peer.gone || peer.endpoint == nullptr) continue;
        if (!peer.flushing && peer.unflushed) {
            peer.unflushed = false;
            const ucp_request_param_t param = with_callback(on_flushed, &peer);
            peer.flushing = status_of(ucp_.ep_flush_nbx(peer.endpoint, &param)) == UCS_INPROGRESS;
        }
        all = all && !peer.flushing && peer.sends == 0;
    }
    for (std::size_t i = 0; i < ops_max && all; ++i)
        all = !ops_[i].in_use || peers_[ops_[i].peer.value].gone;
    return all;
}

}  // namespace hiroba::net::ucx
