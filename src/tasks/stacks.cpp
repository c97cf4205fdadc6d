// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/stacks.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "tasks/stop.hpp"

namespace hiroba::tasks {

Stack* map_stack(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t all = (bytes + page - 1) / page * page + page;
    void* const mapped = ::mmap(nullptr, all, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (mapped == MAP_FAILED || ::mprotect(mapped, page, PROT_NONE) != 0)
        stop(
            "no room for another task's stack of %zu bytes (%s): fewer tasks that wait, smaller "
            "stacks (Options::stack_bytes), or a larger vm.max_map_count",
            bytes, std::strerror(errno));
    auto* const low = static_cast<std::byte*>(mapped);
    auto* const made = ::new (low + all - sizeof(Stack)) Stack;
    made->mapped_bytes = all;
    made->place.bottom = low + page;
    made->place.bytes = all - page;
    return made;
}

void unmap_stack(Stack* stack) noexcept {
    if (__tsan_destroy_fiber != nullptr && stack->place.fiber != nullptr)
        __tsan_destroy_fiber(stack->place.fiber);
    std::byte* const end = reinterpret_cast<std::byte*>(stack) + sizeof(Stack);
    const std::size_t bytes = stack->mapped_bytes;
    ::munmap(end - bytes, bytes);
}

}  // namespace hiroba::tasks
