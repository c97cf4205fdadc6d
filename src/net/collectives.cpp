// SPDX-License-Identifier: BSD-3-Clause
// Role: see collectives.hpp.
#include "net/collectives.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "net/long_wait.hpp"

namespace hiroba::net {

namespace {
constexpr kick::Offset barrier_place = 0, leaving_place = 128;
constexpr std::uint32_t looks_before_poll = 50;
}  // namespace

Result<std::unique_ptr<Collectives>> Collectives::make(Endpoint& endpoint, std::uint64_t job_key) {
    auto board = kick::Board::create(endpoint, job_key, page_bytes, MessageKind::mark);
    if (!board) return board.error();
    for (const kick::Offset wanted : {barrier_place, leaving_place}) {
        const auto place = kick::Barrier::reserve(**board);
        HIROBA_INVARIANT(place && *place == wanted, "a board of %lu bytes has no %s at %lu",
                         page_bytes, "room for a barrier", wanted);
    }
    auto made = std::unique_ptr<Collectives>(new Collectives(endpoint, std::move(*board)));
    Result<RegionId> region =
        endpoint.provider().allocate(2 * sizeof(Slot) * std::size_t{endpoint.nodes()});
    if (!region) return region.error();
    made->region_ = *region;
    endpoint.on(MessageKind::collective, &Collectives::arrived, made.get());
    return made;
}

Collectives::Collectives(Endpoint& endpoint, std::unique_ptr<kick::Board> board)
    : endpoint_(endpoint),
      self_(endpoint.self()),
      nodes_(endpoint.nodes()),
      board_(std::move(board)),
      mapped_(nodes_, nullptr),
      own_(chunk_bytes) {}

void Collectives::attach() {
    board_->attach();
    const auto open = [this](std::optional<kick::Barrier>& made, kick::Offset place) {
        auto opened = kick::Barrier::open(*board_, place);
        HIROBA_INVARIANT(opened, "the barrier of %u nodes: %s", nodes_,
                         opened.error().text.c_str());
        made.emplace(std::move(*opened));
    };
    open(barrier_, barrier_place);
    open(leaving_, leaving_place);
    Provider& provider = endpoint_.provider();
    local_ = provider.local(region_).data();
    if (!provider.limits().maps_peers) return;
    for (std::uint32_t rank = 0; rank < nodes_; ++rank) {
        mapped_[rank] = provider.mapped(NodeId{rank}, region_);
    }
}

// --- waiting, and whether all make the same call -------------------------------------------------

template <class Look>
void Collectives::await(Look&& look) noexcept {
    // Looks are cheaper than polls where peers are mapped.
    std::uint32_t left =
        mapped_[self_.value] == nullptr ? 0 : std::min(looks_before_poll, endpoint_.spins());
    for (; left != 0; --left) {
        if (look()) return;
        __builtin_ia32_pause();
    }
    if (endpoint_.wait_until(look, now_ns() + second_ns)) return;
    report_call();
    const std::uint64_t limit_s = wait_limit_s();
    if (limit_s == 0) {
        endpoint_.wait_until(look);
        return;
    }
    if (!endpoint_.wait_until(look, now_ns() + (limit_s - 1) * second_ns))
        fatal("collective call number %lu: node %u %s, for %lu s; HIROBA_WAIT_TIMEOUT allows %lu",
              calls_, self_.value, describe(call_).c_str(), limit_s, limit_s);
}

void Collectives::meet(Call::Kind kind, kick::Barrier& at) noexcept {
    begin_call(kind, 0, 1);
    at.arrive();
    if (!at.passed()) await([&at] { return at.passed(); });
}

void Collectives::report_call() noexcept {
    if (self_.value == 0) return referee_.take(self_, calls_, call_);
    constexpr std::uint64_t no_exchange = 0;
    const Bytes parts[] = {std::as_bytes(std::span(&no_exchange, 1)),
                           std::as_bytes(std::span(&call_, 1)),
                           std::as_bytes(std::span(&calls_, 1))};
    endpoint_.send(NodeId{0}, MessageKind::collective, Urgency::wake_service, parts);
}

// --- exchanges -----------------------------------------------------------------------------------

Collectives::Slot& Collectives::own_slot(NodeId giver, std::uint64_t number) const noexcept {
    return *std::launder(reinterpret_cast<Slot*>(local_ + slot_offset(giver, number)));
}

void Collectives::give(NodeId to, Bytes bytes) noexcept {
    if (std::byte* base = mapped_[to.value]) {
        auto* slot = std::launder(reinterpret_cast<Slot*>(base + slot_offset(self_, number_)));
        if (!bytes.empty()) std::memcpy(slot->bytes, bytes.data(), bytes.size());
        slot->call = call_;
        slot->number.store(number_, std::memory_order_release);  // pairs with taken()
        return;
    }
    const Bytes parts[] = {std::as_bytes(std::span(&number_, 1)),
                           std::as_bytes(std::span(&call_, 1)), bytes};
    endpoint_.send(to, MessageKind::collective, Urgency::when_polled, parts);
}

void Collectives::give_to_all(Bytes bytes) noexcept {
    begin_exchange();
    if (!bytes.empty()) std::memcpy(own_.data(), bytes.data(), bytes.size());
    for (std::uint32_t rank = 0; rank < nodes_; ++rank) {
        if (rank != self_.value) give(NodeId{rank}, bytes);
    }
}

void Collectives::arrived(void* context, NodeId from, Bytes body) noexcept {
    auto& self = *static_cast<Collectives*>(context);
    std::uint64_t number = 0;
    Call call;
    constexpr std::size_t head_bytes = sizeof number + sizeof call;
    const bool understood = body.size() >= head_bytes && body.size() <= head_bytes + chunk_bytes;
    HIROBA_INVARIANT(understood, "node %u gave %lu bytes to a collective operation", from.value,
                     body.size());
    std::memcpy(&number, body.data(), sizeof number);
    std::memcpy(&call, body.data() + sizeof number, sizeof call);
    const Bytes bytes = body.subspan(head_bytes);
    if (number == 0) {
        HIROBA_INVARIANT(bytes.size() == sizeof number, "node %u reports a call in %lu bytes",
                         from.value, body.size());
        std::memcpy(&number, bytes.data(), sizeof number);
        return self.referee_.take(from, number, call);
    }
    Slot& slot = self.own_slot(from, number);
    slot.call = call;
    if (!bytes.empty()) std::memcpy(slot.bytes, bytes.data(), bytes.size());
    slot.number.store(number, std::memory_order_release);  // pairs with taken()
}

Bytes Collectives::taken(NodeId from) noexcept {
    Slot& slot = own_slot(from, number_);
    const auto there = [&] {
        return slot.number.load(std::memory_order_acquire) == number_;  // give(), arrived()
    };
    if (mapped_[from.value] != nullptr) {
        for (std::uint32_t left = CoreShortage::spins_max; left != 0 && !there(); --left) {
            __builtin_ia32_pause();
        }
    }
    if (!there()) {
        // A peer may sleep until it sees what this node gave.
        wake_peers();
        await(there);
    }
    if (slot.call != call_) [[unlikely]]
        refuse_unequal_calls(calls_, self_, call_, from, slot.call);
    return {slot.bytes, chunk_bytes};
}

void Collectives::end_exchange() noexcept {
    for (std::uint32_t rank = 0; rank < nodes_; ++rank) {
        if (rank != self_.value) taken(NodeId{rank});
    }
    wake_peers();
    woken_ = false;
}

void Collectives::wake_peers() noexcept {
    // After the stores, and late: while peers are awake no thread waits for this.
    if (woken_) return;
    woken_ = true;
    for (std::uint32_t rank = 0; rank < nodes_; ++rank) {
        if (rank != self_.value && mapped_[rank] != nullptr) endpoint_.wake(NodeId{rank});
    }
}

// --- operations ----------------------------------------------------------------------------------

void Collectives::broadcast(NodeId root, MutableBytes data) noexcept {
    HIROBA_INVARIANT(root.value < nodes_, "broadcast from node %u of %u", root.value, nodes_);
    begin_call(Call::Kind::broadcast, root.value, data.size());
    for (std::size_t at = 0; at < data.size(); at += chunk_bytes) {
        const MutableBytes part = data.subspan(at, std::min(chunk_bytes, data.size() - at));
        if (root == self_) {
            give_to_all(part);
        } else {
            give_to_all({});
            std::memcpy(part.data(), taken(root).data(), part.size());
        }
        end_exchange();
    }
}

void Collectives::all_gather(Bytes mine, MutableBytes all) noexcept {
    HIROBA_INVARIANT(all.size() == mine.size() * nodes_, "all-gather of %lu bytes into %lu",
                     mine.size(), all.size());
    begin_call(Call::Kind::all_gather, 0, mine.size());
    for (std::size_t at = 0; at < mine.size(); at += chunk_bytes) {
        const Bytes part = mine.subspan(at, std::min(chunk_bytes, mine.size() - at));
        give_to_all(part);
        for (std::uint32_t rank = 0; rank < nodes_; ++rank) {
            const std::byte* from = rank == self_.value ? own_.data() : taken(NodeId{rank}).data();
            std::memcpy(all.data() + rank * mine.size() + at, from, part.size());
        }
        end_exchange();
    }
}

void Collectives::all_to_all(Bytes out, MutableBytes in, std::size_t piece_bytes) noexcept {
    HIROBA_INVARIANT(out.size() == piece_bytes * nodes_ && in.size() == out.size(),
                     "all-to-all of %lu bytes into %lu, in pieces of %lu", out.size(), in.size(),
                     piece_bytes);
    begin_call(Call::Kind::all_to_all, 0, piece_bytes);
    for (std::size_t at = 0; at < piece_bytes; at += chunk_bytes) {
        const std::size_t bytes = std::min(chunk_bytes, piece_bytes - at);
        begin_exchange();
        for (std::uint32_t rank = 0; rank < nodes_; ++rank) {
            if (rank != self_.value)
                give(NodeId{rank}, out.subspan(rank * piece_bytes + at, bytes));
        }
        for (std::uint32_t rank = 0; rank < nodes_; ++rank) {
            const std::size_t piece_at = rank * piece_bytes + at;
            const std::byte* from =
                rank == self_.value ? out.data() + piece_at : taken(NodeId{rank}).data();
            std::memmove(in.data() + piece_at, from, bytes);  // `in` may be `out`
        }
        end_exchange();
    }
}

}  // namespace hiroba::net
