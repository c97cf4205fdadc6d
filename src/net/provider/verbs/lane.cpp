// SPDX-License-Identifier: BSD-3-Clause
// Role: see lane.hpp.
#include "net/provider/verbs/lane.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/fatal.hpp"

namespace hiroba::net::verbs {
namespace {

/// The value that the operation leaves in the word.
std::uint64_t result_of(const Op& op) noexcept {
    switch (op.op) {
        case AtomicOp::fetch_add: return op.guess + op.operand;
        case AtomicOp::fetch_and: return op.guess & op.operand;
        case AtomicOp::fetch_or: return op.guess | op.operand;
        case AtomicOp::fetch_xor: return op.guess ^ op.operand;
        case AtomicOp::swap:
        case AtomicOp::compare_swap: return op.operand;
    }
    fatal("atomic operation %u does not exist", static_cast<unsigned>(op.op));
}

/// Whether it leaves every word as it is: a load.
bool changes_nothing(const Op& op) noexcept {
    switch (op.op) {
        case AtomicOp::fetch_and: return op.operand == ~std::uint64_t{0};
        case AtomicOp::fetch_or:
        case AtomicOp::fetch_xor: return op.operand == 0;
        default: return false;
    }
}

bool is_one_step(const Op& op) noexcept {
    return op.op == AtomicOp::fetch_add || op.op == AtomicOp::compare_swap || changes_nothing(op);
}

}  // namespace

Lane::Lane(Device& device, Introducer& introducer, LaneHost& host, PinnedRegions& regions,
           PeerKeys& keys, std::uint32_t index, std::uint32_t nodes)
    : host_(host),
      regions_(regions),
      keys_(keys),
      queue_(device, introducer, index, nodes, true),
      ops_(std::make_unique<Op[]>(ops_max)) {
    for (std::uint32_t i = 0; i < ops_max; ++i) free_.push_back(&ops_[i]);
    // No list grows beyond the operations there are.
    waiting_.reserve(ops_max);
    finished_.reserve(ops_max);
    going_on_.reserve(ops_max);
}

Op* Lane::take() noexcept {
    if (free_.empty()) return nullptr;
    Op* const op = free_.back();
    free_.pop_back();
    const std::uint32_t generation = op->generation + 1;
    *op = Op{};
    op->generation = generation;
    op->in_use = true;
    used_.store(used_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return op;
}

void Lane::give(Op& op) noexcept {
    op.in_use = false;
    used_.store(used_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    free_.push_back(&op);
}

// --- starting ------------------------------------------------------------------------------------

/// Starts it and those after it.
void Lane::run(Op* first) noexcept {
    for (Op* op = first; op != nullptr;) {
        // Read before: what has started may be over at once.
        Op* const after = op->after;
        if (!advance(*op)) return;
        if (after != nullptr && would_overtake(*after, *op)) return;  // requested() goes on
        op->after = nullptr;
        op = after;
    }
}

void Lane::wait(Op& op) noexcept {
    if (std::exchange(op.waiting, true)) return;
    waiting_.push_back(&op);
}

/// Goes on with what waited: each may wait again.
void Lane::go_on() noexcept {
    if (waiting_.empty()) return;
    std::swap(waiting_, going_on_);
    for (Op* const op : going_on_) {
        op->waiting = false;
        run(op);
    }
    going_on_.clear();
}

/// True once those after it may start.
bool Lane::advance(Op& op) noexcept {
    if (op.failed || host_.is_gone(op.peer)) {
        op.failed = true;
        if (op.under_way == 0) conclude(op);
        return true;
    }
    if (op.kind != Work::Kind::atomic) return transfer(op);
    if (op.by_processor) {
        if (!std::exchange(op.asked, true))
            host_.ask_for_atomic(op, queue_.index(), static_cast<std::uint32_t>(&op - ops_.get()));
        return false;
    }
    return op.under_way == 0 && post_atomic(op) && is_one_step(op);
}

bool Lane::find_key(const Op& op, std::uint64_t offset, std::uint32_t& key) noexcept {
    const auto chunk = static_cast<std::uint32_t>(offset / chunk_bytes);
    const PeerKeys::Key found = keys_.look(op.peer, op.region, chunk);
    key = found.key;
    if (found.state == PeerKeys::State::known) return true;
    if (found.state == PeerKeys::State::unknown) host_.ask_for_key(op.peer, op.region, chunk);
    return false;
}

bool Lane::transfer(Op& op) noexcept {
    const bool is_put = op.kind == Work::Kind::put;
    if (op.bytes == 0) {
        conclude(op);
        return true;
    }
    while (op.posted < op.bytes) {
        const std::uint64_t offset = op.offset + op.posted;
        std::byte* const memory = op.memory + op.posted;
        std::uint32_t key = 0;
        if (!queue_.is_open(op.peer) || queue_.room(op.peer) == 0 || !find_key(op, offset, key)) {
            wait(op);
            return false;
        }
        std::size_t bytes =
            std::min<std::size_t>(op.bytes - op.posted, chunk_bytes - offset % chunk_bytes);
        ibv_send_wr wr{};
        ibv_sge local{};
        Request request{&op, {}, nullptr, 0};
        wr.opcode = is_put ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
        if (is_put && bytes <= queue_.inline_bytes()) {
            wr.send_flags = IBV_SEND_INLINE;
            local.addr = reinterpret_cast<std::uintptr_t>(memory);
        } else if (const auto own = regions_.find(memory, bytes)) {
            bytes = own->bytes;
            local.addr = reinterpret_cast<std::uintptr_t>(memory);
            local.lkey = own->key;
        } else {
            bytes = std::min(bytes, SendQueue::big_piece_bytes);
            request.piece = queue_.take_piece(bytes);
            if (request.piece.memory == nullptr) {
                wait(op);
                return false;
            }
            if (is_put)
                std::memcpy(request.piece.memory, memory, bytes);
            else
                request.to = memory;
            local.addr = reinterpret_cast<std::uintptr_t>(request.piece.memory);
            local.lkey = queue_.piece_key();
        }
        local.length = static_cast<std::uint32_t>(bytes);
        request.bytes = local.length;
        wr.wr.rdma.remote_addr = host_.start_of(op.peer, op.region) + offset;
        wr.wr.rdma.rkey = key;
        ++op.under_way;
        op.posted += bytes;
        queue_.add(op.peer, wr, local, request);
    }
    return true;
}

/// One attempt. False: it waits for its turn.
bool Lane::post_atomic(Op& op) noexcept {
    std::uint32_t key = 0;
    Piece piece;
    if (queue_.is_open(op.peer) && queue_.room(op.peer) != 0 && find_key(op, op.offset, key))
        piece = queue_.take_piece(sizeof(std::uint64_t));
    if (piece.memory == nullptr) {
        wait(op);
        return false;
    }
    ibv_send_wr wr{};
    wr.wr.atomic.remote_addr = host_.start_of(op.peer, op.region) + op.offset;
    wr.wr.atomic.rkey = key;
    if (op.op == AtomicOp::fetch_add || changes_nothing(op)) {
        wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        wr.wr.atomic.compare_add = changes_nothing(op) ? 0 : op.operand;
    } else {
        wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
        wr.wr.atomic.compare_add = op.op == AtomicOp::compare_swap ? op.expected : op.guess;
        wr.wr.atomic.swap = result_of(op);
    }
    const ibv_sge local{reinterpret_cast<std::uintptr_t>(piece.memory), sizeof(std::uint64_t),
                        queue_.piece_key()};
    ++op.under_way;
    queue_.add(op.peer, wr, local,
               {&op, piece, reinterpret_cast<std::byte*>(&op.found), sizeof op.found});
    return true;
}

// --- completing ----------------------------------------------------------------------------------

void Lane::requested(const Request& request, bool carried_out) noexcept {
    Op& op = *request.op;
    --op.under_way;
    if (op.told) {
        if (op.under_way == 0 && std::ranges::find(finished_, &op) == finished_.end()) give(op);
        return;
    }
    if (!carried_out) op.failed = true;
    if (carried_out && request.to != nullptr)
        std::memcpy(request.to, request.piece.memory, request.bytes);
    if (op.under_way != 0) return;
    if (op.kind == Work::Kind::atomic && !op.failed && !is_one_step(op)) return step(op);
    if (op.failed || op.posted == op.bytes) {
        Op* const after = std::exchange(op.after, nullptr);
        conclude(op);
        run(after);
    }
}

/// One attempt of several has come back.
void Lane::step(Op& op) noexcept {
    if (op.found != op.guess) {
        op.guess = op.found;
        return run(&op);
    }
    Op* const after = std::exchange(op.after, nullptr);
    conclude(op);
    run(after);
}

void Lane::answered(std::uint32_t place, std::uint32_t generation, std::uint64_t found) noexcept {
    if (place >= ops_max) return;
    Op& op = ops_[place];
    // The operation was told as failed in the meantime.
    if (!op.in_use || op.generation != generation || !op.asked || op.told || op.failed) return;
    op.found = found;
    Op* const after = std::exchange(op.after, nullptr);
    conclude(op);
    run(after);
}

// A connection breaks a moment before the peer leaves in good order, too. What fails by it is told
// once somebody says that the peer is lost.
void Lane::conclude(Op& op) noexcept {
    if (op.waiting) {
        op.waiting = false;
        std::erase(waiting_, &op);
    }
    op.parked = op.failed && !host_.is_lost(op.peer);
    if (!op.parked) finished_.push_back(&op);
}

void Lane::lose(NodeId peer) noexcept {
    queue_.give_up(peer);
    for (std::uint32_t i = 0; i < ops_max; ++i) {
        Op& op = ops_[i];
        if (!op.in_use || op.told || op.peer != peer) continue;
        if (std::ranges::find(finished_, &op) != finished_.end()) continue;
        op.failed = true;
        op.after = nullptr;  // it fails by itself
        conclude(op);
        op.told = true;
    }
}

bool Lane::is_drained() const noexcept {
    if (is_idle()) return true;
    for (std::uint32_t i = 0; i < ops_max; ++i)
        if (ops_[i].in_use && !host_.is_gone(ops_[i].peer)) return false;
    return true;
}

}  // namespace hiroba::net::verbs
