// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/counts/place_table.hpp"

namespace hiroba::dsm {

namespace {

// User addresses have 47 bits; a kind is below 16, and 1 is added so that no key is 0.
std::uint64_t key_of(const SyncPlace& place) noexcept {
    return place.address << 8 | (static_cast<std::uint64_t>(place.kind) + 1);
}

SyncPlace place_of(std::uint64_t key) noexcept {
    return {key >> 8, static_cast<SyncKind>((key & 0xff) - 1)};
}

}  // namespace

MemoryCounts sum_of(const PlaceCounters& counters) noexcept {
    const auto value = [](const PlaceCounter& counter) {
        return counter.load(std::memory_order_relaxed);  // statistics: no partner
    };
    MemoryCounts counts;
    counts.read_faults = value(counters.read_faults);
    counts.write_faults = value(counters.write_faults);
    counts.fetches_by_notice = value(counters.fetches_by_notice);
    counts.fetches_by_home = value(counters.fetches_by_home);
    counts.renewals = value(counters.renewals);
    counts.bytes_fetched = value(counters.bytes_fetched);
    counts.fetched_ahead = value(counters.fetched_ahead);
    counts.ahead_watched = value(counters.ahead_watched);
    counts.ahead_used = value(counters.ahead_used);
    counts.releases = value(counters.releases);
    counts.acquires = value(counters.acquires);
    counts.blocks_merged = value(counters.blocks_merged);
    counts.notices_made = value(counters.notices_made);
    counts.notices_dropped = value(counters.notices_dropped);
    counts.invalidations = value(counters.invalidations);
    counts.followed = value(counters.followed);
    counts.carried = value(counters.carried);
    counts.expected = value(counters.expected);
    counts.expected_unused = value(counters.expected_unused);
    counts.given_up_ahead = value(counters.given_up_ahead);
    counts.lease_expiries = value(counters.lease_expiries);
    counts.home_migrations = value(counters.home_migrations);
    counts.atomics = value(counters.atomics);
    counts.flushes = value(counters.flushes);
    counts.races = value(counters.races);
    counts.pulls = value(counters.pulls);
    counts.made_exclusive = value(counters.made_exclusive);
    counts.held = value(counters.held);
    counts.given_up = value(counters.given_up);
    counts.taken_first = value(counters.taken_first);
    counts.taken_whole = value(counters.taken_whole);
    counts.fault_ns = value(counters.fault_ns);
    counts.release_ns = value(counters.release_ns);
    counts.acquire_ns = value(counters.acquire_ns);
    return counts;
}

PlaceCounters& PlaceTable::at(const SyncPlace& place) noexcept {
    const std::uint64_t key = key_of(place);
    const std::size_t first = key * 0x9e37'79b9'7f4a'7c15u >> 55;
    for (std::size_t i = 0; i < places_max; ++i) {
        Slot& slot = slots_[(first + i) % places_max];
        // Relaxed: a slot is its key and counters that begin at zero; nothing else is published.
        std::uint64_t found = slot.key.load(std::memory_order_relaxed);
        if (found == 0 && slot.key.compare_exchange_strong(found, key, std::memory_order_relaxed))
            return slot.counters;
        if (found == key) return slot.counters;
    }
    return others_;
}

void PlaceTable::each(SharedMemory::PlaceVisit visit, void* context) const noexcept {
    for (const Slot& slot : slots_) {
        const std::uint64_t key = slot.key.load(std::memory_order_relaxed);
        if (key != 0) visit(context, place_of(key), sum_of(slot.counters));
    }
    const MemoryCounts rest = sum_of(others_);
    if (rest.releases + rest.acquires + rest.read_faults > 0) visit(context, {}, rest);
}

}  // namespace hiroba::dsm
