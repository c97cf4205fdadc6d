// SPDX-License-Identifier: BSD-3-Clause
// Role: the delegate station: carries out on this node's memory what other nodes command, and sends
// this node's commands to theirs.
// Source: ACP basic layer, section 4.2: a copy between two other nodes goes to the owner of the
// source, an atomic to the owner of its word.
//
//   origin --copy, atomic--> owner of src --put--> owner of dst --done--> origin
//
// Each arrow that would start and end at one node is left out. Invariant: a delegate keeps no state
// between messages; commands are cut by their origin, which bounds what is under way, and each is
// carried out once because messages are delivered once. A command travels by the color of the
// memory it is asked of, and its bytes by that of the memory they are for; messages of one color
// between two nodes keep their order, and so do the effects of commands that take the same way.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "gas/command_batcher.hpp"
#include "gas/delegation_record.hpp"
#include "gas/global_memory.hpp"
#include "gas/messages.hpp"
#include "net/net.hpp"

namespace hiroba::gas {

/// An access that was asked of this node and that its memory does not allow.
struct RefusedAccess {
    NodeId origin;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    const char* why = "";
};

/// Functions that are called at the origin, on the polling thread. They may append, not wait.
struct DelegateHooks {
    void* context = nullptr;
    /// `bytes` of the command `token` are in memory at dst (atomic: its old value is).
    void (*finished)(void* context, std::uint64_t token, std::uint64_t bytes) noexcept = nullptr;
    /// Must not return: the interface above has no way to tell the origin.
    void (*refused)(void* context, const RefusedAccess& access) noexcept = nullptr;
};

/// Stores an atomic's old value, whole, and carries out an atomic, on memory within reach.
void store_word(std::byte* at, std::uint64_t value, std::uint32_t width) noexcept;
std::uint64_t apply_to_word(std::byte* at, net::AtomicOp op, std::uint32_t width,
                            std::uint64_t operand, std::uint64_t expected) noexcept;

/// The kind of messages that travel by `color`.
constexpr net::MessageKind delegation_kind(std::uint32_t color) noexcept {
    return static_cast<net::MessageKind>(static_cast<std::uint32_t>(message::delegation) + color);
}

/// Make it before Endpoint::connect(). Any thread; what is asked leaves with flush().
class Delegate {
public:
    /// @param colors  1 to AddressLayout::colors_max
    Delegate(net::Endpoint& endpoint, GlobalMemory& memory, const DelegateHooks& hooks,
             std::uint32_t colors = 1);

    /// @param data  at most data_bytes_max()
    void put(NodeId to, std::uint64_t token, std::uint64_t dst, Bytes data);
    /// @param at  owner of `src`  @param bytes  at most data_bytes_max()
    void copy(NodeId at, std::uint64_t token, std::uint64_t dst, std::uint64_t src,
              std::uint64_t bytes);
    /// @param at  owner of `src`
    void atomic(NodeId at, const DelegationRecord& record);

    std::size_t data_bytes_max() const noexcept { return batchers_[0]->data_bytes_max(); }
    /// One question to `by`, asked of memory at `address`, has its answer.
    void answered(NodeId by, std::uint64_t address) noexcept { batcher(address).answered(by); }
    /// As CommandBatcher::flush(), of all colors.
    void flush(CommandBatcher::When when) {
        for (const auto& batcher : batchers_) batcher->flush(when);
    }

private:
    static void on_message(void* self, NodeId from, Bytes body) noexcept;
    /// That of the color of `address`.
    CommandBatcher& batcher(std::uint64_t address) noexcept {
        const std::uint32_t color = memory_.layout().parts(address).color;
        return *batchers_[color < batchers_.size() ? color : 0];
    }
    void ask(NodeId at, std::uint64_t address, const DelegationRecord& record, Bytes data);
    void carry_out(NodeId from, const DelegationRecord& record, Bytes data) noexcept;
    void take_put(const DelegationRecord& record, Bytes data) noexcept;
    void take_copy(const DelegationRecord& record) noexcept;
    void take_atomic(const DelegationRecord& record) noexcept;
    /// The source has been read: its bytes go on to where dst is.
    void deliver(const DelegationRecord& asked, Bytes data) noexcept;
    void tell_done(const DelegationRecord& record, std::uint64_t bytes) noexcept;
    /// The address in this node's own memory; ends the job when it is none.
    ResolvedAddress own(const DelegationRecord& record, std::uint64_t address,
                        std::uint64_t bytes) noexcept;

    NodeId self_;
    GlobalMemory& memory_;
    DelegateHooks hooks_;
    std::vector<std::unique_ptr<CommandBatcher>> batchers_;  ///< by color
};

}  // namespace hiroba::gas
