// SPDX-License-Identifier: BSD-3-Clause
// Role: see messages.hpp.
#include "net/provider/verbs/message_queue.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/fatal.hpp"
#include "base/thread_context.hpp"

namespace hiroba::net::verbs {

MessageQueue::MessageQueue(Device& device, Introducer& introducer, std::uint32_t nodes)
    : device_(device), queue_(device, introducer, 0, nodes, false), waiting_(nodes) {}

MessageQueue::~MessageQueue() {
    const CallsOfOwnLibrary of_verbs;
    const IbverbsLibrary& ibv = device_.ibv();
    if (srq_ != nullptr) ibv.destroy_srq(srq_);
    if (receives_ != nullptr) ibv.destroy_cq(receives_);
    if (buffers_mr_ != nullptr) ibv.dereg_mr(buffers_mr_);
    if (buffers_ != nullptr) munmap(buffers_, buffers * buffer_bytes);
}

Result<void> MessageQueue::open() {
    std::uint32_t cqe = 2 * buffers;
    auto cq = device_.make_cq(cqe);
    if (!cq) return cq.error();
    receives_ = *cq;
    ibv_srq_init_attr made{};
    made.attr.max_wr = buffers;
    made.attr.max_sge = 1;
    srq_ = device_.ibv().create_srq(device_.pd(), &made);
    if (srq_ == nullptr) return device_.wrong("ibv_create_srq", errno);
    void* const start = mmap(nullptr, buffers * buffer_bytes, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return device_.wrong("mmap", errno);
    buffers_ = static_cast<std::byte*>(start);
    buffers_mr_ = device_.pin(buffers_, buffers * buffer_bytes);
    if (buffers_mr_ == nullptr) return device_.cannot_pin(buffers * buffer_bytes, errno);
    for (std::uint64_t place = 0; place < buffers; ++place) expect({&place, 1});
    return queue_.open();
}

// --- sending -------------------------------------------------------------------------------------

bool MessageQueue::room_for(NodeId to, std::size_t bytes) noexcept {
    return queue_.is_open(to) && queue_.room(to) > bytes / buffer_bytes + 1;
}

void MessageQueue::post(NodeId to, const Tag& tag, const std::byte* bytes, std::size_t count,
                        Piece piece, bool solicited) noexcept {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    wr.imm_data = htonl(tag.encode());
    wr.send_flags = piece.memory == nullptr ? IBV_SEND_INLINE : 0;
    if (solicited) wr.send_flags |= IBV_SEND_SOLICITED;
    const ibv_sge local{reinterpret_cast<std::uintptr_t>(bytes), static_cast<std::uint32_t>(count),
                        piece.memory == nullptr ? 0 : queue_.piece_key()};
    queue_.add(to, wr, local, {nullptr, piece, nullptr, 0});
}

namespace {

/// Copies the next `count` bytes of `parts`, of which `done` have been taken.
void gather(std::byte* to, std::span<const Bytes> parts, std::size_t done, std::size_t count) {
    for (const Bytes& part : parts) {
        if (done >= part.size()) {
            done -= part.size();
            continue;
        }
        const std::size_t bytes = std::min(part.size() - done, count);
        std::memcpy(to, part.data() + done, bytes);
        to += bytes;
        count -= bytes;
        done = 0;
        if (count == 0) return;
    }
}

}  // namespace

bool MessageQueue::send_now(NodeId to, Tag tag, std::span<const Bytes> parts) noexcept {
    std::size_t bytes = 0;
    for (const Bytes& part : parts) bytes += part.size();
    if (!room_for(to, bytes)) return false;
    const bool solicited = tag.wakes_service;
    std::array<std::byte, 256> inlined;
    if (bytes <= std::min<std::size_t>(inlined.size(), queue_.inline_bytes())) {
        gather(inlined.data(), parts, 0, bytes);
        post(to, tag, inlined.data(), bytes, {}, solicited);
        queue_.ring();
        return true;
    }
    std::array<Piece, 16> pieces;
    const std::size_t count = (bytes + buffer_bytes - 1) / buffer_bytes;
    HIROBA_INVARIANT(count <= pieces.size(), "message of %lu bytes", bytes);
    for (std::size_t i = 0; i < count; ++i) {
        pieces[i] = queue_.take_piece(std::min(bytes - i * buffer_bytes, buffer_bytes));
        if (pieces[i].memory != nullptr) continue;
        while (i-- > 0) queue_.give_piece(pieces[i]);
        return false;
    }
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t part = std::min(bytes - i * buffer_bytes, buffer_bytes);
        gather(pieces[i].memory, parts, i * buffer_bytes, part);
        tag.more = i + 1 < count;
        post(to, tag, pieces[i].memory, part, pieces[i], solicited && !tag.more);
    }
    queue_.ring();
    return true;
}

void MessageQueue::wait(NodeId to, Tag tag, std::span<const Bytes> parts) noexcept {
    Waiting message{tag, {}};
    for (const Bytes& part : parts)
        message.body.insert(message.body.end(), part.begin(), part.end());
    WaitingRoom& room = waiting_[to.value];
    room.bytes += message.body.size();
    room.messages.push_back(std::move(message));
    ++waiting_count_;
}

Post MessageQueue::send(NodeId to, MessageKind kind, Urgency urgency,
                        std::span<const Bytes> parts) noexcept {
    const Tag tag{static_cast<std::uint8_t>(kind), false, urgency == Urgency::wake_service};
    const std::scoped_lock guard{queue_.latch()};
    const WaitingRoom& room = waiting_[to.value];
    if (room.empty() && send_now(to, tag, parts)) return Post::done;
    if (room.messages.size() >= waiting_max || room.bytes >= waiting_bytes_max) return Post::again;
    wait(to, tag, parts);
    return Post::done;
}

void MessageQueue::say(NodeId to, const Word& word) noexcept {
    const std::scoped_lock guard{queue_.latch()};
    const bool is_bell = word.what == Word::What::bell;
    const Tag tag{word_kind, false, !is_bell || word.op != 0};
    const Bytes parts[] = {std::as_bytes(std::span(&word, 1)).first(is_bell ? 0 : sizeof word)};
    WaitingRoom& room = waiting_[to.value];
    if (room.empty() && send_now(to, tag, parts)) return;
    // One bell is as good as two.
    if (is_bell && !room.empty() && room.messages.back().body.empty() &&
        room.messages.back().tag.kind == word_kind) {
        room.messages.back().tag.wakes_service |= tag.wakes_service;
        return;
    }
    wait(to, tag, parts);
}

void MessageQueue::let_go(NodeId to) noexcept {
    WaitingRoom& room = waiting_[to.value];
    while (!room.empty()) {
        const Waiting& message = room.messages.front();
        const Bytes parts[] = {message.body};
        if (!send_now(to, message.tag, parts)) return;
        room.bytes -= message.body.size();
        room.messages.pop_front();
        --waiting_count_;
    }
}

void MessageQueue::flush(NodeId to) noexcept {
    const std::scoped_lock guard{queue_.latch()};
    if (queue_.reports_last(to)) return;
    const Piece piece = queue_.take_piece(1);  // what has a piece reports
    if (piece.memory == nullptr || !room_for(to, 0)) return queue_.give_piece(piece);
    post(to, {word_kind, false, false}, piece.memory, 0, piece, false);
    queue_.ring();
}

bool MessageQueue::arm_sends() noexcept {
    const std::scoped_lock guard{queue_.latch()};
    return queue_.arm(!any_waits());
}

void MessageQueue::lose(NodeId peer) noexcept {
    const std::scoped_lock guard{queue_.latch()};
    queue_.give_up(peer);
    waiting_count_ -= waiting_[peer.value].messages.size();
    waiting_[peer.value] = {};
}

// --- receiving -----------------------------------------------------------------------------------

void MessageQueue::expect(std::span<const std::uint64_t> places) noexcept {
    std::array<ibv_recv_wr, 16> wrs;
    std::array<ibv_sge, 16> memory;
    for (std::size_t i = 0; i < places.size(); ++i) {
        memory[i] = {reinterpret_cast<std::uintptr_t>(buffers_ + places[i] * buffer_bytes),
                     buffer_bytes, buffers_mr_->lkey};
        wrs[i] = {};
        wrs[i].wr_id = places[i];
        wrs[i].sg_list = &memory[i];
        wrs[i].num_sge = 1;
        wrs[i].next = i + 1 < places.size() ? &wrs[i + 1] : nullptr;
    }
    if (places.empty()) return;
    ibv_recv_wr* bad = nullptr;
    const CallsOfOwnLibrary of_verbs;
    const int error = ibv_post_srq_recv(srq_, &wrs[0], &bad);
    HIROBA_INVARIANT(error == 0, "ibv_post_srq_recv of %lu buffers gave %d", places.size(), error);
}

std::size_t MessageQueue::receive(std::span<ibv_wc> into) noexcept {
    const std::scoped_lock guard{arrivals_latch_};
    const std::size_t kept = std::min(kept_count_, into.size());
    if (kept != 0) {
        std::copy_n(kept_.begin(), kept, into.begin());
        std::copy(kept_.begin() + kept, kept_.begin() + kept_count_, kept_.begin());
        kept_count_ -= kept;
        return kept;
    }
    const CallsOfOwnLibrary of_verbs;
    const int count = ibv_poll_cq(receives_, static_cast<int>(into.size()), into.data());
    HIROBA_INVARIANT(count >= 0, "ibv_poll_cq of arrivals gave %d", count);
    return static_cast<std::size_t>(count);
}

void MessageQueue::give_back(std::span<const ibv_wc> arrivals) noexcept {
    std::array<std::uint64_t, 16> places;
    for (std::size_t i = 0; i < arrivals.size(); ++i) places[i] = arrivals[i].wr_id;
    expect(std::span(places).first(arrivals.size()));
}

bool MessageQueue::arm(bool solicited_only) noexcept {
    const std::scoped_lock guard{arrivals_latch_};
    if (kept_count_ != 0) return true;
    const CallsOfOwnLibrary of_verbs;
    ibv_req_notify_cq(receives_, solicited_only ? 1 : 0);
    const int count = ibv_poll_cq(receives_, static_cast<int>(kept_.size()), kept_.data());
    kept_count_ = static_cast<std::size_t>(std::max(count, 0));
    return kept_count_ != 0;
}

}  // namespace hiroba::net::verbs
