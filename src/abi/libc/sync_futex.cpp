// SPDX-License-Identifier: BSD-3-Clause
// Role: syscall(2) of the program: futexes in global memory are refused.
// Invariant: the kernel compares and wakes by one node's copy, so a thread of another node would
// sleep for ever without a word; that is worse than an end with one. What system libraries do with
// futexes (std::future) is between threads of one node, and left to the kernel.
#include <dlfcn.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdarg>

#include "abi/libc/real.hpp"
#include "abi/libc/sync_objects.hpp"
#include "base/fatal.hpp"
#include "omp/process/loaded_objects.hpp"

namespace hiroba::abi {
namespace {

using Arguments = std::array<long, 6>;

/// Without libc, since this library's own calls, in fault handlers too, come here.
long enter_kernel(long number, const Arguments& arguments) noexcept {
    long result = 0;
    register long r10 asm("r10") = arguments[3];
    register long r8 asm("r8") = arguments[4];
    register long r9 asm("r9") = arguments[5];
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(arguments[0]), "S"(arguments[1]), "d"(arguments[2]), "r"(r10),
                   "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    constexpr long errno_max = 4095;
    if (result >= 0 || result < -errno_max) return result;
    errno = static_cast<int>(-result);
    return -1;
}

/// In the program, its own libraries, or code it has made: not in a system library.
bool is_program_code(void* address) noexcept {
    dl_find_object found;
    if (_dl_find_object(address, &found) != 0) return true;
    return !omp::is_system_library(found.dlfo_link_map->l_name);
}

void refuse_futex(const void* word, void* caller) noexcept {
    if (word == nullptr || table_of(word) == nullptr || !is_program_code(caller)) return;
    die(exit_environment,
        "futex at 0x%lx: the kernel knows of one node's waiters only. Use mutexes and condition "
        "variables instead of futexes (std::atomic::wait is one), or one node (-n 1)",
        key_of(word));
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;

extern "C" [[gnu::visibility("default")]] long syscall(long number, ...) noexcept {
    Arguments arguments;
    va_list list;
    va_start(list, number);
    for (long& argument : arguments) argument = va_arg(list, long);
    va_end(list);
    if (number == SYS_futex && HIROBA_CALL_OF_PROGRAM()) {
        refuse_futex(reinterpret_cast<const void*>(arguments[0]), __builtin_return_address(0));
    }
    return enter_kernel(number, arguments);
}
