// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/memory/protection_table.hpp"

#include <gtest/gtest.h>

#include <random>

namespace hiroba::abi {
namespace {

TEST(protection_table, says_of_each_page_what_was_said_of_it_last) {
    std::mt19937 random{5};
    constexpr std::size_t pages = 64;
    for (int round = 0; round < 100; ++round) {
        ProtectionTable table;
        int expected[pages];
        for (int& each : expected) each = PROT_READ | PROT_WRITE;
        for (int step = 0; step < 40; ++step) {
            const std::size_t first = random() % pages, count = 1 + random() % (pages - first);
            const int kinds[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE};
            const int protection = kinds[random() % 3];
            table.set({first * page_bytes, count * page_bytes}, protection);
            for (std::size_t i = first; i < first + count; ++i) expected[i] = protection;
        }
        std::size_t forbidden = 0;
        for (std::size_t i = 0; i < pages; ++i) {
            const std::uintptr_t last = (i + 1) * page_bytes - 1;
            EXPECT_EQ(table.forbids(last, false), (expected[i] & PROT_READ) == 0);
            EXPECT_EQ(table.forbids(i * page_bytes, true), (expected[i] & PROT_WRITE) == 0);
            forbidden += (expected[i] & PROT_WRITE) == 0;
        }
        std::size_t listed = 0;
        for (const ProtectedRange& each : table.in({0, pages * page_bytes}))
            listed += each.range.bytes / page_bytes;
        EXPECT_EQ(listed, forbidden);
    }
}

}  // namespace
}  // namespace hiroba::abi
