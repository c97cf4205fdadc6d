// SPDX-License-Identifier: BSD-3-Clause
// Role: finds what a global address names: a place in the symmetric segment, which every node has,
// or memory registered at run time, which its owner alone can touch.
// Invariant: an access that leaves the memory it names is refused, here or by the owner.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gas/address_layout.hpp"
#include "gas/gas.hpp"
#include "gas/registration_table.hpp"
#include "hiroba/gas_cache.hpp"

namespace hiroba::gas {

/// Why an address is refused.
enum class AddressFault : std::uint8_t { none, null, no_node, no_segment, past_end, unregistered };
/// The fault in words, for error lines.
const char* text_of(AddressFault fault) noexcept;

/// The memory that an address names. The caller of resolve() calls release() once.
struct ResolvedAddress {
    NodeId node;
    AddressFault fault = AddressFault::none;
    std::byte* reach = nullptr;      ///< for this node's loads and stores; nullptr: the owner's
    Registration* pinned = nullptr;  ///< of this node

    void release() noexcept {
        if (pinned != nullptr) pinned->unpin();
        pinned = nullptr;
    }
};

/// One node's view of all global memory. Thread: any, after attach().
class GlobalMemory {
public:
    static constexpr std::uint64_t symmetric_segment = 1;

    /// @param symmetric  allocated, and attached before the first access
    GlobalMemory(NodeId self, std::uint32_t nodes, Segment symmetric)
        : self_(self),
          layout_(nodes),
          symmetric_(std::move(symmetric)),
          table_(layout_, self, symmetric_segment + 1) {}

    void attach() { symmetric_.attach(); }

    /// Resolves [address, address + bytes). Memory registered by other nodes is checked by them.
    ResolvedAddress resolve(std::uint64_t address, std::uint64_t bytes) noexcept {
        if (!layout_.is_address(address)) [[unlikely]]
            return fault_of(address);
        const AddressParts parts = layout_.parts(address);
        if (AddressLayout::segment_of(parts.place) == symmetric_segment && parts.color == 0) {
            const std::uint64_t offset = parts.place - AddressLayout::place_of(symmetric_segment);
            if (offset > symmetric_.bytes() || bytes > symmetric_.bytes() - offset) [[unlikely]]
                return {parts.node, AddressFault::past_end};
            std::byte* const reach = parts.node == self_
                                         ? symmetric_.local() + offset
                                         : symmetric_.reach({parts.node, offset}, bytes);
            return {parts.node, AddressFault::none, reach};
        }
        return resolve_registered(parts, bytes);
    }
    /// The place of [address, address + bytes) for this node's loads and stores, if the range is in
    /// the symmetric segment of a node within reach. nullptr says nothing else: see resolve().
    std::byte* reach(std::uint64_t address, std::uint64_t bytes) noexcept {
        const AddressParts parts = layout_.parts(address);
        // Segments before and behind this one are offsets beyond its end.
        const std::uint64_t offset = parts.place - AddressLayout::place_of(symmetric_segment);
        const bool is_inside = offset <= symmetric_.bytes() && bytes <= symmetric_.bytes() - offset;
        if (!is_inside || parts.color != 0 || parts.node.value >= layout_.nodes()) return nullptr;
        return parts.node == self_ ? symmetric_.local() + offset
                                   : symmetric_.reach({parts.node, offset}, bytes);
    }
    /// Calls work(dst, src) where both ends of an access are within reach or in registered memory
    /// of this node that the calling thread used lately, which stays registered until `work`
    /// returns.
    /// @param dst,src  what reach() says of them
    /// @return false: not by this way, nothing was done
    template <class Work>
    bool with_remembered(std::uint64_t dst_address, std::byte* dst, std::uint64_t src_address,
                         std::byte* src, std::uint64_t bytes, Work&& work) const noexcept {
        ThreadSlot* const slot = this_slot;
        if (slot == nullptr) return false;
        if (dst == nullptr) dst = announce(dst_address, bytes, slot->writing);
        if (dst != nullptr && src == nullptr) src = announce(src_address, bytes, slot->reading);
        const bool both = dst != nullptr && src != nullptr;
        if (both) work(dst, src);
        // Release, pairs with RegistrationTable::is_unannounced(): the access is over.
        slot->writing.store(nullptr, std::memory_order_release);
        slot->reading.store(nullptr, std::memory_order_release);
        return both;
    }
    /// Address of the first byte of `node`'s part of the symmetric segment.
    std::uint64_t symmetric_address(NodeId node) const noexcept {
        return layout_.pack({node, 0, AddressLayout::place_of(symmetric_segment)});
    }

    const AddressLayout& layout() const noexcept { return layout_; }
    RegistrationTable& table() noexcept { return table_; }
    const RegistrationTable& table() const noexcept { return table_; }
    Segment& symmetric() noexcept { return symmetric_; }

private:
    std::byte* announce(std::uint64_t address, std::uint64_t bytes,
                        std::atomic<std::byte*>& announcement) const noexcept {
        const AddressParts parts = layout_.parts(address);
        if (parts.node != self_) return nullptr;
        return table_.announce(parts.place, parts.color, bytes, announcement);
    }
    ResolvedAddress fault_of(std::uint64_t address) const noexcept;
    ResolvedAddress resolve_registered(const AddressParts& parts, std::uint64_t bytes) noexcept;

    NodeId self_;
    AddressLayout layout_;
    Segment symmetric_;
    RegistrationTable table_;
};

}  // namespace hiroba::gas
