// SPDX-License-Identifier: BSD-3-Clause
// Role: the environment of each node's process.
// Invariant: the environments of all nodes have the same entries in the same order with the same
// lengths, so that the initial stacks are laid out equally. src/net/bootstrap/job.cpp takes out
// what is put in here.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/run/plan.hpp"

namespace hiroba::tools {

/// Set where the launcher has chosen HIROBA_HEAP itself.
inline constexpr const char* chose_heap = "HIROBA_JOB_CHOSE_HEAP";
/// What is preloaded beside the runtime, from its folder: the SONAMEs of LLVM's runtime (Debian's,
/// its own, Intel's; src/abi/CMakeLists.txt makes them).
inline constexpr std::array stand_ins = {"libomp.so.5", "libomp.so", "libiomp5.so"};

/// Number of the control channel and key of the job, the same on every node.
struct JobIdentity {
    int control_fd = -1;
    std::uint64_t key = 0;
    std::uint64_t key_high = 0;
};

/// `inherited` (as environ) with the job's variables before it.
std::vector<std::string> node_environment(std::span<const char* const> inherited,
                                          const RunPlan& plan, const JobIdentity& job,
                                          std::uint32_t rank);

}  // namespace hiroba::tools
