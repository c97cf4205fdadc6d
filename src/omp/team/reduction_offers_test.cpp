// SPDX-License-Identifier: BSD-3-Clause
#include "omp/team/reduction_offers.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace hiroba::omp {
namespace {

std::multiset<ReductionOffer*> listed(ReductionOffer* first) {
    std::multiset<ReductionOffer*> all;
    for (ReductionOffer* each = first; each != nullptr; each = each->next) all.insert(each);
    return all;
}

TEST(ReductionOffers, the_leader_takes_those_of_its_own_construct) {
    ReductionOffers offers;
    ReductionOffer own, same[2], later[2];
    for (ReductionOffer& each : later) each.construct = 1;
    offers.add(later[0]);
    offers.add(same[0]);
    offers.add(own);
    offers.add(later[1]);
    ASSERT_TRUE(offers.try_lead());
    EXPECT_FALSE(offers.try_lead());
    offers.add(same[1]);
    EXPECT_EQ(listed(offers.take(own)), (std::multiset<ReductionOffer*>{&same[0], &same[1]}));
    offers.stop_leading();
    ASSERT_TRUE(offers.try_lead());
    EXPECT_EQ(listed(offers.take(later[1])), (std::multiset<ReductionOffer*>{&later[0]}));
    EXPECT_EQ(offers.take(own), nullptr);
}

/// As RuntimeCore::reduce(), with a mutex for the lock of the variables.
TEST(ReductionOffers, each_value_is_added_once) {
    constexpr int rounds = 3000, members = 4;
    ReductionOffers offers;
    std::mutex variables;
    long sum = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < members; ++t)
        threads.emplace_back([&, t] {
            ReductionOffer own;
            for (int round = 0; round < rounds; ++round) {
                long mine = 1 + t;
                own.data = &mine;
                own.construct = static_cast<std::uint64_t>(round);
                own.taken.store(false);
                offers.add(own);
                bool leads = false;
                while (!(leads = offers.try_lead()) && !own.taken.load()) std::this_thread::yield();
                if (own.taken.load()) {
                    if (leads) offers.stop_leading();
                    continue;
                }
                const std::scoped_lock guard{variables};
                ReductionOffer* next = nullptr;
                for (ReductionOffer* each = offers.take(own); each != nullptr; each = next) {
                    next = each->next;
                    mine += *static_cast<long*>(each->data);
                    each->taken.store(true);
                }
                sum += mine;
                std::this_thread::yield();  // others come meanwhile
                offers.stop_leading();
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(sum, rounds * (1 + 2 + 3 + 4));
}

}  // namespace
}  // namespace hiroba::omp
