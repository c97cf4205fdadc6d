// SPDX-License-Identifier: BSD-3-Clause
#include "net/provider/udp/peer_table.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace hiroba::net::udp {

PeerTable::~PeerTable() {
    if (memory_ != nullptr) munmap(memory_, memory_bytes_);
}

bool PeerTable::open(std::uint32_t nodes) noexcept {
    memory_bytes_ = std::size_t{nodes} * (sizeof *peers_ + sizeof *drawn_ + sizeof *port_);
    void* const memory = mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    memory_ = static_cast<std::byte*>(memory);
    nodes_ = nodes;
    peers_ = reinterpret_cast<Peer**>(memory_);
    drawn_ = reinterpret_cast<std::uint64_t*>(peers_ + nodes);
    port_ = reinterpret_cast<std::uint16_t*>(drawn_ + nodes);
    return true;
}

void PeerTable::set(std::uint32_t rank, const Address& address, std::uint64_t drawn) {
    const std::uint32_t host = number_of(address);
    if (rows_.empty() || rows_.back().host != host) rows_.push_back({rank, host});
    port_[rank] = address.port;
    drawn_[rank] = drawn;
}

void PeerTable::complete() {
    host_numbers_.clear();
    rows_.shrink_to_fit();
    hosts_.shrink_to_fit();
}

Address PeerTable::address(std::uint32_t rank) const noexcept {
    const auto behind =
        std::upper_bound(rows_.begin(), rows_.end(), rank,
                         [](std::uint32_t wanted, const Row& row) { return wanted < row.first; });
    Address address = hosts_[std::prev(behind)->host];
    address.port = port_[rank];
    return address;
}

std::uint32_t PeerTable::number_of(const Address& host) {
    HostKey key{};
    std::memcpy(key.data(), host.bytes, sizeof host.bytes);
    std::memcpy(key.data() + sizeof host.bytes, &host.scope, sizeof host.scope);
    key.back() = static_cast<std::uint8_t>(host.family);
    const auto [known, is_new] =
        host_numbers_.try_emplace(key, static_cast<std::uint32_t>(hosts_.size()));
    if (is_new) {
        hosts_.push_back(host);
        hosts_.back().port = 0;
    }
    return known->second;
}

}  // namespace hiroba::net::udp
