// SPDX-License-Identifier: BSD-3-Clause
// Role: how much address space the stacks of a node's threads take, from what the user asks for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"

namespace hiroba::omp {

struct StackSizes {
    std::size_t bytes = 0;        ///< of one thread's slice: stack, thread-local data, guard
    std::size_t bytes_least = 0;  ///< the same without HIROBA_STACK: what else asks for
    std::uint32_t per_node = 0;   ///< slices: as many threads as a node may ever have
};

/// The most of HIROBA_STACK, OMP_STACKSIZE (GOMP_STACKSIZE) and ulimit -s, where an unlimited
/// stack counts as 1 GiB; equal for all threads, main's included. A node has slices for
/// `threads_per_node`, and for 64 threads where 64 GiB hold them: teams may be larger than was said
/// at the start. Allocates nothing unless a setting is no size.
Result<StackSizes> stack_sizes(std::uint32_t threads_per_node);

}  // namespace hiroba::omp
