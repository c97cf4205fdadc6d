// SPDX-License-Identifier: BSD-3-Clause
// Role: what this machine, its limits and its control groups allow a job, read once.
// Invariant: reading never fails: a fact that cannot be had is "unlimited" or empty, so that only
// what is known to be too small stops a job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hiroba::tools {

inline constexpr std::uint64_t unlimited = ~std::uint64_t{0};

struct Machine {
    std::string kernel;                          ///< release, as uname
    std::uint32_t cores_affinity = 1;            ///< cores this process may run on
    std::optional<double> cores_quota;           ///< cpu.max over its period
    std::uint64_t memory_available = unlimited;  ///< bytes, MemAvailable
    std::uint64_t memory_cgroup = unlimited;     ///< bytes left below the tightest memory.max
    std::uint64_t stack_bytes = unlimited;       ///< soft limits, bytes or counts
    std::uint64_t address_space_bytes = unlimited;
    std::uint64_t file_bytes = unlimited;
    std::uint64_t locked_bytes = unlimited;
    std::uint64_t open_files = unlimited;
    std::uint64_t processes = unlimited;
    std::uint64_t mappings_max = unlimited;  ///< vm.max_map_count
    std::string overcommit;                  ///< vm.overcommit_memory: 0, 1 or 2

    /// Cores a job may use: affinity, cut by the quota (rounded up); at least 1.
    std::uint32_t cores() const;
};

/// Looks at this process's machine. `root` is put before /proc and /sys, for tests.
Machine look_at_machine(const std::string& root = "");

/// "1.5 GiB", "unlimited".
std::string size_text(std::uint64_t bytes);

/// Turns off address randomization for what this process executes; false with errno when the
/// kernel or a seccomp filter refuses.
bool fix_addresses();

}  // namespace hiroba::tools
