// SPDX-License-Identifier: BSD-3-Clause
// Role: where every node of the job is, and what is kept of those talked to.
// Invariant: a node never talked to takes 10 bytes, and the nodes of one host that follow each
// other in rank (as the launcher places them) 8 together, beside their host's address. The pointers
// to peers lie in pages of which only touched ones cost anything. Source: ACP basic layer, table 6,
// whose address and sequence tables take 14 MB at 2^20 ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "net/provider/udp/socket.hpp"

namespace hiroba::net::udp {

struct Peer;

/// Owned by the thread that calls connect(), then by the provider's latch.
class PeerTable {
public:
    PeerTable() = default;
    PeerTable(const PeerTable&) = delete;
    ~PeerTable();

    /// Room for `nodes` nodes; false when the system has no memory.
    bool open(std::uint32_t nodes) noexcept;
    std::uint32_t nodes() const noexcept { return nodes_; }

    /// In rank order, one after the other.
    /// @param drawn  what the node has drawn for this run
    void set(std::uint32_t rank, const Address& address, std::uint64_t drawn);
    /// All have been set: lets go of what only set() needs.
    void complete();
    Address address(std::uint32_t rank) const noexcept;
    std::uint64_t drawn(std::uint32_t rank) const noexcept { return drawn_[rank]; }

    /// nullptr: never talked to.
    Peer*& operator[](std::uint32_t rank) noexcept { return peers_[rank]; }

private:
    using HostKey = std::array<std::uint8_t, sizeof Address::bytes + sizeof Address::scope + 1>;
    /// Ranks from `first` on, up to the next row's, are on one host.
    struct Row {
        std::uint32_t first, host;
    };
    std::uint32_t number_of(const Address& host);

    std::uint32_t nodes_ = 0;
    std::byte* memory_ = nullptr;
    std::size_t memory_bytes_ = 0;
    // Parts of memory_, one entry a rank.
    Peer** peers_ = nullptr;
    std::uint64_t* drawn_ = nullptr;
    std::uint16_t* port_ = nullptr;
    std::vector<Row> rows_;
    std::vector<Address> hosts_;  ///< without ports
    std::map<HostKey, std::uint32_t> host_numbers_;
};

}  // namespace hiroba::net::udp
