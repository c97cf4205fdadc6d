// SPDX-License-Identifier: BSD-3-Clause
#include "omp/process/threads_apart.hpp"

#include <algorithm>
#include <string_view>

#include "omp/process/system_libraries.hpp"

namespace hiroba::omp {
namespace {

// By syscall() a program asks for its thread's number, too.
constexpr std::string_view functions[] = {"pthread_self",
                                          "thrd_current",
                                          "gettid",
                                          "syscall",
                                          "pthread_key_create",
                                          "pthread_setspecific",
                                          "tss_create",
                                          "tss_set",
                                          "uselocale",
                                          "__uselocale",
                                          "pthread_sigmask",
                                          "sigprocmask",
                                          "sigaltstack",
                                          "sigblock",
                                          "sigsetmask",
                                          "sighold",
                                          "sigrelse",
                                          "sigset",
                                          "pthread_setcancelstate",
                                          "pthread_setcanceltype",
                                          "pthread_getattr_np",
                                          "pthread_mutexattr_setrobust",
                                          "getcontext",
                                          "swapcontext",
                                          "make_fcontext",
                                          "jump_fcontext",
                                          "flockfile",
                                          "ftrylockfile",
                                          "unshare",
                                          "setns",
                                          "setfsuid",
                                          "setfsgid",
                                          "capset",
                                          "ioprio_set",
                                          "pkey_set",
                                          "__rseq_offset",
                                          "pthread_setaffinity_np",
                                          "sched_setaffinity",
                                          "pthread_setschedparam",
                                          "pthread_setschedprio",
                                          "sched_setscheduler",
                                          "sched_setparam",
                                          "sched_setattr",
                                          "pthread_setname_np",
                                          "setpriority",
                                          "nice",
                                          "prctl",
                                          "fesetround",
                                          "fesetenv",
                                          "feupdateenv",
                                          "feholdexcept",
                                          "feenableexcept",
                                          "fedisableexcept",
                                          "__kmpc_threadprivate",
                                          "__kmpc_threadprivate_cached",
                                          "__emutls_get_address"};

}  // namespace

bool tell_threads_apart(const std::vector<LoadedObject>& objects) noexcept {
    return std::ranges::any_of(objects, [](const LoadedObject& object) {
        return object.is_global() &&
               (object.tls_module != 0 || needs_any_symbol(object.bias, object.dynamic, functions));
    });
}

}  // namespace hiroba::omp
