// SPDX-License-Identifier: BSD-3-Clause
// Role: threads the program makes itself (pthread_create, std::thread through it, thrd_create).
// Invariant: they belong to the node that made them; their stack and thread-local storage are
// global memory, so that a region they open, or a thread of another node, may follow a pointer into
// it. While there are any, the runtime knows that a synchronization does not stand alone. The
// process ends with main, also when main leaves by pthread_exit().
#include "abi/libc/threads/threads.hpp"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <threads.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "abi/kmp/thread_notes.hpp"
#include "abi/libc/calls/system_call_trap.hpp"
#include "abi/libc/process/signal_masks.hpp"
#include "abi/libc/process/thread_signals.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/threads/cancellation.hpp"
#include "abi/libc/threads/kept_by_threads.hpp"
#include "abi/libc/threads/thread_keys.hpp"
#include "abi/libc/threads/thread_stacks.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "base/program_call.hpp"
#include "omp/process/node_threads.hpp"

HIROBA_REAL(pthread_create);
HIROBA_REAL(pthread_exit);
HIROBA_REAL(thrd_create);

namespace hiroba::abi {
namespace {

/// The function that a new thread is to run. In private memory: malloc called from this library is
/// private.
struct ThreadStart {
    void* (*function)(void*);
    void* argument;
    ThreadStack* stack;
    KernelMask hidden;  ///< signals that the maker has blocked for the runtime, not the program
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

void note_end() noexcept {
    count_in_runtime(-1);
    threads_alive.fetch_sub(1);
    threads_alive.notify_all();
}

void end_thread(void*) {
    end_key_values();  // what destroys them is of the program
    if (World* const node = world(); node != nullptr && node->omp != nullptr) {
        kmp::forget_notes();
        node->omp->forget_thread();
        forget_program_thread();
    }
    note_end();
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
    enter_thread_stack(*start.stack);
    note_program_thread();
    allow_cancellation();
    note_thread_started(*start.stack);
    pthread_setspecific(end_key(), &threads_alive);
    if (start.hidden != 0) dsm::change_mask(SIG_UNBLOCK, start.hidden);
    examine_this_thread();
    return call_program(start.function, start.argument);
}

int start_thread(pthread_t* thread, const pthread_attr_t& attributes, ThreadStart* start) noexcept {
    end_key();
    threads_alive.fetch_add(1);
    count_in_runtime(+1);
    const int failure = real_pthread_create(thread, &attributes, &run, start);
    if (failure != 0) note_end();
    return failure;
}

/// Natively the process lives on until its last thread ends; the runtime's own threads never do.
[[noreturn]] void leave_main() {
    end_key_values();
    for (std::uint32_t alive = threads_alive.load(); alive != 0; alive = threads_alive.load()) {
        threads_alive.wait(alive);
    }
    exit(0);
}

[[noreturn]] void refuse_exit_in_region() {
    hiroba::die(
        hiroba::exit_environment,
        "pthread_exit in a thread of a parallel region: the region would wait for it for ever. "
        "Return from the region");
}

/// Neither main's thread nor one the program has made.
bool is_runtime_thread() noexcept {
    return pthread_equal(main_thread.load(), pthread_self()) == 0 &&
           pthread_getspecific(end_key()) == nullptr;
}

}  // namespace

void start_another_thread(std::uint32_t local_thread) {
    // On node 0 the caller is the program's; signals from outside are not for the new thread.
    const sigset_t former = hiroba::omp::block_asynchronous_signals();
    const auto started =
        hiroba::omp::start_node_thread(*world()->map, world()->job.self, local_thread);
    if (!started) die(exit_environment, "%s", started.error().text.c_str());
    pthread_sigmask(SIG_SETMASK, &former, nullptr);
}

void become_main_thread() noexcept { main_thread.store(pthread_self()); }

bool is_main_thread() noexcept { return pthread_equal(main_thread.load(), pthread_self()) != 0; }

bool program_threads_run() noexcept { return threads_alive.load() != 0; }

int create_thread(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                  void* argument) noexcept {
    auto* const start = static_cast<ThreadStart*>(malloc(sizeof(ThreadStart)));
    if (start == nullptr) return EAGAIN;
    // A copy: the stack is put into it. What it points to stays the program's.
    pthread_attr_t own;
    if (attributes != nullptr)
        own = *attributes;
    else
        pthread_attr_init(&own);
    ThreadStack* const stack = open_thread_stack(own);
    int failure = EAGAIN;
    if (stack != nullptr) {
        *start = {function, argument, stack, hidden_mask()};
        failure = start_thread(thread, own, start);
        if (failure != 0) close_thread_stack(*stack);
    }
    if (failure != 0) free(start);
    if (attributes == nullptr) pthread_attr_destroy(&own);
    return failure;
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                   void* argument) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) {
        return real_pthread_create(thread, attributes, function, argument);
    }
    note_kept_by_thread();  // it is joined where it was made
    return create_thread(thread, attributes, function, argument);
}

/// C11's thread returns an int, in the register in which another would return a pointer; thrd_join
/// looks at no more than the int.
int thrd_create(thrd_t* thread, thrd_start_t function, void* argument) {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_thrd_create(thread, function, argument);
    note_kept_by_thread();
    auto* const start = reinterpret_cast<void* (*)(void*)>(reinterpret_cast<void*>(function));
    switch (create_thread(thread, nullptr, start, argument)) {
        case 0: return thrd_success;
        case EAGAIN:
        case ENOMEM: return thrd_nomem;
        default: return thrd_error;
    }
}

void pthread_exit(void* result) {
    if (HIROBA_CALL_OF_PROGRAM() && pthread_equal(main_thread.load(), pthread_self()) != 0) {
        if (world() != nullptr && world()->omp->place().level > 0) refuse_exit_in_region();
        leave_main();
    }
    // The process is to end with the program's last thread, and the runtime's own never end.
    if (world() != nullptr && !spans_nodes() && pthread_equal(main_thread.load(), pthread_self()))
        world()->omp->quit();
    if (HIROBA_CALL_OF_PROGRAM() && is_runtime_thread()) refuse_exit_in_region();
    real_pthread_exit(result);
    __builtin_unreachable();
}

}  // extern "C"
