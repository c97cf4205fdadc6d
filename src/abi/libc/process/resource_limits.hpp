// SPDX-License-Identifier: BSD-3-Clause
// Role: the limits of setrlimit(): what the program sets on node 0 holds on all nodes, and what it
// reads is what it has set or began with.
// Invariant: limits of memory and of descriptors are not told to the kernel, which would count the
// runtime's own; allocations and new descriptors of the program are measured by them.
#pragma once

#include <sys/resource.h>

#include <array>
#include <cstdint>
#include <optional>

namespace hiroba::abi {

struct ResourceLimits {
    std::uint32_t changed = 0;  ///< bits: by the program
    std::array<rlimit, RLIM_NLIMITS> of{};
};

/// At take-over, before the runtime changes any of its own.
void note_first_limits() noexcept;

ResourceLimits resource_limits() noexcept;
/// Another node, before its threads run.
void take_resource_limits(const ResourceLimits& of_node_0) noexcept;

/// A call of the program's that reads or sets a limit of its own process, done: what the kernel
/// would give. None: it is another call.
std::optional<long> perform_limit_call(long number, const long* arguments) noexcept;

/// The most bytes the program lets itself allocate; UINT64_MAX without a limit of its own.
std::uint64_t own_memory_limit() noexcept;
/// The number from which on it lets itself open no descriptor; UINT64_MAX without such a limit.
std::uint64_t own_descriptor_limit() noexcept;

}  // namespace hiroba::abi
