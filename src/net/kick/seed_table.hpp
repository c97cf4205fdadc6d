// SPDX-License-Identifier: BSD-3-Clause
// Role: the table of registered targets: each seed is a packet header made in advance, all but the
// low 12 bits of the remote address. Source: Tanabe et al., DIMMnet-1, header translation table.
// Invariant: only registration makes a seed, and nothing changes one. What is worth checking (job,
// rank, region, page) is checked here, once, and never again when a kick is sent.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "net/provider/provider.hpp"

namespace hiroba::net::kick {

/// What a receiver compares before it lets bytes land.
struct Stamp {
    std::uint64_t job_key = 0;
    NodeId rank;
    RegionId region;
};

/// One page of one node's region.
class Seed {
public:
    const Stamp& stamp() const noexcept { return stamp_; }
    /// The page's offset in the region; a multiple of page_bytes.
    std::uint64_t page_offset() const noexcept { return page_offset_; }
    /// Bytes of the page that belong to the region.
    std::uint32_t bytes() const noexcept { return bytes_; }

private:
    friend class SeedTable;
    Seed(const Stamp& stamp, std::uint64_t page_offset, std::uint32_t bytes)
        : stamp_(stamp), page_offset_(page_offset), bytes_(bytes) {}
    Stamp stamp_;
    std::uint64_t page_offset_;
    std::uint32_t bytes_;
};

/// Names a registered seed. Default: none.
class Target {
public:
    Target() = default;
    bool operator==(const Target&) const = default;
    std::uint32_t number() const noexcept { return number_; }

private:
    friend class SeedTable;
    explicit Target(std::uint32_t number) : number_(number) {}
    std::uint32_t number_ = none;
    static constexpr std::uint32_t none = ~0u;
};

/// Owned by one thread at a time.
class SeedTable {
public:
    SeedTable(std::uint64_t job_key, std::uint32_t nodes) : job_key_(job_key), nodes_(nodes) {}

    /// Lets kicks reach `region`, which has `bytes` bytes on every node.
    void expose(RegionId region, std::uint64_t bytes);
    /// Bytes of an exposed region; 0 when it is not exposed.
    std::uint64_t exposed_bytes(RegionId region) const noexcept;

    /// Registers the page at `page_offset` of the node's region. The same page twice is one target.
    /// Refuses a rank outside the job, a region not exposed, a page that starts outside it or not
    /// at a multiple of page_bytes.
    Result<Target> enter(NodeId rank, RegionId region, std::uint64_t page_offset);

    /// nullptr: no such target.
    const Seed* find(Target target) const noexcept {
        return target.number() < seeds_.size() ? &seeds_[target.number()] : nullptr;
    }

private:
    struct Exposed {
        RegionId region;
        std::uint64_t bytes;
    };
    std::uint64_t job_key_;
    std::uint32_t nodes_;
    std::vector<Exposed> exposed_;
    std::vector<Seed> seeds_;
};

}  // namespace hiroba::net::kick
