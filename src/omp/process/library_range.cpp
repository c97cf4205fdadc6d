// SPDX-License-Identifier: BSD-3-Clause
// Role: reservations made and undone, by the mappings there are.
// Invariant: calls go to the kernel directly: on a thread of the program libc's would be examined.
#include "omp/process/library_range.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/fatal.hpp"
#include "dsm/memory/kernel_calls.hpp"
#include "omp/process/process_maps.hpp"

namespace hiroba::omp {
namespace {

using dsm::AddressRange;
using dsm::kernel_call;
using dsm::kernel_failed;

// Kernels fill the address space downwards from the libraries; with an unlimited stack, upwards
// from a third of it. Each place is met first on its way, ahead of what may grow: the program's
// break behind a program that is linked to be loaded at any address, 0x5555'....'....
constexpr std::uintptr_t range_downwards = 0x6000'0000'0000, range_upwards = 0x3000'0000'0000;
constexpr std::uintptr_t lowest_upwards = 0x2aaa'0000'0000, highest = 0x7fff'ffff'f000;
constexpr int most_looks = 100;  // at what is free, while other threads map memory
constexpr std::size_t break_bytes = std::size_t{1} << 30;  // left for libc's own heap to grow
// Between libraries of two calls: what each node makes for the former's atomics, by all that a jump
// reaches, or by the least while the last part of the range is filled.
constexpr std::size_t room_bytes = std::size_t{2} << 30, least_room_bytes = std::size_t{64} << 20;
constexpr std::size_t last_bytes = std::size_t{64} << 30;

enum class Reserved { yes, taken_by_another, refused };

Reserved reserve_at(AddressRange range) noexcept {
    const long got =
        kernel_call(SYS_mmap, range.address, range.bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == static_cast<long>(range.address)) return Reserved::yes;
    return got == -EEXIST ? Reserved::taken_by_another : Reserved::refused;
}

void give_back(AddressRange range) noexcept { kernel_call(SYS_munmap, range.address, range.bytes); }

bool fills_upwards() noexcept {
    const long first = kernel_call(SYS_mmap, 0, page_bytes, PROT_NONE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (kernel_failed(first)) return false;
    give_back({static_cast<std::uintptr_t>(first), page_bytes});
    return static_cast<std::uintptr_t>(first) < range_downwards;
}

/// Calls `visit` for what is free in [from, to).
template <class Visit>
void for_each_gap(std::uintptr_t from, std::uintptr_t to, Visit&& visit) {
    Mapping before;
    std::uintptr_t at = from;
    // What is mapped in front of it and behind it is of interest, too.
    const AddressRange looked_at{from - page_bytes, to - from + 2 * page_bytes};
    for_each_mapping(looked_at, [&](const Mapping& mapping) {
        if (mapping.range.address > at && at < to) {
            visit(AddressRange{at, std::min(mapping.range.address, to) - at}, before, mapping);
        }
        at = std::max(at, mapping.range.end());
        before = mapping;
    });
    if (at < to) visit(AddressRange{at, to - at}, before, Mapping{});
}

}  // namespace

Result<void> LibraryRange::reserve() {
    const std::uintptr_t begin = fills_upwards() ? range_upwards : range_downwards;
    if (reserve_at({begin, bytes}) != Reserved::yes) {
        return Error{ErrorKind::environment,
                     "2 TiB of address space for libraries that are opened later cannot be had: "
                     "raise ulimit -v"};
    }
    begin_ = begin;
    lowest_used_ = top_ = begin + bytes;
    return {};
}

Result<void> LibraryRange::open(std::uintptr_t top) {
    HIROBA_INVARIANT(!open_ && begin_ <= top && top <= begin_ + bytes, "top 0x%lx of 0x%lx", top,
                     begin_);
    if (top == begin_) {
        return Error{ErrorKind::environment,
                     "the 2 TiB of address space for libraries that are opened later are used up: "
                     "link the program with some of them, or name them in LD_PRELOAD"};
    }
    if (top > lowest_used_) {
        return Error{ErrorKind::environment, "what lies at " + std::to_string(lowest_used_) +
                                                 " is in the way of libraries below " +
                                                 std::to_string(top)};
    }
    const std::uintptr_t end = begin_ + bytes;
    bool refused = false, changed = false;
    fillers_.clear();
    fillers_.reserve(4096);
    const auto fill = [&](AddressRange gap, const Mapping& before, const Mapping& behind) {
        // The stack grows into the gap below it, where the kernel puts nothing else.
        if (behind.is_stack || refused || fillers_.size() == fillers_.capacity()) return;
        if (before.is_heap) {
            const std::size_t left = std::min(break_bytes, gap.bytes);
            gap = {gap.address + left, gap.bytes - left};
        }
        if (gap.bytes == 0) return;
        const Reserved reserved = reserve_at(gap);
        if (reserved == Reserved::yes) fillers_.push_back(gap);
        changed |= reserved == Reserved::taken_by_another;
        refused |= reserved == Reserved::refused;
    };
    // Only what the kernel meets first: further on, the places others wish for stay free, and their
    // mappings do not come here.
    for (int look = 0; look == 0 || (changed && !refused && look < most_looks); ++look) {
        // Another thread maps something between the look at the gaps and the reservation.
        changed = false;
        if (begin_ == range_upwards)
            for_each_gap(lowest_upwards, begin_, fill);
        else
            for_each_gap(end, highest, fill);
    }
    if (refused || changed) {
        stop_steering();
        return Error{ErrorKind::environment,
                     refused ? "the address space cannot be reserved for a moment: raise ulimit -v"
                             : "other threads map memory all the time: open it before they start"};
    }
    give_back({begin_, top - begin_});
    changed_to_ = top + std::min(room_bytes, end - top);
    std::erase_if(gaps_above_, [&](AddressRange gap) { return gap.address < lowest_used_; });
    if (top < lowest_used_) gaps_above_.push_back({top, lowest_used_ - top});
    top_ = top;
    open_ = true;
    return {};
}

void LibraryRange::stop_steering() noexcept {
    for (const AddressRange& filler : fillers_) give_back(filler);
    fillers_.clear();
}

void LibraryRange::free_above() noexcept {
    const std::uintptr_t reached = changed_to_;
    std::erase_if(gaps_above_, [&](AddressRange gap) {
        if (gap.address >= reached) return false;
        give_back(gap);
        changed_to_ = std::max(changed_to_, gap.end());
        return true;
    });
}

AddressRange LibraryRange::keep_room_below(std::uintptr_t lowest) noexcept {
    const std::size_t left = lowest - begin_;
    kept_ = lowest - std::min(left > last_bytes ? room_bytes : least_room_bytes, left);
    return {begin_, kept_ - begin_};
}

void LibraryRange::close() noexcept {
    stop_steering();
    open_ = false;
    std::uintptr_t lowest_used = top_;
    std::vector<AddressRange> gaps;
    for_each_gap(begin_, changed_to_,
                 [&](AddressRange gap, const Mapping&, const Mapping&) { gaps.push_back(gap); });
    // When it was closed already, a gap is what the loader has taken back: higher up.
    if (!gaps.empty() && gaps.front().address == begin_) lowest_used = gaps.front().end();
    for (const AddressRange& gap : gaps) {
        if (reserve_at(gap) == Reserved::yes && gap.address >= lowest_used)
            gaps_above_.push_back(gap);
    }
    if (lowest_used == top_) return;
    lowest_used_ = lowest_used;
    const std::uintptr_t below = lowest_used - std::min(least_room_bytes, lowest_used - begin_);
    top_ = std::min(below, kept_);
}

}  // namespace hiroba::omp
