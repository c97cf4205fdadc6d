// SPDX-License-Identifier: BSD-3-Clause
// Role: threads the program makes itself (pthread_create, and std::thread through it).
// Invariant: they belong to the node that made them: stack and thread-local storage are private to
// it, they may touch global memory like any other thread, and they take no part in regions of
// other nodes. The process ends with main, also when main leaves by pthread_exit().
#include "abi/libc/threads.hpp"

#include <pthread.h>
#include <stdlib.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "abi/libc/real.hpp"
#include "abi/libc/system_call_trap.hpp"
#include "abi/world.hpp"
#include "dsm/memory/fault_engine.hpp"

HIROBA_REAL(pthread_create);
HIROBA_REAL(pthread_exit);

namespace hiroba::abi {
namespace {

/// What a new thread is to run. In private memory: malloc called from this library is private.
struct ThreadStart {
    void* (*function)(void*);
    void* argument;
};

/// Threads of the program that have not ended; notified when one ends.
constinit std::atomic<std::uint32_t> threads_alive{0};
constinit std::atomic<pthread_t> main_thread{0};

/// A release must not take the program's stacks for quiet while threads of its own run.
void count_in_runtime(int change) noexcept {
    if (World* const node = world(); node != nullptr && node->omp != nullptr) {
        node->omp->count_program_threads(change);
    }
}

void end_thread(void*) {
    count_in_runtime(-1);
    threads_alive.fetch_sub(1);
    threads_alive.notify_all();
}

/// Its destructor sees every end of a thread, cancellation included, without a frame of ours being
/// unwound by the program's unwinder.
pthread_key_t end_key() noexcept {
    static const pthread_key_t key = [] {
        pthread_key_t made{};
        pthread_key_create(&made, &end_thread);
        return made;
    }();
    return key;
}

void* run(void* start_at) {
    auto* const given = static_cast<ThreadStart*>(start_at);
    const ThreadStart start = *given;
    free(given);
    pthread_setspecific(end_key(), &threads_alive);
    dsm::give_alternate_stack();
    examine_this_thread();
    return start.function(start.argument);
}

int create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
           void* argument) noexcept {
    auto* const start = static_cast<ThreadStart*>(malloc(sizeof(ThreadStart)));
    if (start == nullptr) return EAGAIN;
    *start = {function, argument};
    end_key();
    threads_alive.fetch_add(1);
    count_in_runtime(+1);
    const int failure = real_pthread_create(thread, attributes, &run, start);
    if (failure != 0) {
        end_thread(nullptr);
        free(start);
    }
    return failure;
}

/// Natively the process lives on until its last thread ends; the runtime's own threads never do.
[[noreturn]] void leave_main() {
    for (std::uint32_t alive = threads_alive.load(); alive != 0; alive = threads_alive.load()) {
        threads_alive.wait(alive);
    }
    exit(0);
}

}  // namespace

void become_main_thread() noexcept { main_thread.store(pthread_self()); }

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                   void* argument) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) {
        return real_pthread_create(thread, attributes, function, argument);
    }
    return create(thread, attributes, function, argument);
}

void pthread_exit(void* result) {
    if (HIROBA_CALL_OF_PROGRAM() && pthread_equal(main_thread.load(), pthread_self()) != 0) {
        leave_main();
    }
    real_pthread_exit(result);
    __builtin_unreachable();
}

}  // extern "C"
