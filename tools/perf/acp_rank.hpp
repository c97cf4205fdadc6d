// SPDX-License-Identifier: BSD-3-Clause
// Role: what the measurements of ACP share: a rank of its own, and one operation timed on rank 0.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "acp/node.hpp"
#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "tools/perf/rig.hpp"

namespace hiroba::tools::perf_parts {

/// A rank of ACP beside the rig's own end of the communication.
class AcpRank {
public:
    explicit AcpRank(Rig& rig) {
        auto opened = acp::Node::open(rig.job(), rig.control(), {});
        if (!opened) die(exit_environment, "%s", opened.error().text.c_str());
        node_ = std::move(*opened);
        const auto key = node_->register_memory(own_.data(), own_.size() * sizeof own_[0], 0);
        if (!key) die(exit_environment, "%s", key.error().text.c_str());
        key_ = *key;
    }
    ~AcpRank() {
        if (auto done = node_->unregister_memory(key_); !done)
            die(exit_environment, "%s", done.error().text.c_str());
        if (auto left = node_->leave(); !left)
            die(exit_environment, "%s", left.error().text.c_str());
    }
    acp::Node& node() { return *node_; }
    /// Starter memory; this rank's, as words.
    std::uint64_t starter(std::uint32_t rank) const { return *node_->starter_address(rank); }
    std::uint64_t* words() {
        return static_cast<std::uint64_t*>(*node_->local(starter(node_->rank())));
    }
    /// Memory of this rank's own that it registered, as programs do; 32 KiB and their address.
    std::uint64_t* own() { return own_.data(); }
    std::uint64_t registered() const { return *node_->address_of(key_, own_.data()); }
    std::int64_t access(const acp::Access& access) {
        const std::int64_t handle = node_->try_access(access, acp::handle_null);
        if (handle == 0) [[unlikely]]
            fatal("an access of the measurement was refused");
        return handle;
    }

private:
    std::unique_ptr<acp::Node> node_;
    std::vector<std::uint64_t> own_ = std::vector<std::uint64_t>(4096);
    std::uint64_t key_ = 0;
};

/// Nanoseconds of one `operation` on rank 0; on the others 0. `meet` is where the others wait.
template <class Operation, class Meet>
double timed(Rig& rig, std::uint64_t iterations, Operation&& operation, Meet&& meet) {
    double spent_ns = 0;
    if (rig.self() == 0) {
        const std::uint64_t begun_ns = now_ns();
        for (std::uint64_t i = 0; i < iterations; ++i) operation();
        spent_ns = static_cast<double>(now_ns() - begun_ns);
    }
    meet();
    return spent_ns / static_cast<double>(iterations);
}

}  // namespace hiroba::tools::perf_parts
