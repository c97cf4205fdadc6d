// SPDX-License-Identifier: BSD-3-Clause
// Role: which event omp_fulfill_event() is given: gcc's code has the runtime's own handle, clang's
// an address, because it asks for the event before there is a task. Invariant: the two cannot be
// taken for each other: a handle of the runtime is no user address.
#pragma once

#include <cstdint>

#include "omp/task/task.hpp"

namespace hiroba::abi::kmp {

inline constexpr std::uint64_t first_runtime_handle =
    std::uint64_t{1} << (omp::TaskHandle::serial_bits + omp::TaskHandle::index_bits);

/// The runtime's handle. Each event is fulfilled once: what clang's code had is freed.
std::uint64_t event_handle(std::uint64_t handle) noexcept;

}  // namespace hiroba::abi::kmp
