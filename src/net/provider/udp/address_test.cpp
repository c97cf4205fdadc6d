// SPDX-License-Identifier: BSD-3-Clause
// Role: which device is picked where there are several, in a network namespace of the test's own;
// skipped where that may not be made. Between hosts: test/cluster/hosts_runs.py (device, ipv6).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "net/bootstrap/device.hpp"
#include "net/provider/udp/socket.hpp"

namespace hiroba::net::udp {
namespace {

bool did(const std::string& words) {
    return std::system(("ip " + words + " > /dev/null 2>&1").c_str()) == 0;
}

/// While it lives this thread is in a namespace with loopback, a container's bridge, a device of a
/// virtual machine and, last, eth7, which leads out: 10.9.8.7 and fd98::7.
class Machine {
public:
    Machine() : home_(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)) {
        separate_ = home_ >= 0 && unshare(CLONE_NEWNET) == 0;
        if (!separate_) return;
        ready_ = did("link set lo up") && give("docker0", "bridge", {"172.17.0.1/16"}) &&
                 give("vnet3", "veth peer name far3", {"192.168.122.1/24"}) &&
                 give("eth7", "veth peer name far7", {"10.9.8.7/24", "fd98::7/64 nodad"}) &&
                 did("link set far3 up") && did("link set far7 up") &&
                 did("route add default via 10.9.8.1 dev eth7");
    }
    ~Machine() {
        if (separate_ && setns(home_, CLONE_NEWNET) != 0) std::abort();
        if (home_ >= 0) close(home_);
    }
    Machine(const Machine&) = delete;
    bool ready() const { return ready_; }

private:
    static bool give(const std::string& name, const std::string& type,
                     const std::vector<std::string>& addresses) {
        bool good = did("link add " + name + " type " + type) && did("link set " + name + " up");
        for (const std::string& address : addresses) {
            good = good && did("address add " + address + " dev " + name);
        }
        return good;
    }
    int home_;
    bool separate_ = false, ready_ = false;
};

std::string text_of(const Result<Address>& address) {
    if (!address) return address.error().text;
    auto chosen = address;
    std::string text;
    for (int i = 0; i < (chosen->family == 4 ? 4 : 16); ++i) {
        text += (i == 0 ? "" : ".") + std::to_string(chosen->bytes[i]);
    }
    return text;
}

TEST(Address, is_of_what_leads_out_before_bridges_and_loopback) {
    const Machine machine;
    if (!machine.ready()) GTEST_SKIP() << "no network namespaces, or no ip command, here";
    EXPECT_EQ(text_of(choose_address("")), "10.9.8.7");
    const auto device = choose_device("", {});
    ASSERT_TRUE(device) << device.error().text;
    EXPECT_EQ(device->name, "eth7");
    const std::vector<std::string> peers = {"10.9.8.9", "10.9.8.10"};
    const auto towards = choose_device("", peers);
    ASSERT_TRUE(towards) << towards.error().text;
    EXPECT_EQ(towards->address, "10.9.8.7");
}

TEST(Address, is_the_one_that_is_forced_by_name_or_number) {
    const Machine machine;
    if (!machine.ready()) GTEST_SKIP() << "no network namespaces, or no ip command, here";
    EXPECT_EQ(text_of(choose_address("docker0")), "172.17.0.1");
    EXPECT_EQ(text_of(choose_address("192.168.122.1")), "192.168.122.1");
    EXPECT_EQ(text_of(choose_address("eth7")), "10.9.8.7");
    EXPECT_EQ(text_of(choose_address("fd98::7")), "253.152.0.0.0.0.0.0.0.0.0.0.0.0.0.7");
    EXPECT_EQ(text_of(choose_address("lo")), "127.0.0.1");
    ASSERT_TRUE(did("link set eth7 down"));
    EXPECT_NE(text_of(choose_address("eth7")).find("HIROBA_NET=eth7: no interface"),
              std::string::npos);
}

TEST(Address, towards_peers_behind_two_devices_is_nobodys) {
    const Machine machine;
    if (!machine.ready()) GTEST_SKIP() << "no network namespaces, or no ip command, here";
    const std::vector<std::string> peers = {"10.9.8.9", "192.168.122.5"};
    const auto choice = choose_device("", peers);
    ASSERT_FALSE(choice);
    EXPECT_NE(choice.error().text.find("lies behind eth7"), std::string::npos);
    EXPECT_NE(choice.error().text.find("HIROBA_NET"), std::string::npos);
}

}  // namespace
}  // namespace hiroba::net::udp
