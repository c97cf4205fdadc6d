// SPDX-License-Identifier: BSD-3-Clause
// Role: the fixture of the conformance suite: every test runs with every provider and 1, 2, 4
// nodes. Invariant: a test that needs more nodes or a capability skips itself and says why.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "conformance/process_job.hpp"
#include "net/provider/registry.hpp"

namespace hiroba::conformance {

class Suite : public testing::TestWithParam<Setting> {
protected:
    void run(const std::function<void(Rig&)>& body, unsigned seconds_max = 60) const {
        run_job(GetParam(), body, seconds_max);
    }
    /// The same where the last node, the victim, kills itself.
    void run_with_victim(const std::function<void(Rig&, NodeId victim)>& body) const {
        const NodeId victim{GetParam().nodes - 1};
        run_job(
            GetParam(), [&](Rig& rig) { body(rig, victim); }, 60, victim);
    }
    /// Why no node of this setting can die beside another; null where one can.
    static const char* no_loss_can_be_tested() {
        if (GetParam().nodes == 1) return "nobody is left";
        return GetParam().simulated() ? "its nodes are no processes" : nullptr;
    }
};

/// A handler of messages that counts them in `context`, a std::atomic<std::uint64_t>.
inline void count_message(void* context, NodeId, Bytes) noexcept {
    ++*static_cast<std::atomic<std::uint64_t>*>(context);
}

/// How many of `bytes` are `value`. Of memory that another process writes: the two order their
/// accesses by meeting, which the thread sanitizer does not follow.
__attribute__((no_sanitize("thread"), noinline)) inline std::size_t count_of(std::byte value,
                                                                             Bytes bytes) {
    std::size_t count = 0;
    for (const std::byte* at = bytes.data(); at != bytes.data() + bytes.size(); ++at)
        if (*at == value) ++count;
    return count;
}

/// Most machines have none; test/guest has one that does.
inline bool has_rdma_device() {
    std::error_code error;
    return std::filesystem::directory_iterator("/sys/class/infiniband", error) !=
           std::filesystem::directory_iterator();
}

inline std::vector<Setting> every_setting() {
#ifdef HIROBA_HAS_UCX
    constexpr bool has_ucx = true;
#else
    constexpr bool has_ucx = false;  // built without its headers
#endif
    std::vector<Setting> settings;
    for (const std::string name : net::provider_names()) {
        if (name.ends_with("ucx") && !has_ucx) continue;
        if (name.ends_with("verbs") && !has_rdma_device()) continue;
        for (const std::uint32_t nodes : {1u, 2u, 4u}) {
            // Alone, a node of a mixed one has a near provider only: that is shm.
            const bool is_mixed = name == "auto" || name.starts_with("shm+");
            if (!is_mixed || nodes > 1) settings.push_back({name, nodes});
        }
    }
    for (const std::uint32_t nodes : {1u, 2u, 4u}) settings.push_back({"sim", nodes});
    for (const std::uint32_t nodes : {1u, 2u, 4u}) settings.push_back({"sim_one_thread", nodes});
    // Every promise holds on a bad network as well: 10 % loss, 5 % doubled, 30 % out of order, each
    // way at each end. Not for one node: what it sends to itself, nodes of larger jobs send too.
    for (const std::uint32_t nodes : {2u, 4u}) settings.push_back({"udp", nodes, true});
    // Connections break all the time.
    if (has_rdma_device())
        for (const std::uint32_t nodes : {2u, 4u}) settings.push_back({"verbs", nodes, true});
    settings.push_back({"udp", 2, false, "::1"});
    for (const std::uint32_t nodes : {2u, 4u}) settings.push_back({"sim", nodes, true});
    return settings;
}

inline std::string setting_name(const testing::TestParamInfo<Setting>& info) {
    return info.param.name();
}

}  // namespace hiroba::conformance

/// Declares a fixture whose tests run with every setting.
#define HIROBA_CONFORMANCE(Name)                                                          \
    class Name : public ::hiroba::conformance::Suite {};                                  \
    INSTANTIATE_TEST_SUITE_P(every, Name,                                                 \
                             ::testing::ValuesIn(::hiroba::conformance::every_setting()), \
                             ::hiroba::conformance::setting_name)
