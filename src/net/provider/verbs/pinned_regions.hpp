// SPDX-License-Identifier: BSD-3-Clause
// Role: this node's registered memory, and the keys to that of its peers. A region is pinned by
// chunks, each when it is first used by anybody: most of a region is never touched.
// Invariant: a chunk once pinned stays so; its memory must not be exchanged for other pages
// (Limits::pins_memory).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/latch.hpp"
#include "net/provider/verbs/device.hpp"

namespace hiroba::net::verbs {

inline constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

/// Thread: any; one latch.
class PinnedRegions {
public:
    explicit PinnedRegions(Device& device) : device_(device) {}
    ~PinnedRegions();

    struct Region {
        std::byte* start = nullptr;
        std::size_t bytes = 0;
        bool own = false;  ///< to be unmapped
        std::vector<ibv_mr*> chunks;
    };
    /// `start` lies there as long as this.
    void add(std::byte* start, std::size_t bytes, bool own);
    std::size_t count() const noexcept { return regions_.size(); }
    MutableBytes memory(std::uint32_t region) const noexcept {
        return {regions_[region].start, regions_[region].bytes};
    }
    /// Pins the chunk if it is not yet; nullptr: errno says why.
    ibv_mr* pin(std::uint32_t region, std::uint32_t chunk) noexcept;
    /// The local key of `memory` where it begins in a region, and how many bytes of it the key
    /// is for.
    struct Local {
        std::uint32_t key;
        std::size_t bytes;
    };
    std::optional<Local> find(const std::byte* memory, std::size_t bytes) noexcept;

private:
    Device& device_;
    Latch latch_;
    std::vector<Region> regions_;
};

/// Keys to chunks of peers, as they told them. Thread: any; one latch.
class PeerKeys {
public:
    enum class State : std::uint8_t { unknown, asked, known };
    struct Key {
        State state = State::unknown;
        std::uint32_t key = 0;
    };
    PeerKeys(std::uint32_t nodes, std::vector<std::size_t> region_bytes);

    /// The key; where it is unknown it counts as asked from now on, and the caller asks.
    Key look(NodeId peer, std::uint32_t region, std::uint32_t chunk) noexcept;
    void tell(NodeId peer, std::uint32_t region, std::uint32_t chunk, std::uint32_t key) noexcept;

private:
    std::vector<std::size_t> region_bytes_;
    Latch latch_;
    std::vector<std::vector<std::vector<Key>>>
        keys_;  ///< by peer, region, chunk; made on first use
};

}  // namespace hiroba::net::verbs
