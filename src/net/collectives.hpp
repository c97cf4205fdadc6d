// SPDX-License-Identifier: BSD-3-Clause
// Role: operations that all nodes of a job take part in, over any provider: barrier, broadcast,
// all-gather, all-to-all, all-reduce.
//
// The barrier is that of kick/barrier_phases.hpp. The others are exchanges: every node gives every
// other one up to `chunk_bytes` and waits for what they give. Each pair of nodes has two slots,
// used in turn: who is in exchange k+1 has what everybody gave in k, so what it writes for k+2
// overwrites nothing unread. Where peers are mapped, giving is a copy and one store that the
// receiver watches; elsewhere it is a message whose handler does the same at the receiver.
//
// Invariant: collective: every node calls the same operations in the same order with equal sizes,
// from one thread at a time. What breaks it ends the process (call_check.hpp): what is given has
// the giver's call with it, and who waits for a second reports its call.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "net/call_check.hpp"
#include "net/kick/group.hpp"
#include "net/net.hpp"

namespace hiroba::net {

/// Make it before connect(), the same on every node; attach() after connect().
class Collectives {
public:
    static Result<std::unique_ptr<Collectives>> make(Endpoint& endpoint, std::uint64_t job_key);
    void attach();

    /// Returns once every node has called it.
    void barrier() noexcept { meet(Call::Kind::barrier, *barrier_); }
    /// The same as the last call of all: it is no other node's barrier().
    void leave() noexcept { meet(Call::Kind::leave, *leaving_); }
    /// `data` of `root` to every node; returns once every node has it.
    void broadcast(NodeId root, MutableBytes data) noexcept;
    /// Gathers the nodes' `mine` in rank order.
    /// @param all  nodes * mine.size() bytes
    void all_gather(Bytes mine, MutableBytes all) noexcept;
    /// Piece r of `out` to node r, whose piece for this node becomes piece r of `in`.
    /// @param out,in  nodes * piece_bytes bytes
    void all_to_all(Bytes out, MutableBytes in, std::size_t piece_bytes) noexcept;
    /// Combines the nodes' `values` by `reduce(value, other)`, in rank order: every node has
    /// the same bits, of floating-point sums too.
    template <class Value, class Reduce>
    void all_reduce(std::span<Value> values, Reduce&& reduce) noexcept {
        static_assert(std::is_trivially_copyable_v<Value> && sizeof(Value) <= chunk_bytes);
        const auto each = [&reduce](std::byte* into, const std::byte* other, std::size_t count) {
            auto* const mine = reinterpret_cast<Value*>(into);
            const auto* const theirs = reinterpret_cast<const Value*>(other);
            for (std::size_t i = 0; i < count; ++i) mine[i] = reduce(mine[i], theirs[i]);
        };
        reduce_bytes(std::as_writable_bytes(values), sizeof(Value), each);
    }
    /// As all_reduce() for values of `value_bytes` bytes each (1 to chunk_bytes) in `values`.
    /// @param each  each(into, other, count): puts `other` to `into`, `count` values of each
    template <class Each>
    void reduce_bytes(MutableBytes values, std::size_t value_bytes, Each&& each) noexcept {
        const std::size_t step = chunk_bytes / value_bytes * value_bytes;
        begin_call(Call::Kind::all_reduce, static_cast<std::uint32_t>(value_bytes), values.size());
        for (std::size_t at = 0; at < values.size(); at += step) {
            const MutableBytes part = values.subspan(at, std::min(step, values.size() - at));
            give_to_all(part);
            // The first term is node 0's, wherever that is.
            for (std::uint32_t rank = 0; rank < nodes_; ++rank) {
                const std::byte* const theirs =
                    rank == self_.value ? own_.data() : taken(NodeId{rank}).data();
                if (rank == 0) {
                    std::memcpy(part.data(), theirs, part.size());
                } else {
                    each(part.data(), theirs, part.size() / value_bytes);
                }
            }
            end_exchange();
        }
    }

    static constexpr std::size_t chunk_bytes = 8192;

private:
    /// Where one node gives to another; the first line holds what most exchanges need.
    struct alignas(cache_line_bytes) Slot {
        std::atomic<std::uint64_t> number;  ///< of the exchange whose bytes are here
        Call call;                          ///< of the giver
        std::byte bytes[chunk_bytes];
    };
    Collectives(Endpoint& endpoint, std::unique_ptr<kick::Board> board);

    static std::size_t slot_offset(NodeId giver, std::uint64_t number) noexcept {
        return (std::size_t{2} * giver.value + number % 2) * sizeof(Slot);
    }
    Slot& own_slot(NodeId giver, std::uint64_t number) const noexcept;
    /// Counts a call; one of no bytes, which exchanges nothing, is none.
    void begin_call(Call::Kind kind, std::uint32_t detail, std::size_t bytes) noexcept {
        if (bytes == 0) return;
        call_ = {kind, detail, bytes};
        ++calls_;
    }
    void meet(Call::Kind kind, kick::Barrier& at) noexcept;
    /// Waits until look(), and reports the call when that takes long.
    template <class Look>
    void await(Look&& look) noexcept;
    void report_call() noexcept;
    void give(NodeId to, Bytes bytes) noexcept;
    void give_to_all(Bytes bytes) noexcept;  ///< keeps a copy in own_
    void begin_exchange() noexcept { ++number_; }
    /// What `from` gave; waits for it. Valid until end_exchange().
    Bytes taken(NodeId from) noexcept;
    /// Waits for the nodes whose gift has not been looked at.
    void end_exchange() noexcept;
    void wake_peers() noexcept;
    static void arrived(void* context, NodeId from, Bytes body) noexcept;

    Endpoint& endpoint_;
    NodeId self_;
    std::uint32_t nodes_;
    std::unique_ptr<kick::Board> board_;
    std::optional<kick::Barrier> barrier_, leaving_;
    CallReferee referee_;      ///< node 0's
    Call call_;                ///< that this node is in, or was in last
    std::uint64_t calls_ = 0;  ///< its number
    RegionId region_;
    std::byte* local_ = nullptr;
    std::vector<std::byte*> mapped_;  ///< nullptr where the provider maps nothing
    std::uint64_t number_ = 0;        ///< of the exchange
    bool woken_ = false;              ///< this exchange's gifts were announced
    std::vector<std::byte> own_;
};

}  // namespace hiroba::net
