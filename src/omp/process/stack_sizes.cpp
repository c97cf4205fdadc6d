// SPDX-License-Identifier: BSD-3-Clause
#include "omp/process/stack_sizes.hpp"

#include <sys/resource.h>

#include <algorithm>

#include "base/bytes.hpp"
#include "base/settings.hpp"
#include "omp/icv/icv.hpp"

namespace hiroba::omp {
namespace {

/// Room above a stack of the size asked for: control block, thread-local storage and guard.
constexpr std::size_t thread_data_bytes = std::size_t{1} << 20;
constexpr std::size_t unlimited_bytes = std::size_t{1} << 30;
/// A multiple of every block size: addresses before the engine is chosen are those after it.
constexpr std::size_t part_bytes = std::size_t{2} << 20;
constexpr std::uint32_t threads_wished = 64;
constexpr std::size_t stacks_of_node_bytes = std::size_t{64} << 30;
/// More is no size of a stack, and sums of it must not overflow.
constexpr std::size_t stack_bytes_max = std::size_t{1} << 46;

std::size_t limit_bytes() noexcept {
    rlimit limit{};
    if (getrlimit(RLIMIT_STACK, &limit) != 0) return 0;
    return limit.rlim_cur == RLIM_INFINITY ? unlimited_bytes : limit.rlim_cur;
}

}  // namespace

Result<StackSizes> stack_sizes(std::uint32_t threads_per_node) {
    const auto setting_bytes = setting_number("HIROBA_STACK");
    if (!setting_bytes) return setting_bytes.error();
    const std::size_t asked = std::min(
        std::max<std::size_t>(limit_bytes(), stack_bytes_from_environment()), stack_bytes_max);
    StackSizes sizes;
    sizes.bytes_least = round_up(asked + thread_data_bytes, part_bytes);
    sizes.bytes =
        std::max(round_up(std::min<std::size_t>(*setting_bytes, stack_bytes_max), part_bytes),
                 sizes.bytes_least);
    const auto room = static_cast<std::uint32_t>(
        std::min<std::size_t>(stacks_of_node_bytes / sizes.bytes, threads_wished));
    sizes.per_node = std::max(threads_per_node, room);
    return sizes;
}

}  // namespace hiroba::omp
