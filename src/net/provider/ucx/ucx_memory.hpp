// SPDX-License-Identifier: BSD-3-Clause
// Role: this node's regions as UCX knows them, and the keys to those of its peers. Where a device
// may pin memory, a region is registered by chunks, each when it is first used by anybody: most of
// a region is never touched, and what is pinned is filled. Elsewhere it is one chunk, registered
// at connect(), whose key is in the card.
// Invariant: a chunk once registered stays so; where it is pinned its memory must not be exchanged
// for other pages (Limits::pins_memory).
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "net/provider/ucx/ucp_library.hpp"

namespace hiroba::net::ucx {

inline constexpr std::size_t pinned_chunk_bytes = std::size_t{1} << 20;

/// Thread: one at a time; the provider's latch.
class OwnMemory {
public:
    struct Region {
        std::byte* start = nullptr;
        std::size_t bytes = 0;
        bool own = false;               ///< to be unmapped
        std::vector<ucp_mem_h> chunks;  ///< nullptr: not registered yet
    };
    explicit OwnMemory(const UcpLibrary& ucp) : ucp_(ucp) {}
    /// Before UCX's context goes.
    void give_up(ucp_context_h context) noexcept;

    /// `start`: where it lies, as long as this; nullptr: it is made, and errno says why not.
    bool add(std::byte* start, std::size_t bytes, bool by_chunks);
    std::size_t count() const noexcept { return regions_.size(); }
    MutableBytes memory(std::uint32_t region) const noexcept {
        return {regions_[region].start, regions_[region].bytes};
    }
    bool is_by_chunks(std::uint32_t region) const noexcept { return by_chunks_[region]; }
    std::size_t chunks(std::uint32_t region) const noexcept {
        return regions_[region].chunks.size();
    }
    /// Registers the chunk if it is not yet, and packs its key.
    ucs_status_t pack_key(ucp_context_h context, std::uint32_t region, std::uint32_t chunk,
                          std::vector<std::byte>& key) noexcept;

private:
    const UcpLibrary& ucp_;
    std::vector<Region> regions_;
    std::vector<bool> by_chunks_;
};

/// The keys to one peer's regions. They go with its endpoint. Thread: as above.
class PeerKeys {
public:
    enum class State : std::uint8_t { unknown, asked, known };

    /// @param key  of all of it; empty: its chunks are asked for
    void add(std::uint64_t start, std::size_t bytes, std::span<const std::byte> key);
    std::uint64_t start(std::uint32_t region) const noexcept { return regions_[region].start; }
    /// The chunk that `offset` lies in, and how many bytes from there on it has.
    std::pair<std::uint32_t, std::size_t> chunk_at(std::uint32_t region,
                                                   std::uint64_t offset) const noexcept;
    /// nullptr: not known; then whoever finds it unknown asks, and it counts as asked.
    ucp_rkey_h look(const UcpLibrary& ucp, ucp_ep_h endpoint, std::uint32_t region,
                    std::uint32_t chunk, bool& has_to_ask) noexcept;
    /// Takes the peer's answer. False: it answers a question that no thread asked.
    bool tell(const UcpLibrary& ucp, ucp_ep_h endpoint, std::uint32_t region, std::uint32_t chunk,
              std::span<const std::byte> key) noexcept;
    void forget(const UcpLibrary& ucp) noexcept;

private:
    struct Chunk {
        State state = State::unknown;
        ucp_rkey_h key = nullptr;
    };
    struct Region {
        std::uint64_t start = 0;
        std::size_t bytes = 0, chunk_bytes = 0;
        std::span<const std::byte> packed;  ///< of all of it
        std::vector<Chunk> chunks;          ///< made on first use
    };
    std::vector<Region> regions_;
};

}  // namespace hiroba::net::ucx
