// SPDX-License-Identifier: BSD-3-Clause
#include "gas/global_memory.hpp"

namespace hiroba::gas {

const char* text_of(AddressFault fault) noexcept {
    switch (fault) {
        case AddressFault::none: return "is valid";
        case AddressFault::null: return "is the null address";
        case AddressFault::no_node: return "names a rank outside the job";
        case AddressFault::no_segment: return "names no segment";
        case AddressFault::past_end: return "reaches past the end of the starter memory";
        case AddressFault::unregistered: return "is not inside one live registration of its rank";
    }
    return "is no address";
}

ResolvedAddress GlobalMemory::fault_of(std::uint64_t address) const noexcept {
    const AddressParts parts = layout_.parts(address);
    if (address == 0) return {parts.node, AddressFault::null};
    const bool exists = parts.node.value < layout_.nodes();
    return {parts.node, exists ? AddressFault::no_segment : AddressFault::no_node};
}

ResolvedAddress GlobalMemory::resolve_registered(const AddressParts& parts,
                                                 std::uint64_t bytes) noexcept {
    if (bytes > layout_.place_end() - parts.place) return {parts.node, AddressFault::unregistered};
    if (parts.node != self_) return {parts.node, AddressFault::none};
    ResolvedAddress place{parts.node, AddressFault::none};
    place.pinned = table_.pin(parts.place, parts.color, bytes, &place.reach);
    if (place.pinned == nullptr) place.fault = AddressFault::unregistered;
    return place;
}

}  // namespace hiroba::gas
