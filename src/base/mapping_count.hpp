// SPDX-License-Identifier: BSD-3-Clause
// Role: how many mappings this process has, and may have, for the line that says they ran out.
// Invariant: async-signal-safe: asked in the fault path, when nothing can be mapped any more.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hiroba {

struct MappingCount {
    std::uint64_t used = 0;
    std::uint64_t limit = 0;  ///< vm.max_map_count; 0: the kernel does not tell
};

MappingCount count_mappings() noexcept;

/// Both end the process (78) with a line of what is needed, what there is, and the setting.
/// A change of protection: `for_what` could not be done to the memory at `address`.
[[noreturn]] void die_without_mappings(const char* for_what, std::uintptr_t address) noexcept;
/// A mapping of `bytes` for `what`, for which the kernel gave `error`.
[[noreturn]] void die_without_memory(const char* what, std::size_t bytes, int error) noexcept;

}  // namespace hiroba
