// SPDX-License-Identifier: BSD-3-Clause
// Role: see address_card.hpp.
#include "net/wire/address_card.hpp"

namespace hiroba::net::wire {

void add_region(AddressCard& card, std::uint64_t bytes) noexcept {
    if (card.regions < named_regions_max) card.region_bytes[card.regions] = bytes;
    ++card.regions;
    card.memory_bytes += bytes;
    card.regions_hash = (card.regions_hash ^ bytes) * 0x9E37'79B9'7F4A'7C15u + 1;
}

std::string card_difference(const AddressCard& mine, const AddressCard& theirs,
                            std::uint32_t rank) {
    const auto differ = [](const char* what, std::uint64_t ours, std::uint64_t other) {
        return std::string(what) + " " + std::to_string(other) + ", here " + std::to_string(ours);
    };
    if (theirs.version != mine.version)
        return differ("layout version", mine.version, theirs.version);
    if (theirs.job_key != mine.job_key) return differ("job key", mine.job_key, theirs.job_key);
    if (theirs.node != rank) return differ("rank", rank, theirs.node);
    if (theirs.nodes != mine.nodes) return differ("number of nodes", mine.nodes, theirs.nodes);
    if (theirs.regions != mine.regions) return differ("regions", mine.regions, theirs.regions);
    for (std::size_t region = 0; region < named_regions_max; ++region) {
        if (theirs.region_bytes[region] != mine.region_bytes[region])
            return std::to_string(theirs.region_bytes[region]) + " bytes in region " +
                   std::to_string(region) + ", here " + std::to_string(mine.region_bytes[region]);
    }
    if (theirs.regions_hash != mine.regions_hash || theirs.memory_bytes != mine.memory_bytes) {
        return differ("other sizes of regions, in all bytes", mine.memory_bytes,
                      theirs.memory_bytes);
    }
    return {};
}

}  // namespace hiroba::net::wire
