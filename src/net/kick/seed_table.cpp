// SPDX-License-Identifier: BSD-3-Clause
#include "net/kick/seed_table.hpp"

#include <algorithm>
#include <string>

namespace hiroba::net::kick {

namespace {
Error refused(std::string text) { return {ErrorKind::refused, "kick target: " + std::move(text)}; }
}  // namespace

void SeedTable::expose(RegionId region, std::uint64_t bytes) {
    exposed_.push_back({region, bytes});
}

std::uint64_t SeedTable::exposed_bytes(RegionId region) const noexcept {
    for (const Exposed& each : exposed_)
        if (each.region == region) return each.bytes;
    return 0;
}

Result<Target> SeedTable::enter(NodeId rank, RegionId region, std::uint64_t page_offset) {
    if (rank.value >= nodes_) {
        return refused("node " + std::to_string(rank.value) + " of a job of " +
                       std::to_string(nodes_) + " nodes");
    }
    const std::uint64_t bytes = exposed_bytes(region);
    if (bytes == 0) {
        return refused("region " + std::to_string(region.value) + " is not exposed to kicks");
    }
    if (page_offset % page_bytes != 0) {
        return refused("offset " + std::to_string(page_offset) + " is no multiple of " +
                       std::to_string(page_bytes));
    }
    if (page_offset >= bytes) {
        return refused("page at " + std::to_string(page_offset) + " of region " +
                       std::to_string(region.value) + ", which has " + std::to_string(bytes) +
                       " bytes");
    }
    for (std::uint32_t i = 0; i < seeds_.size(); ++i) {
        const Seed& seed = seeds_[i];
        if (seed.stamp().rank.value == rank.value && seed.stamp().region == region &&
            seed.page_offset() == page_offset) {
            return Target{i};
        }
    }
    const auto in_page =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(page_bytes, bytes - page_offset));
    seeds_.push_back(Seed{{job_key_, rank, region}, page_offset, in_page});
    return Target{static_cast<std::uint32_t>(seeds_.size() - 1)};
}

}  // namespace hiroba::net::kick
