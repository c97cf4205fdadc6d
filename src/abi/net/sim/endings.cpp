// SPDX-License-Identifier: BSD-3-Clause
// Role: how a simulated node ends: exit() and what is registered for it end the node that calls,
// not the process in which all nodes are.
#include <stdlib.h>
#include <unistd.h>

#include "abi/net/sim/job.hpp"

#define HIROBA_PUBLIC extern "C" [[gnu::visibility("default")]]

using namespace hiroba::abi::sim;

HIROBA_PUBLIC void exit(int status) noexcept {
    if (Job* const job = job_here()) job->exit_node(status);
    real<void(int)>("exit")(status);
    __builtin_unreachable();
}

HIROBA_PUBLIC void _exit(int status) {
    if (Job* const job = job_here()) job->end_node(status);
    real<void(int)>("_exit")(status);
    __builtin_unreachable();
}

HIROBA_PUBLIC void _Exit(int status) noexcept { _exit(status); }

HIROBA_PUBLIC int __cxa_atexit(void (*function)(void*), void* argument, void* library) noexcept {
    Job* const job = job_here();
    if (job == nullptr)
        return real<int(void (*)(void*), void*, void*)>("__cxa_atexit")(function, argument,
                                                                        library);
    job->at_exit({function, argument});
    return 0;
}

HIROBA_PUBLIC int __cxa_thread_atexit_impl(void (*function)(void*), void* argument,
                                           void* library) noexcept {
    Job* const job = job_here();
    if (job == nullptr)
        return real<int(void (*)(void*), void*, void*)>("__cxa_thread_atexit_impl")(
            function, argument, library);
    job->at_thread_end({function, argument});
    return 0;
}
