// SPDX-License-Identifier: BSD-3-Clause
// Role: what each provider checks of its setup and of what is asked of it, in the same words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/fatal.hpp"
#include "net/provider/address_exchange.hpp"
#include "net/provider/provider.hpp"

namespace hiroba::net {

/// An error of the kind `refused` that names this node.
Error refused(NodeId self, const std::string& text);

/// Refuses a rank that the job does not have.
Result<void> check_rank(const ProviderSetup& setup);

/// The error of a provider that this build lacks.
///
/// @param whose    whose headers there were none of
/// @param package  Debian's, that has them
Error not_built(const char* provider, const char* whose, const char* package);

/// The bytes of a message of these parts: at most `bytes_max`.
inline std::size_t check_message_bytes(std::span<const Bytes> parts,
                                       std::size_t bytes_max) noexcept {
    std::size_t bytes = 0;
    for (const Bytes& part : parts) bytes += part.size();
    HIROBA_INVARIANT(bytes <= bytes_max, "message of %lu bytes; at most %lu", bytes, bytes_max);
    return bytes;
}

/// The entry of `regions` for a region in which the bytes at `offset` lie.
template <class Regions>
const auto& region_with(const Regions& regions, RegionId region, std::uint64_t offset,
                        std::size_t bytes) noexcept {
    HIROBA_INVARIANT(region.value < regions.size(), "region %u of %lu", region.value,
                     regions.size());
    const auto& memory = regions[region.value];
    HIROBA_INVARIANT(offset <= memory.bytes && bytes <= memory.bytes - offset,
                     "%lu bytes at offset %lu of region %u, which has %lu", bytes, offset,
                     region.value, memory.bytes);
    return memory;
}

/// The memory of this node's region, of those that `regions` keeps.
template <class Regions>
MutableBytes own_memory(const Regions& regions, RegionId region) noexcept {
    HIROBA_INVARIANT(region.value < regions.count(), "region %u of %lu", region.value,
                     regions.count());
    return regions.memory(region.value);
}

/// Where `bytes` at `offset` of this node's region begin.
template <class Regions>
std::byte* own_part(const Regions& regions, RegionId region, std::uint64_t offset,
                    std::size_t bytes) noexcept {
    const MutableBytes memory = own_memory(regions, region);
    HIROBA_INVARIANT(offset <= memory.size() && bytes <= memory.size() - offset,
                     "%lu bytes at %lu of region %u, which has %lu", bytes, offset, region.value,
                     memory.size());
    return memory.data() + offset;
}

}  // namespace hiroba::net
