// SPDX-License-Identifier: BSD-3-Clause
// What needs several hosts is in test/cluster/hosts_runs.py.
#include "net/bootstrap/device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace hiroba::net {
namespace {

TEST(Device, EveryHostHasALoopbackAndKnowsIt) {
    const auto devices = network_devices();
    const auto own = std::ranges::find(devices, "127.0.0.1", &NetworkDevice::address);
    ASSERT_NE(own, devices.end());
    EXPECT_TRUE(own->loopback);
    EXPECT_TRUE(own->up);
}

TEST(Device, TheWayToThisHostIsItself) {
    const auto address = address_towards("127.0.0.1");
    ASSERT_TRUE(address);
    EXPECT_EQ(*address, "127.0.0.1");
}

TEST(Device, APeerThatIsThisHostIsRefused) {
    const std::vector<std::string> peers = {"127.0.0.1"};
    const auto refused = choose_device("", peers);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::environment);
    EXPECT_NE(refused.error().text.find("would not leave this host"), std::string::npos);
    EXPECT_NE(refused.error().text.find("HIROBA_NET"), std::string::npos);
}

TEST(Device, AnAddressThatIsNoneIsRefused) {
    const std::vector<std::string> peers = {"nonsense"};
    const auto refused = choose_device("", peers);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().text.find("\"nonsense\" is no numeric address"), std::string::npos);
}

TEST(Device, TheUsersWordIsTakenByNameAndByAddress) {
    for (const char* const wanted : {"lo", "127.0.0.1"}) {
        const auto chosen = choose_device(wanted, {});
        ASSERT_TRUE(chosen) << wanted;
        EXPECT_EQ(chosen->name, "lo");
    }
    const auto refused = choose_device("nosuch0", {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::usage);
    EXPECT_NE(refused.error().text.find("lo 127.0.0.1"), std::string::npos);
}

}  // namespace
}  // namespace hiroba::net
