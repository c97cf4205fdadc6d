// SPDX-License-Identifier: BSD-3-Clause
// Role: what a program may call that does not work on several nodes (docs/layers/process.md,
// sync.md). Invariant: a table; each row is refused with a line by src/abi/libc.
#pragma once

#include <string>
#include <string_view>

namespace hiroba::tools {

enum class Effect {
    ends,      ///< the run, when it gets there
    fails,     ///< the call, with a line
    sometimes  ///< ends the run in certain places only
};

struct Ending {
    std::string_view function;
    Effect effect;
    std::string_view why;
};

inline constexpr Ending endings[] = {
    {"fork", Effect::fails,
     "the child would write into its parent's memory; use posix_spawn, system, popen, or vfork and "
     "exec"},
    {"daemon", Effect::fails, "it forks; start the program in the background instead"},
    {"forkpty", Effect::fails, "it forks; use posix_spawn"},
    {"shmat", Effect::fails, "memory of System V would be each node's own; use malloc or mmap"},
    {"dlmopen", Effect::fails, "a namespace of libraries would be one node's; use dlopen"},
    {"io_setup", Effect::fails, "the kernel's asynchronous input knows one node; use aio or read"},
    {"pthread_mutexattr_setrobust", Effect::sometimes,
     "the first use of a robust mutex ends the run: it knows one node"},
    {"pthread_mutexattr_setpshared", Effect::sometimes,
     "the first use of a mutex ends the run if PTHREAD_PROCESS_SHARED is what was set"},
    {"pthread_condattr_setpshared", Effect::sometimes,
     "the first use of a condition variable ends the run if PTHREAD_PROCESS_SHARED is what was "
     "set"},
    {"pthread_rwlockattr_setpshared", Effect::sometimes,
     "the first use of a lock ends the run if PTHREAD_PROCESS_SHARED is what was set"},
    {"pthread_barrierattr_setpshared", Effect::sometimes,
     "the first use of a barrier ends the run if PTHREAD_PROCESS_SHARED is what was set"},
    {"pthread_exit", Effect::sometimes, "in a parallel region it ends the run"},
    {"execv", Effect::sometimes, "in a parallel region, on another node than 0, it ends the run"},
    {"execve", Effect::sometimes, "in a parallel region, on another node than 0, it ends the run"},
    {"execvp", Effect::sometimes, "in a parallel region, on another node than 0, it ends the run"},
    {"execl", Effect::sometimes, "in a parallel region, on another node than 0, it ends the run"},
    {"execlp", Effect::sometimes, "in a parallel region, on another node than 0, it ends the run"},
    {"dlopen", Effect::sometimes,
     "in a parallel region it fails with a line; what it opens is not looked at here"},
};

}  // namespace hiroba::tools
