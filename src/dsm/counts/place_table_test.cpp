// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/counts/place_table.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>

namespace hiroba::dsm {
namespace {

std::map<std::uintptr_t, std::uint64_t> releases_of(const PlaceTable& table) {
    std::map<std::uintptr_t, std::uint64_t> found;
    table.each(
        [](void* context, const SyncPlace& place, const MemoryCounts& counts) {
            (*static_cast<std::map<std::uintptr_t, std::uint64_t>*>(context))[place.address] +=
                counts.releases;
        },
        &found);
    return found;
}

TEST(PlaceTable, tells_places_and_kinds_apart) {
    const auto table = std::make_unique<PlaceTable>();
    PlaceCounters& barrier = table->at({0x4010'00, SyncKind::barrier});
    PlaceCounters& loop = table->at({0x4010'00, SyncKind::loop});
    EXPECT_NE(&barrier, &loop);
    EXPECT_EQ(&barrier, &table->at({0x4010'00, SyncKind::barrier}));
}

TEST(PlaceTable, loses_no_count_when_it_is_full) {
    const auto table = std::make_unique<PlaceTable>();
    constexpr std::uint64_t places = PlaceTable::places_max + 100;
    for (std::uintptr_t at = 1; at <= places; ++at)
        add_to(table->at({at * 16, SyncKind::barrier}).releases, at);
    std::uint64_t sum = 0;
    const auto found = releases_of(*table);
    for (const auto& [address, releases] : found) sum += releases;
    EXPECT_EQ(sum, places * (places + 1) / 2);
    EXPECT_EQ(found.size(), PlaceTable::places_max + 1);
    EXPECT_EQ(found.at(16), 1u);
}

}  // namespace
}  // namespace hiroba::dsm
