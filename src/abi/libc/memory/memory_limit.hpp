// SPDX-License-Identifier: BSD-3-Clause
// Role: how much memory this node may use, and whether an allocation can ever fit.
// Invariant: only asked for large blocks; a refusal is an ENOMEM the program can handle, where
// otherwise the kernel would end a process in the middle of a region.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hiroba::abi {

/// Blocks below this are not looked at.
inline constexpr std::size_t limited_bytes_min = std::size_t{64} << 20;

/// Each byte that is used exists twice on its node: as the program sees it, and as others read it.
inline constexpr std::uint64_t copies_per_byte = 2;

struct MemoryLimit {
    std::uint64_t bytes = UINT64_MAX;
    const char* whose = "no limit";
};

/// Reads HIROBA_MEMORY, the machine and the control groups. Once, at take-over.
void learn_memory_limit() noexcept;
const MemoryLimit& memory_limit() noexcept;

/// Whether `bytes` more fit beside `used` bytes that were handed out.
bool fits_memory(std::uint64_t used, std::uint64_t bytes) noexcept;

/// The smallest limit of the group of `memberships` (the text of /proc/self/cgroup) and of those
/// above it, under `root` (/sys/fs/cgroup); UINT64_MAX without one.
std::uint64_t group_memory_limit(std::string_view memberships, const char* root);

}  // namespace hiroba::abi
