// SPDX-License-Identifier: BSD-3-Clause
#include "omp/atomic/locked_functions.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <algorithm>
#include <atomic>

namespace hiroba::omp {
namespace {

[[gnu::noinline]] int count_up(std::atomic<int>& number) { return number.fetch_add(3) + 1; }
[[gnu::noinline]] int count_plain(int& number) { return number += 5; }

bool contains(const std::vector<dsm::AddressRange>& functions, const void* code) {
    const auto address = reinterpret_cast<std::uintptr_t>(code);
    return std::ranges::any_of(functions,
                               [address](const auto& each) { return each.contains(address); });
}

TEST(LockedFunctions, FindsWhatHasALockPrefixAndPassesTheRestBy) {
    std::atomic<int> number{1};
    int plain = 1;
    EXPECT_EQ(count_up(number) + count_plain(plain), 8);
    Dl_info info;
    link_map* map = nullptr;
    ASSERT_NE(dladdr1(reinterpret_cast<void*>(&count_up), &info, reinterpret_cast<void**>(&map),
                      RTLD_DL_LINKMAP),
              0);

    const auto functions = locked_functions(map->l_addr);
    ASSERT_TRUE(functions);
    EXPECT_TRUE(contains(*functions, reinterpret_cast<void*>(&count_up)));
    EXPECT_FALSE(contains(*functions, reinterpret_cast<void*>(&count_plain)));
    EXPECT_TRUE(std::ranges::is_sorted(*functions, {}, &dsm::AddressRange::address));
}

TEST(LockedFunctions, KnowsNoObjectThatIsNotThere) { EXPECT_FALSE(locked_functions(1)); }

}  // namespace
}  // namespace hiroba::omp
