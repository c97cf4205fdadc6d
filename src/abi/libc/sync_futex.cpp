// SPDX-License-Identifier: BSD-3-Clause
// Role: futexes of the program in global memory are refused (raw_calls.cpp interposes syscall()).
// Invariant: the kernel compares and wakes by one node's copy, so a thread of another node would
// sleep for ever without a word; that is worse than an end with one. What system libraries do with
// futexes (std::future) is between threads of one node, and left to the kernel.
#include <dlfcn.h>
#include <link.h>

#include "abi/libc/sync_objects.hpp"
#include "base/fatal.hpp"
#include "omp/process/loaded_objects.hpp"

namespace hiroba::abi {
namespace {

/// In the program, its own libraries, or code it has made: not in a system library.
bool is_program_code(void* address) noexcept {
    dl_find_object found;
    if (_dl_find_object(address, &found) != 0) return true;
    return !omp::is_system_library(found.dlfo_link_map->l_name);
}

}  // namespace

void refuse_futex(const void* word, void* caller) noexcept {
    if (word == nullptr || table_of(word) == nullptr || !is_program_code(caller)) return;
    die(exit_environment,
        "futex at 0x%lx: the kernel knows of one node's waiters only. Use mutexes and condition "
        "variables instead of futexes (std::atomic::wait is one), or one node (-n 1)",
        key_of(word));
}

}  // namespace hiroba::abi
