// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes what tells one thread of another by its pthread_t: names, and clocks of
// processor time. Invariant: libc looks into the control block for a number of the kernel's, which
// means nothing on another node: the thread's own node is asked.
#include "abi/libc/threads/thread_names.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include "abi/libc/calls/kernel_access.hpp"
#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/files/remote_files.hpp"
#include "abi/libc/process/thread_attributes.hpp"
#include "abi/libc/process/thread_signals.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/threads/thread_stacks.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"

HIROBA_REAL(pthread_getname_np);
HIROBA_REAL(pthread_setname_np);
HIROBA_REAL(pthread_getcpuclockid);

namespace hiroba::abi {
namespace {

/// Asks every other node. @return 0 or an error number
// Not inlined, so that test/cluster/switched_off.py can switch it off.
[[gnu::noinline]] int name_elsewhere(pthread_t thread, bool changes,
                                     char (&name)[thread_name_bytes]) noexcept {
    const CallArguments words{{static_cast<long>(thread), changes}};
    for (std::uint32_t node = 0; node < world()->job.nodes; ++node) {
        if (NodeId{node} == world()->job.self) continue;
        const auto bytes = std::as_writable_bytes(std::span(name));
        const long result = world()->files->call(
            NodeId{node}, static_cast<std::int64_t>(NameCall::name), words, -1, bytes, bytes);
        if (result != -ESRCH) return static_cast<int>(-result);
    }
    return ESRCH;
}

}  // namespace

std::int64_t name_thread_here(const CallArguments& words, std::byte* name) noexcept {
    const pid_t id = number_of_program_thread(static_cast<pthread_t>(words.word[0]));
    if (id == 0) return -ESRCH;
    const bool changes = words.word[1] != 0;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", id);
    const long file =
        dsm::kernel_call(SYS_open, path, (changes ? O_WRONLY : O_RDONLY) | O_CLOEXEC, 0);
    if (file < 0) return file;
    const auto* const text = reinterpret_cast<const char*>(name);
    const long result =
        changes ? dsm::kernel_call(SYS_write, file, name, strnlen(text, thread_name_bytes))
                : dsm::kernel_call(SYS_read, file, name, thread_name_bytes);
    dsm::kernel_call(SYS_close, file);
    if (!changes && result > 0) name[result - 1] = std::byte{0};  // for the end of the line
    return result < 0 ? result : 0;
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int pthread_getname_np(pthread_t thread, char* name, size_t bytes) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM() || !is_thread_of_other_node(thread))
        return real_pthread_getname_np(thread, name, bytes);
    char found[thread_name_bytes] = {};
    if (bytes < sizeof found) return ERANGE;
    const int failure = name_elsewhere(thread, false, found);
    if (failure == 0) strcpy(name, found);
    return failure;
}

int pthread_setname_np(pthread_t thread, const char* name) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_pthread_setname_np(thread, name);
    thread_attribute_changed();
    let_kernel_read_text(name);
    if (!is_thread_of_other_node(thread)) return real_pthread_setname_np(thread, name);
    char given[thread_name_bytes] = {};
    if (strlen(name) >= sizeof given) return ERANGE;
    strcpy(given, name);
    return name_elsewhere(thread, true, given);
}

int pthread_getcpuclockid(pthread_t thread, clockid_t* clock) noexcept {
    if (HIROBA_CALL_OF_PROGRAM() && is_thread_of_other_node(thread)) {
        hiroba::die(hiroba::exit_environment,
                    "pthread_getcpuclockid of a thread of another node: its kernel alone has that "
                    "clock. Let the thread ask for its own");
    }
    return real_pthread_getcpuclockid(thread, clock);
}

}  // extern "C"
