// SPDX-License-Identifier: BSD-3-Clause
// Role: how much of the global heap is in use. Invariant: each node knows its own arena alone.
#pragma once

#include <cstdint>

namespace hiroba::abi {

/// What another node is asked, numbered behind SignalCall.
enum class HeapCall : std::int64_t { bytes_used = 1 << 23 };

/// What is in use of this node's arena. Thread: any.
std::int64_t bytes_used_here() noexcept;

}  // namespace hiroba::abi
