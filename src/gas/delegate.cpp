// SPDX-License-Identifier: BSD-3-Clause
#include "gas/delegate.hpp"

#include <atomic>
#include <cstring>

#include "base/fatal.hpp"
#include "gas/messages.hpp"
#include "net/provider/apply_atomic.hpp"

namespace hiroba::gas {
namespace {

using Kind = DelegationRecord::Kind;

template <class Word>
std::uint64_t apply(std::byte* at, net::AtomicOp op, std::uint64_t operand,
                    std::uint64_t expected) noexcept {
    return net::apply_atomic(std::atomic_ref<Word>(*reinterpret_cast<Word*>(at)), op,
                             static_cast<Word>(operand), static_cast<Word>(expected));
}

}  // namespace

void store_word(std::byte* at, std::uint64_t value, std::uint32_t width) noexcept {
    if (width == 8) {
        std::memcpy(at, &value, 8);
    } else {
        const auto narrow = static_cast<std::uint32_t>(value);
        std::memcpy(at, &narrow, 4);
    }
}

std::uint64_t apply_to_word(std::byte* at, net::AtomicOp op, std::uint32_t width,
                            std::uint64_t operand, std::uint64_t expected) noexcept {
    return width == 8 ? apply<std::uint64_t>(at, op, operand, expected)
                      : apply<std::uint32_t>(at, op, operand, expected);
}

static_assert(delegation_kind(AddressLayout::colors_max - 1) == message::delegation_last);

Delegate::Delegate(net::Endpoint& endpoint, GlobalMemory& memory, const DelegateHooks& hooks,
                   std::uint32_t colors)
    : self_(endpoint.self()), memory_(memory), hooks_(hooks) {
    HIROBA_INVARIANT(colors >= 1 && colors <= AddressLayout::colors_max, "%u colors; 1 to %u",
                     colors, AddressLayout::colors_max);
    for (std::uint32_t color = 0; color < colors; ++color) {
        batchers_.push_back(std::make_unique<CommandBatcher>(endpoint, delegation_kind(color)));
        endpoint.on(delegation_kind(color), &Delegate::on_message, this);
    }
}

// --- asking --------------------------------------------------------------------------------------

void Delegate::ask(NodeId at, std::uint64_t address, const DelegationRecord& record, Bytes data) {
    batcher(address).append(at, EncodedRecord(record).bytes(), data,
                            CommandBatcher::Record::question);
}

void Delegate::put(NodeId to, std::uint64_t token, std::uint64_t dst, Bytes data) {
    DelegationRecord record;
    record.kind = Kind::put;
    record.origin = self_;
    record.token = token;
    record.dst = dst;
    record.bytes = data.size();
    ask(to, dst, record, data);
}

void Delegate::copy(NodeId at, std::uint64_t token, std::uint64_t dst, std::uint64_t src,
                    std::uint64_t bytes) {
    DelegationRecord record;
    record.kind = Kind::copy;
    record.origin = self_;
    record.token = token;
    record.dst = dst;
    record.src = src;
    record.bytes = bytes;
    ask(at, src, record, {});
}

void Delegate::atomic(NodeId at, const DelegationRecord& record) {
    ask(at, record.src, record, {});
}

// --- carrying out --------------------------------------------------------------------------------

void Delegate::on_message(void* self, NodeId from, Bytes body) noexcept {
    auto& delegate = *static_cast<Delegate*>(self);
    while (!body.empty()) {
        const std::size_t left = body.size();
        DelegationRecord record;
        Bytes data;
        const bool understood = decode_record(body, record, data);
        HIROBA_INVARIANT(understood,
                         "node %u sent a delegated command that no node writes, %lu "
                         "bytes before the end of its message",
                         from.value, left);
        delegate.carry_out(from, record, data);
    }
    delegate.flush(CommandBatcher::When::now);
}

void Delegate::carry_out(NodeId from, const DelegationRecord& record, Bytes data) noexcept {
    HIROBA_INVARIANT(record.origin.value < memory_.layout().nodes(),
                     "node %u delegates for node %u of %u", from.value, record.origin.value,
                     memory_.layout().nodes());
    switch (record.kind) {
        case Kind::put: return take_put(record, data);
        case Kind::copy: return take_copy(record);
        case Kind::atomic: return take_atomic(record);
        case Kind::done: return hooks_.finished(hooks_.context, record.token, record.bytes);
    }
}

ResolvedAddress Delegate::own(const DelegationRecord& record, std::uint64_t address,
                              std::uint64_t bytes) noexcept {
    ResolvedAddress place = memory_.resolve(address, bytes);
    const bool is_own = place.fault == AddressFault::none && place.node == self_;
    if (!is_own) [[unlikely]] {
        const char* const why = place.fault == AddressFault::none
                                    ? "is not of the rank that was asked"
                                    : text_of(place.fault);
        hooks_.refused(hooks_.context, {record.origin, address, bytes, why});
        fatal("a refused access to global address 0x%lx went on", address);
    }
    return place;
}

void Delegate::take_put(const DelegationRecord& record, Bytes data) noexcept {
    ResolvedAddress to = own(record, record.dst, data.size());
    copy_shared(to.reach, data.data(), data.size());
    to.release();
    tell_done(record, data.size());
}

void Delegate::take_copy(const DelegationRecord& record) noexcept {
    HIROBA_INVARIANT(record.bytes <= data_bytes_max(),
                     "node %u delegates a copy of %lu bytes in one piece; at most %lu",
                     record.origin.value, record.bytes, data_bytes_max());
    ResolvedAddress from = own(record, record.src, record.bytes);
    deliver(record, {from.reach, record.bytes});
    from.release();
}

void Delegate::take_atomic(const DelegationRecord& record) noexcept {
    ResolvedAddress word = own(record, record.src, record.width);
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(word.reach) % record.width == 0;
    HIROBA_INVARIANT(is_aligned, "node %u delegates an atomic of %u bytes at global address 0x%lx",
                     record.origin.value, record.width, record.src);
    const std::uint64_t old =
        apply_to_word(word.reach, record.op, record.width, record.operand, record.expected);
    word.release();
    // The low bytes come first.
    deliver(record, std::as_bytes(std::span(&old, 1)).first(record.width));
}

void Delegate::deliver(const DelegationRecord& asked, Bytes data) noexcept {
    const NodeId to = memory_.layout().parts(asked.dst).node;
    if (to == self_) {
        ResolvedAddress place = own(asked, asked.dst, data.size());
        if (!data.empty()) std::memmove(place.reach, data.data(), data.size());
        place.release();
        return tell_done(asked, data.size());
    }
    if (to.value >= memory_.layout().nodes()) {
        hooks_.refused(hooks_.context,
                       {asked.origin, asked.dst, data.size(), text_of(AddressFault::no_node)});
    }
    DelegationRecord record = asked;
    record.kind = Kind::put;
    record.bytes = data.size();
    batcher(record.dst)
        .append(to, EncodedRecord(record).bytes(), data, CommandBatcher::Record::answer);
}

void Delegate::tell_done(const DelegationRecord& record, std::uint64_t bytes) noexcept {
    if (record.origin == self_) return hooks_.finished(hooks_.context, record.token, bytes);
    DelegationRecord done = record;
    done.kind = Kind::done;
    done.bytes = bytes;
    batcher(record.dst)
        .append(record.origin, EncodedRecord(done).bytes(), {}, CommandBatcher::Record::answer);
}

}  // namespace hiroba::gas
