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

TEST(Device, ASubnetNamesTheDeviceWhoseAddressLiesInIt) {
    const auto chosen = choose_device("127.0.0.0/8", {});
    ASSERT_TRUE(chosen);
    EXPECT_EQ(chosen->name, "lo");
    for (const char* const wanted :
         {"203.0.113.0/24", "127.0.0.0/33", "127.0.0.0/", "127.0.0.0/8x"})
        EXPECT_FALSE(choose_device(wanted, {})) << wanted;
}

TEST(Device, TheUsersWordMayDifferByHost) {
    EXPECT_EQ(network_for_host("eth0", "a"), "eth0");
    EXPECT_EQ(network_for_host("a:eth0,b:ib0", "b"), "ib0");
    EXPECT_EQ(network_for_host("a:eth0,b:ib0", "c"), "");
    EXPECT_EQ(network_for_host("eth7,b:10.1.2.3", "c"), "eth7");
    EXPECT_EQ(network_for_host("eth7,b:10.1.2.3", "b"), "10.1.2.3");
    EXPECT_EQ(network_for_host("fd77::1", "a"), "fd77::1");
    EXPECT_EQ(network_for_host("fd77::/64,[fd77::1]:eth0", "fd77::1"), "eth0");
    EXPECT_EQ(network_for_host("fd77::/64,[fd77::1]:eth0", "fd77::2"), "fd77::/64");
    EXPECT_EQ(network_for_host("node1:fd77::1", "node1"), "fd77::1");
    EXPECT_EQ(network_for_host("", "a"), "");
}

}  // namespace
}  // namespace hiroba::net
