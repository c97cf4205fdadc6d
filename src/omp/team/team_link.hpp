// SPDX-License-Identifier: BSD-3-Clause
// Role: regions between nodes: fork, barrier and join as kicks that carry memory's news.
// Invariant: exactly one thread of a node is in here at a time, except for the message handlers,
// which only queue what is too long for a window. The nodes of a region are 0 to members - 1. Every
// message is read before its sender can be more than one phase ahead, so PeerQueue's places
// suffice.
//
// Who sends what, with the news of memory in each message:
//   fork     node 0 to each member
//   barrier  each member to each other, up to 8 members (one way instead of two)
//   gather   beyond that: each member to node 0, which then sends
//   spread   to each member
//   join     each member to node 0
// Each goes through a window of the receiver's polled memory, which it mostly fits; news that are
// longer go as a message, and an empty window says so, which keeps the order.
// A node without threads in the region gets nothing: its news waits for its next fork.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "net/kick/kick.hpp"
#include "net/net.hpp"
#include "omp/omp.hpp"
#include "omp/team/peer_queue.hpp"

namespace hiroba::omp {

/// A region as the initial thread starts it.
struct Fork {
    OutlinedFunction function = nullptr;
    void* data = nullptr;
    Place place;  ///< of thread 0
    Icvs icvs;
    std::uint64_t sequence = 0;  ///< number of the region's first worksharing construct
    bool has_loop = false;
    Loop loop;
    ProcessState process;  ///< what the members' processes must be like
};

/// Everything but the handlers: on the runtime stack, while the node's other threads that take
/// part stand still in the runtime.
class TeamLink {
public:
    /// Registers handlers; before Endpoint::connect().
    static Result<std::unique_ptr<TeamLink>> create(const Parts& parts);
    TeamLink(const TeamLink&) = delete;
    TeamLink& operator=(const TeamLink&) = delete;
    /// After Endpoint::connect().
    void attach();

    /// Node 0: starts a region on `members` nodes (at least 2); join() ends it.
    void fork(const Fork& fork, std::uint32_t members) noexcept;
    void join() noexcept;
    void send_quit() noexcept;

    /// Other nodes: waits for the next region. False: the program is over.
    bool await_fork(Fork* fork) noexcept;
    void set_members(std::uint32_t members) noexcept { members_ = members; }
    void arrive_at_join() noexcept;

    /// Every member: all writes of all members before it are visible to all after it.
    void barrier() noexcept;

    void count_program_threads(int change) noexcept { program_threads_.fetch_add(change); }

private:
    /// What one peer and this node send each other, in turn through each of the windows.
    struct Peer {
        std::vector<net::kick::Window> out;
        std::vector<net::kick::Landed> in;
        std::uint32_t sent = 0, received = 0;
        net::kick::Window& next_out() noexcept { return out[sent++ % out.size()]; }
        net::kick::Landed& next_in() noexcept { return in[received % in.size()]; }
    };
    enum class Kind : std::uint32_t { fork, barrier, gather, spread, join };
    struct Header {
        Kind kind;
        std::uint32_t phase;
        std::uint64_t region;
    };

    explicit TeamLink(const Parts& parts);
    void release() noexcept;
    void acquire() noexcept;
    void all_nodes_know() noexcept;
    void region_runs(bool runs) noexcept;
    Result<void> reserve_windows();
    void send(std::uint32_t to, Kind kind, Bytes extra = {}) noexcept;
    /// Takes the next message of `from`, which must be a `kind` of this region and phase.
    void receive(std::uint32_t from, Kind kind, MutableBytes extra = {}) noexcept;
    void read(std::uint32_t from, Kind kind, Bytes body, MutableBytes extra) noexcept;
    void read_message(std::uint32_t from, Kind kind, MutableBytes extra) noexcept;
    void barrier_all_to_all() noexcept;
    void barrier_over_node_0() noexcept;
    void on_team_message(NodeId from, Bytes body) noexcept;
    void on_quit() noexcept;

    Parts parts_;
    std::uint32_t self_, members_ = 1;
    std::uint64_t region_ = 0;
    std::uint32_t phase_ = 0;  ///< barriers passed in this region
    std::unique_ptr<net::kick::Board> board_;
    std::vector<std::vector<net::kick::WindowPlace>> places_;  ///< per peer
    std::vector<Peer> peers_;                                  ///< after attach()
    std::vector<PeerQueue> queues_;
    std::vector<std::byte> news_;  ///< what is being sent
    std::atomic<bool> over_{false}, in_region_{false};
    std::atomic<int> program_threads_{0};
};

}  // namespace hiroba::omp
