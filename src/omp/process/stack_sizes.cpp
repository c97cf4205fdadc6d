// SPDX-License-Identifier: BSD-3-Clause
#include "omp/process/stack_sizes.hpp"

#include <link.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>

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

/// What the objects loaded at the first call want of each thread: the sizes of the job's memory are
/// asked for before constructors run, and again when they may have loaded more.
std::size_t static_tls_bytes() noexcept {
    constexpr std::size_t unknown = SIZE_MAX;
    static constinit std::atomic<std::size_t> found{unknown};
    if (found.load(std::memory_order_relaxed) != unknown)
        return found.load(std::memory_order_relaxed);
    std::size_t bytes = 0;
    const auto add = [](dl_phdr_info* info, std::size_t, void* sum) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
            const ElfW(Phdr)& header = info->dlpi_phdr[i];
            if (header.p_type == PT_TLS)
                *static_cast<std::size_t*>(sum) +=
                    round_up(header.p_memsz, std::max<std::size_t>(header.p_align, 1));
        }
        return 0;
    };
    dl_iterate_phdr(add, &bytes);
    // Relaxed: every thread would find the same.
    found.store(bytes, std::memory_order_relaxed);
    return bytes;
}

}  // namespace

Result<StackSizes> stack_sizes(std::uint32_t threads_per_node) {
    const auto setting_bytes = setting_number("HIROBA_STACK");
    if (!setting_bytes) return setting_bytes.error();
    const std::size_t asked = std::min(
        std::max<std::size_t>(limit_bytes(), stack_bytes_from_environment()), stack_bytes_max);
    StackSizes sizes;
    const std::size_t tls = std::min(static_tls_bytes(), stack_bytes_max);
    sizes.bytes_least = round_up(asked + thread_data_bytes + tls, part_bytes);
    sizes.bytes =
        std::max(round_up(std::min<std::size_t>(*setting_bytes, stack_bytes_max), part_bytes),
                 sizes.bytes_least);
    const auto room = static_cast<std::uint32_t>(
        std::min<std::size_t>(stacks_of_node_bytes / sizes.bytes, threads_wished));
    sizes.per_node = std::max(threads_per_node, room);
    return sizes;
}

}  // namespace hiroba::omp
