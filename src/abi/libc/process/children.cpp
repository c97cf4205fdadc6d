// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes what starts other programs: makes their arguments and variables accessible to
// the kernel, and refuses what several nodes cannot do.
// Invariant: between fork and exec the child of posix_spawn(), system() and popen() has all signals
// blocked and cannot resolve a fault, so everything it will read is touched before. Only calls of a
// node's own process are refused: its children are ordinary processes.
#include "abi/libc/process/children.hpp"

#include <alloca.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>

#include "abi/libc/calls/kernel_access.hpp"
#include "abi/libc/process/child_signals.hpp"
#include "abi/libc/process/job_end.hpp"
#include "abi/libc/process/signal_masks.hpp"
#include "abi/libc/process/variables.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/threads/kept_by_threads.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "net/bootstrap/started.hpp"

HIROBA_REAL(fork);
HIROBA_REAL(system);
HIROBA_REAL(popen);
HIROBA_REAL(posix_spawn);
HIROBA_REAL(posix_spawnp);
HIROBA_REAL(execve);
HIROBA_REAL(execvpe);
HIROBA_REAL(fexecve);

namespace hiroba::abi {
namespace {

void let_kernel_read_texts(char* const* texts) noexcept {
    if (texts == nullptr) return;
    for (; *texts != nullptr; ++texts) {
        let_kernel_read(texts, 2 * sizeof *texts);  // this one and the next, which ends the loop
        let_kernel_read_text(*texts);
    }
    let_kernel_read(texts, sizeof *texts);
}

void let_kernel_start(const char* path, char* const* arguments, char* const* variables) noexcept {
    let_kernel_read_text(path);
    let_kernel_read_texts(arguments);
    let_kernel_read_texts(variables);
}

void refuse_exec_of_worker() noexcept {
    if (world()->job.self.value == 0 || !is_node_process()) return;
    die(exit_environment,
        "exec in a parallel region on another node than 0: it would replace this node's process "
        "alone. Call it outside parallel regions, or use posix_spawn");
}

/// The launcher says so at the end, should this node not have run a region itself.
void tell_started(const char* text, bool replaces) noexcept {
    if (!replaces) tell_of_children();
    if (world()->job.self.value == 0 && is_node_process())
        net::report_started(world()->job, text != nullptr ? text : "another program", replaces);
}

/// exec, before the kernel's call.
void start_exec(const char* path, char* const* arguments, char* const* variables) noexcept {
    refuse_exec_of_worker();
    let_kernel_start(path, arguments, variables);
    tell_started(path, true);
}

/// The same with the environment.
void start_with_variables(const char* path, char* const* arguments) noexcept {
    follow_variables();
    start_exec(path, arguments, environ);
}

/// exec: what comes back has failed.
int not_replaced(int result) noexcept {
    const int error = errno;
    if (spans_nodes()) tell_started("", true);
    errno = error;
    return result;
}

std::size_t count_arguments(va_list arguments) noexcept {
    std::size_t count = 0;
    while (va_arg(arguments, char*) != nullptr) ++count;
    return count;
}

}  // namespace

void refuse_fork() noexcept {
    if (world()->omp->place().level > 0) {
        die(exit_environment,
            "fork in a parallel region: the child would write into its parent's memory. Use "
            "posix_spawn, system, popen, or vfork and exec");
    }
    say("fork on several nodes: the child would write into its parent's memory. Use posix_spawn, "
        "system, popen, or vfork and exec");
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

/// Gathers the arguments of an execl function, `first` included, up to the null pointer; what
/// follows it stays in `list`. On the caller's stack: the child of vfork() must not allocate.
// NOLINTBEGIN(bugprone-macro-parentheses): `vector` is declared, `list` is a va_list.
#define HIROBA_GATHER(vector, list, first)                                          \
    va_start(list, first);                                                          \
    const std::size_t count = count_arguments(list);                                \
    va_end(list);                                                                   \
    auto** const vector = static_cast<char**>(alloca((count + 2) * sizeof(char*))); \
    vector[0] = const_cast<char*>(first);                                           \
    va_start(list, first);                                                          \
    for (std::size_t i = 1; i <= count + 1; ++i) vector[i] = va_arg(list, char*)
// NOLINTEND(bugprone-macro-parentheses)

#pragma GCC visibility push(default)
extern "C" {

pid_t fork() noexcept {
    if (!HIROBA_CALL_OF_PROGRAM() || !is_node_process()) return real_fork();
    refuse_fork();
    errno = ENOSYS;
    return -1;
}

int system(const char* command) {
    if (HIROBA_CALL_OF_PROGRAM()) {
        follow_variables();
        let_kernel_start(command, nullptr, environ);
        if (command != nullptr) tell_started(command, false);
    }
    const ProgramMask inherited;
    return real_system(command);
}

FILE* popen(const char* command, const char* mode) {
    if (HIROBA_CALL_OF_PROGRAM()) {
        follow_variables();
        let_kernel_start(command, nullptr, environ);
        note_kept_by_thread();  // its node is the parent
        if (command != nullptr) tell_started(command, false);
    }
    const ProgramMask inherited;
    return real_popen(command, mode);
}

int posix_spawn(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const arguments[],
                char* const variables[]) {
    if (HIROBA_CALL_OF_PROGRAM()) {
        let_kernel_start(path, arguments, variables);
        note_kept_by_thread();  // its node is the parent
        tell_started(path, false);
    }
    const ProgramMask inherited;
    return real_posix_spawn(child, path, actions, attributes, arguments, variables);
}

int posix_spawnp(pid_t* child, const char* file, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const arguments[],
                 char* const variables[]) {
    if (HIROBA_CALL_OF_PROGRAM()) {
        let_kernel_start(file, arguments, variables);
        note_kept_by_thread();  // its node is the parent
        tell_started(file, false);
    }
    const ProgramMask inherited;
    return real_posix_spawnp(child, file, actions, attributes, arguments, variables);
}

int execve(const char* path, char* const arguments[], char* const variables[]) noexcept {
    if (HIROBA_CALL_OF_PROGRAM()) start_exec(path, arguments, variables);
    const ProgramMask inherited;
    return not_replaced(real_execve(path, arguments, variables));
}

int execvpe(const char* file, char* const arguments[], char* const variables[]) noexcept {
    if (HIROBA_CALL_OF_PROGRAM()) start_exec(file, arguments, variables);
    const ProgramMask inherited;
    return not_replaced(real_execvpe(file, arguments, variables));
}

int fexecve(int fd, char* const arguments[], char* const variables[]) noexcept {
    if (HIROBA_CALL_OF_PROGRAM()) start_exec(nullptr, arguments, variables);
    return not_replaced(real_fexecve(fd, arguments, variables));
}

int execv(const char* path, char* const arguments[]) noexcept {
    if (HIROBA_CALL_OF_PROGRAM()) start_with_variables(path, arguments);
    const ProgramMask inherited;
    return not_replaced(real_execve(path, arguments, environ));
}

int execvp(const char* file, char* const arguments[]) noexcept {
    if (HIROBA_CALL_OF_PROGRAM()) start_with_variables(file, arguments);
    const ProgramMask inherited;
    return not_replaced(real_execvpe(file, arguments, environ));
}

int execl(const char* path, const char* first, ...) noexcept {
    va_list list;
    HIROBA_GATHER(arguments, list, first);
    va_end(list);
    if (HIROBA_CALL_OF_PROGRAM()) start_with_variables(path, arguments);
    const ProgramMask inherited;
    return not_replaced(real_execve(path, arguments, environ));
}

int execlp(const char* file, const char* first, ...) noexcept {
    va_list list;
    HIROBA_GATHER(arguments, list, first);
    va_end(list);
    if (HIROBA_CALL_OF_PROGRAM()) start_with_variables(file, arguments);
    const ProgramMask inherited;
    return not_replaced(real_execvpe(file, arguments, environ));
}

int execle(const char* path, const char* first, ...) noexcept {
    va_list list;
    HIROBA_GATHER(arguments, list, first);
    auto* const variables = va_arg(list, char**);
    va_end(list);
    if (HIROBA_CALL_OF_PROGRAM()) start_exec(path, arguments, variables);
    const ProgramMask inherited;
    return not_replaced(real_execve(path, arguments, variables));
}

}  // extern "C"
