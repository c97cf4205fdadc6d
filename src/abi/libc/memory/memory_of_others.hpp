// SPDX-License-Identifier: BSD-3-Clause
// Role: memory that node 0 has and no other node sees: what is mapped at a fixed place outside of
// global memory, code made by the program, data of the system's libraries.
#pragma once

#include <cstdint>

namespace hiroba::abi {

/// Where a node's process is found. Equal hosts: the numbers of processes mean the same.
struct ProcessPlace {
    std::int64_t process = 0;
    std::uint64_t host = 0;
};
ProcessPlace own_process_place() noexcept;

/// From now on a crash of this node at an address where node 0 has memory says what that is; as far
/// as its host tells (/proc/PID/maps).
void explain_memory_of(const ProcessPlace& first_node) noexcept;

}  // namespace hiroba::abi
