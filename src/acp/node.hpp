// SPDX-License-Identifier: BSD-3-Clause
// Role: the face of the ACP basic layer: one process's part of it, from initialization to
// finalization. The C interface (include/acp.h, src/abi/acp) converts calls to these.
// Source: Saga et al., ACP basic layer. What it leaves open is decided in docs/layers/acp.md.
// Invariant: rank numbers are the interface's, node numbers are the job's; a reset permutes the
// former. Addresses carry node numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "acp/channels.hpp"
#include "acp/command_station.hpp"
#include "acp/heap.hpp"
#include "base/result.hpp"
#include "gas/delegate.hpp"
#include "gas/global_memory.hpp"
#include "net/bootstrap/job.hpp"
#include "net/kick/kick.hpp"
#include "net/net.hpp"

namespace hiroba::acp {

/// Values of `order`, and of the handle to complete, beside handles: as in include/acp.h.
inline constexpr std::int64_t handle_null = 0;
inline constexpr std::int64_t handle_all = -1;
inline constexpr std::int64_t handle_continue = -2;

/// Rank numbers after a reset. Empty: those of the nodes, at no memory.
struct RankNumbers {
    std::vector<std::uint32_t> rank_of_node, node_of_rank;
};

/// What survives from one life of the layer to the next in a process.
struct Life {
    std::uint64_t number = 0;       ///< lives before this one: keeps their datagrams out
    std::uint64_t last_handle = 0;  ///< handles go on growing
    RankNumbers ranks;
};

/// Thread: any, but open(), leave() and their like are collective and made by one thread while no
/// other is inside.
class Node {
public:
    /// Collective: meets the other nodes. Starter memory is zeroed; its size is HIROBA_ACP_STARTER,
    /// read now. `control` outlives the node.
    static Result<std::unique_ptr<Node>> open(const net::JobInfo& job, net::ControlChannel& control,
                                              Life life);
    ~Node();

    /// Collective: completes what this node issued, and returns when every node has.
    Result<Life> leave();
    /// Collective, as leave(), for a reset: the life that follows has `rank` for this node. Refused
    /// everywhere, with everything as it was, unless the new ranks are a permutation.
    Result<Life> leave_for_reset(std::int64_t rank);

    std::uint32_t rank() const noexcept { return rank_of(endpoint_->self()); }
    std::uint32_t ranks() const noexcept { return endpoint_->nodes(); }
    std::uint32_t rank_of(NodeId node) const noexcept {
        return ranks_.rank_of_node.empty() ? node.value : ranks_.rank_of_node[node.value];
    }
    void sync();

    // --- memory. Addresses and keys: gas/address_layout.hpp; 0 is none.
    /// Devices that memory may be registered for: the job's, and those of HIROBA_ACP_DEVICES.
    std::uint32_t colors() const noexcept { return colors_; }
    Result<std::uint64_t> starter_address(std::int64_t rank) const;
    Result<std::uint64_t> register_memory(void* first, std::uint64_t bytes, std::int64_t color);
    /// Waits for this node's accesses to it, and for others' that are being carried out here.
    Result<void> unregister_memory(std::uint64_t key);
    Result<std::uint64_t> address_of(std::uint64_t key, const void* byte) const;
    /// Where it is in this process.
    Result<void*> local(std::uint64_t address);
    /// A block of the heap of `rank`, aligned to 16, of undefined content; may wait for its owner.
    Result<std::uint64_t> allocate(std::uint64_t bytes, std::int64_t rank);
    Result<void> release(std::uint64_t address);
    Heap& heap() noexcept { return heap_; }
    Result<std::uint32_t> rank_of_address(std::uint64_t address) const;
    Result<std::uint32_t> color_of_address(std::uint64_t address) const;

    // --- channels, by Channels' own functions but for these.
    /// This rank's end of the next channel from `sender` to `receiver`.
    Result<Channels::Id> create_channel(std::int64_t sender, std::int64_t receiver);
    Result<std::uint64_t> wait_for_channel(Channels::Id request);
    Channels& channels() noexcept { return channels_; }

    // --- access. `order`: a handle or one of those above.
    /// The handle, or 0: refused, nothing was done; why_refused(the same) says why.
    std::int64_t try_access(const Access& access, std::int64_t order) {
        // Accesses that loads and stores can do should cost little more than these.
        if (order == handle_null && is_aligned(access) && access.bytes != 0) {
            std::byte* const dst = memory_.reach(access.dst, access.bytes);
            std::byte* const src = memory_.reach(access.src, access.bytes);
            if (dst != nullptr && src != nullptr) {
                return static_cast<std::int64_t>(station_.submit_here(access, dst, src));
            }
            if (const std::int64_t handle = try_registered(access, dst, src); handle != 0)
                return handle;
        }
        return try_any_access(access, order);
    }
    Error why_refused(const Access& access, std::int64_t order);
    void complete(std::int64_t handle) {
        const std::uint64_t wanted = handle_to_wait_for(handle);
        if (!station_.is_complete(wanted)) station_.complete(delegate_, wanted);
    }
    bool is_incomplete(std::int64_t handle);
    /// As complete() would find it, without making progress. @param handle  of try_access()
    bool is_over(std::int64_t handle) const noexcept {
        return station_.is_complete(static_cast<std::uint64_t>(handle));
    }

private:
    Node(std::unique_ptr<net::Endpoint> endpoint, net::ControlChannel& control,
         gas::Segment starter, std::unique_ptr<net::kick::Board> board, Life life,
         std::uint32_t colors);
    Result<Life> go(RankNumbers ranks);
    Result<NodeId> node_of(std::int64_t rank) const;
    static bool is_aligned(const Access& access) noexcept {
        return !access.is_atomic || ((access.dst | access.src) & (access.width - 1)) == 0;
    }
    /// Tries an access whose ends that are nullptr may be registered memory of this node. 0: not at
    /// once.
    std::int64_t try_registered(const Access& access, std::byte* dst, std::byte* src) noexcept;
    std::int64_t try_any_access(const Access& access, std::int64_t order);
    bool understand(std::int64_t order, Order& understood) const noexcept;
    /// Null, and handles that were never issued: nothing to wait for.
    std::uint64_t handle_to_wait_for(std::int64_t handle) const noexcept {
        const std::uint64_t last = station_.last_handle();
        if (handle == handle_all || handle == handle_continue) return last;
        const bool was_issued = handle > 0 && static_cast<std::uint64_t>(handle) <= last;
        return was_issued ? static_cast<std::uint64_t>(handle) : 0;
    }
    Error bad_address(const char* argument, std::uint64_t address, std::uint64_t bytes,
                      gas::AddressFault fault) const;
    gas::DelegateHooks hooks() noexcept;
    static void on_finished(void* self, std::uint64_t token, std::uint64_t bytes) noexcept;
    static void on_refused(void* self, const gas::RefusedAccess& access) noexcept;

    net::ControlChannel& control_;
    std::unique_ptr<net::Endpoint> endpoint_;
    std::uint64_t life_number_;
    std::uint32_t colors_;
    RankNumbers ranks_;
    gas::GlobalMemory memory_;
    gas::Delegate delegate_;
    CommandStation station_;
    Heap heap_;
    Channels channels_;
    std::unique_ptr<net::kick::Board> board_;
    std::optional<net::kick::Barrier> barrier_;  ///< of all ranks, once connected
    std::mutex one_at_a_time_;                   ///< threads in barrier_
    std::thread service_;
};

}  // namespace hiroba::acp
