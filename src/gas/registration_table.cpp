// SPDX-License-Identifier: BSD-3-Clause
#include "gas/registration_table.hpp"

#include <mutex>
#include <string>

#include "gas/relocatable/thread_slots.hpp"

namespace hiroba::gas {

constinit thread_local RememberedRegistration remembered[2];

namespace {

constexpr std::uint64_t segment_bytes = std::uint64_t{1} << AddressLayout::offset_bits;

/// Offsets start where addresses do within their word: an aligned global address is an aligned
/// place in memory, so that the caller can tell.
std::uint64_t skew_of(const std::byte* first) {
    return reinterpret_cast<std::uintptr_t>(first) % 8;
}

std::uint64_t segments_of(const std::byte* first, std::uint64_t bytes) {
    return (skew_of(first) + bytes - 1) / segment_bytes + 1;
}
std::uint64_t segments_of(const Registration& memory) {
    return segments_of(memory.first, memory.bytes);
}

}  // namespace

RegistrationTable::RegistrationTable(const AddressLayout& layout, NodeId self,
                                     std::uint64_t first_segment)
    : layout_(layout), self_(self), first_segment_(first_segment), next_segment_(first_segment) {
    changes_.fetch_add(1);
}

/// The first of `numbers` free segment numbers in [start, end), or 0.
std::uint64_t RegistrationTable::gap_from(std::uint64_t start, std::uint64_t end,
                                          std::uint64_t numbers) const noexcept {
    auto used = by_segment_.upper_bound(start);
    if (used != by_segment_.begin()) {
        const auto& [first, memory] = *std::prev(used);
        start = std::max(start, first + segments_of(memory));
    }
    for (; used != by_segment_.end() && used->first < start + numbers; ++used) {
        start = used->first + segments_of(used->second);
    }
    return start + numbers <= end ? start : 0;
}

std::uint64_t RegistrationTable::find_gap(std::uint64_t numbers) const noexcept {
    const std::uint64_t behind = gap_from(next_segment_, layout_.segments_end(), numbers);
    return behind != 0 ? behind : gap_from(first_segment_, layout_.segments_end(), numbers);
}

Result<std::uint64_t> RegistrationTable::add(void* first, std::uint64_t bytes,
                                             std::uint32_t color) {
    auto* const start = static_cast<std::byte*>(first);
    if (bytes == 0) return Error{ErrorKind::refused, "a registration of 0 bytes"};
    if (start == nullptr) return Error{ErrorKind::refused, "a registration at address 0"};
    if (bytes - 1 > ~reinterpret_cast<std::uintptr_t>(start) - 8) {
        return Error{ErrorKind::refused,
                     "a registration of " + std::to_string(bytes) + " bytes wraps around"};
    }
    const std::scoped_lock guard{latch_};
    const Range range{start, bytes, color};
    if (const auto known = by_range_.find(range); known != by_range_.end()) {
        ++known->second->count;
        return known->second->key;
    }
    const std::uint64_t segment = find_gap(segments_of(start, bytes));
    if (segment == 0) {
        return Error{ErrorKind::refused,
                     "no segment number is left for " + std::to_string(bytes) + " bytes beside " +
                         std::to_string(by_segment_.size()) +
                         " registrations; unregister some, or register larger pieces"};
    }
    Registration& memory = by_segment_[segment];
    memory.first = start;
    memory.bytes = bytes;
    memory.color = color;
    memory.key = layout_.pack({self_, color, AddressLayout::place_of(segment) + skew_of(start)});
    memory.count = 1;
    by_range_[range] = &memory;
    next_segment_ = segment + segments_of(memory);
    return memory.key;
}

Registration* RegistrationTable::remove(std::uint64_t key) noexcept {
    const std::scoped_lock guard{latch_};
    const auto found = by_segment_.find(AddressLayout::segment_of(layout_.parts(key).place));
    if (found == by_segment_.end()) return nullptr;
    Registration& memory = found->second;
    if (memory.key != key || memory.count == 0) return nullptr;
    if (--memory.count != 0) return &memory;
    by_range_.erase({memory.first, memory.bytes, memory.color});
    changes_.fetch_add(1, std::memory_order_release);  // pairs with announce()
    fence_all_threads();
    return &memory;
}

void RegistrationTable::forget(Registration* removed) noexcept {
    const std::scoped_lock guard{latch_};
    by_segment_.erase(AddressLayout::segment_of(layout_.parts(removed->key).place));
}

bool RegistrationTable::is_unannounced(const Registration& removed) noexcept {
    for (const ThreadSlot& slot : thread_slots()) {
        // Acquire: what the thread stored is there.
        if (slot.reading.load(std::memory_order_acquire) == removed.first ||
            slot.writing.load(std::memory_order_acquire) == removed.first)
            return false;
    }
    return true;
}

/// The latch is held, so nothing is unregistered meanwhile.
void RegistrationTable::remember(const Registration& memory,
                                 std::uint64_t first_place) const noexcept {
    if (this_slot == nullptr) this_slot = slot_of_this_thread();
    if (this_slot == nullptr) return;
    for (const RememberedRegistration& known : remembered) {
        const bool is_known = known.table == this && known.first_place == first_place &&
                              known.changes == changes_.load(std::memory_order_relaxed);
        if (is_known) return;
    }
    remembered[1] = remembered[0];
    remembered[0] = {this,         changes_.load(std::memory_order_relaxed),
                     first_place,  memory.bytes,
                     memory.first, memory.color};
}

Registration* RegistrationTable::pin(std::uint64_t place, std::uint32_t color, std::uint64_t bytes,
                                     std::byte** at) noexcept {
    const std::scoped_lock guard{latch_};
    const auto behind = by_segment_.upper_bound(AddressLayout::segment_of(place));
    if (behind == by_segment_.begin()) return nullptr;
    auto& [segment, memory] = *std::prev(behind);
    const std::uint64_t first = AddressLayout::place_of(segment) + skew_of(memory.first);
    const std::uint64_t offset = place - first;
    const bool inside = place >= first && offset <= memory.bytes && bytes <= memory.bytes - offset;
    if (!inside || memory.count == 0 || memory.color != color) return nullptr;
    // Relaxed: remove() comes before or after this under the latch.
    memory.pins.fetch_add(1, std::memory_order_relaxed);
    *at = memory.first + offset;
    remember(memory, first);
    return &memory;
}

std::string RegistrationTable::describe(std::uint64_t place, std::uint32_t color,
                                        std::uint64_t bytes) const {
    const std::scoped_lock guard{latch_};
    const auto behind = by_segment_.upper_bound(AddressLayout::segment_of(place));
    if (behind == by_segment_.begin()) return {};
    const auto& [segment, memory] = *std::prev(behind);
    const std::uint64_t first = AddressLayout::place_of(segment) + skew_of(memory.first);
    const bool is_near = AddressLayout::segment_of(place) < segment + segments_of(memory);
    if (place < first || !is_near || memory.count == 0 || memory.color != color) return {};
    return std::to_string(place - first) + " + " + std::to_string(bytes) +
           " of a registration of " + std::to_string(memory.bytes) + " bytes";
}

std::uint64_t RegistrationTable::address_of(std::uint64_t key, const void* byte) const noexcept {
    const std::scoped_lock guard{latch_};
    const auto found = by_segment_.find(AddressLayout::segment_of(layout_.parts(key).place));
    if (found == by_segment_.end()) return 0;
    const Registration& memory = found->second;
    const auto offset =
        reinterpret_cast<std::uintptr_t>(byte) - reinterpret_cast<std::uintptr_t>(memory.first);
    const bool inside = memory.key == key && memory.count != 0 && offset < memory.bytes;
    return inside ? key + offset : 0;
}

}  // namespace hiroba::gas
