// SPDX-License-Identifier: BSD-3-Clause
// Role: pthreads for simulated threads: threads themselves, what each has by a key, what runs once.
// Threads that are not simulated get libc's own.
#include <errno.h>
#include <pthread.h>

#include "abi/net/sim/job.hpp"
#include "base/fatal.hpp"

#define HIROBA_PUBLIC extern "C" [[gnu::visibility("default")]]

namespace hiroba::abi::sim {
namespace {

/// A pthread_t is the thread's number and one, so that none is 0, as libstdc++ has it for no
/// thread.
pthread_t handle_of(std::uint32_t thread) { return pthread_t{thread} + 1; }
std::uint32_t thread_of(pthread_t handle) { return static_cast<std::uint32_t>(handle - 1); }

[[noreturn]] void refuse(const char* name) {
    die(exit_usage, "%s: simulated threads have no such call", name);
}

/// States of a pthread_once_t; PTHREAD_ONCE_INIT is 0.
enum Once : int { once_new = 0, once_runs = 1, once_done = 2 };

}  // namespace
}  // namespace hiroba::abi::sim

using namespace hiroba::abi::sim;

HIROBA_PUBLIC int pthread_create(pthread_t* to, const pthread_attr_t* attributes,
                                 void* (*function)(void*), void* argument) noexcept {
    Job* const job = job_here();
    if (job == nullptr)
        return real<decltype(pthread_create)>("pthread_create")(to, attributes, function, argument);
    *to = handle_of(job->start_thread(function, argument));
    return 0;
}

HIROBA_PUBLIC int pthread_join(pthread_t thread, void** result) {
    Job* const job = job_here();
    if (job == nullptr) return real<decltype(pthread_join)>("pthread_join")(thread, result);
    if (thread == handle_of(job->simulation().thread())) return EDEADLK;
    const auto ended = job->join_thread(thread_of(thread));
    if (!ended) return ESRCH;
    if (result != nullptr) *result = *ended;
    return 0;
}

HIROBA_PUBLIC int pthread_detach(pthread_t thread) noexcept {
    return job_here() != nullptr ? 0 : real<decltype(pthread_detach)>("pthread_detach")(thread);
}

HIROBA_PUBLIC pthread_t pthread_self() noexcept {
    if (Job* const job = job_here()) return handle_of(job->simulation().thread());
    return real<decltype(pthread_self)>("pthread_self")();
}

HIROBA_PUBLIC int pthread_once(pthread_once_t* control, void (*function)()) {
    Job* const job = job_here();
    if (job == nullptr) return real<decltype(pthread_once)>("pthread_once")(control, function);
    while (*control == once_runs) job->wait_at(control);
    if (*control == once_done) return 0;
    *control = once_runs;
    try {
        function();
    } catch (...) {  // Another thread may try, as std::call_once() says.
        *control = once_new;
        job->wake_at(control);
        throw;
    }
    *control = once_done;
    job->wake_at(control);
    return 0;
}

// --- values by a key -----------------------------------------------------------------------------

HIROBA_PUBLIC int pthread_key_create(pthread_key_t* key, void (*destructor)(void*)) noexcept {
    using Create = int(pthread_key_t*, void (*)(void*));
    Job* const job = job_here();
    const int failed =
        real<Create>("pthread_key_create")(key, job == nullptr ? destructor : nullptr);
    if (job != nullptr && failed == 0) job->set_destructor(*key, destructor);
    return failed;
}

HIROBA_PUBLIC void* pthread_getspecific(pthread_key_t key) noexcept {
    if (Job* const job = job_here()) return job->value_of_key(key);
    return real<decltype(pthread_getspecific)>("pthread_getspecific")(key);
}

HIROBA_PUBLIC int pthread_setspecific(pthread_key_t key, const void* value) noexcept {
    Job* const job = job_here();
    if (job == nullptr)
        return real<decltype(pthread_setspecific)>("pthread_setspecific")(key, value);
    job->value_of_key(key) = const_cast<void*>(value);
    return 0;
}

// --- what names a thread to the kernel -----------------------------------------------------------

HIROBA_PUBLIC int pthread_setname_np(pthread_t thread, const char* name) noexcept {
    using Set = int(pthread_t, const char*);
    return job_here() != nullptr ? 0 : real<Set>("pthread_setname_np")(thread, name);
}

HIROBA_PUBLIC int pthread_setaffinity_np(pthread_t thread, std::size_t bytes,
                                         const cpu_set_t* set) noexcept {
    using Set = int(pthread_t, std::size_t, const cpu_set_t*);
    return job_here() != nullptr ? 0 : real<Set>("pthread_setaffinity_np")(thread, bytes, set);
}

HIROBA_PUBLIC int pthread_kill(pthread_t thread, int number) noexcept {
    if (job_here() != nullptr) refuse("pthread_kill");
    return real<decltype(pthread_kill)>("pthread_kill")(thread, number);
}

HIROBA_PUBLIC int pthread_cancel(pthread_t thread) {
    if (job_here() != nullptr) refuse("pthread_cancel");
    return real<decltype(pthread_cancel)>("pthread_cancel")(thread);
}

HIROBA_PUBLIC void pthread_exit(void* result) {
    if (job_here() != nullptr) refuse("pthread_exit");
    real<void(void*)>("pthread_exit")(result);
    __builtin_unreachable();
}

HIROBA_PUBLIC int pthread_getattr_np(pthread_t thread, pthread_attr_t* to) noexcept {
    if (job_here() != nullptr) refuse("pthread_getattr_np");
    using Get = int(pthread_t, pthread_attr_t*);
    return real<Get>("pthread_getattr_np")(thread, to);
}
