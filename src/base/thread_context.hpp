// SPDX-License-Identifier: BSD-3-Clause
// Role: what the runtime knows of one thread, in memory private to the node.
// Invariant: only the owning thread writes its context. The one thread-local word that leads here
// is written once per thread, because TLS of the program's threads lies in global memory.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace hiroba {

class Turns;
struct TraceRing;

/// What kind of construct a thread synchronizes by (base/sync_place.hpp names them).
enum class SyncKind : std::uint32_t {
    start,
    region,
    end,  ///< of a region
    barrier,
    loop,
    single,
    critical,
    lock,
    flush,
    wait,
};
inline constexpr unsigned sync_kinds = 10;

/// A construct and an address in the program's code; {0, start} before the first.
struct SyncPlace {
    std::uintptr_t address = 0;
    SyncKind kind = SyncKind::start;
};

struct ThreadContext {
    std::byte* runtime_stack_top = nullptr;  ///< private stack on which releases and acquires run
    bool on_runtime_stack = false;
    std::uintptr_t signal_stack = 0;  ///< the alternate stack of ours: where it begins, 0: none
    std::size_t signal_stack_bytes = 0;
    bool in_runtime = false;          ///< this thread executes our code, not the program's
    std::uint32_t global_thread = 0;  ///< number over the whole job: node * threads + local number
    TraceRing* trace = nullptr;       ///< this thread's last trace records (base/trace.hpp)
    /// The signals that the program had blocked when it faulted; nullptr: no fault
    /// (base/held_signals.hpp).
    const sigset_t* mask_before_fault = nullptr;
    Turns* turns = nullptr;  ///< schedules the thread; nullptr: the kernel does (base/turns.hpp)
    /// Where its neighbours look whether they still let it go first, nullptr: they do not
    /// (omp/team/single_turn.hpp).
    std::atomic<ThreadContext*>* goes_first = nullptr;
    SyncPlace place;            ///< of its last synchronization (base/sync_place.hpp)
    std::uintptr_t region = 0;  ///< the function of the last region it entered, likewise
    /// The kernel reads it at each system call of a thread whose calls are examined: 0 lets the
    /// call pass, 1 hands it to us.
    char examines_calls = 0;
    bool in_own_library = false;  ///< this thread executes a library that serves this node
    bool is_service = false;      ///< sleeps mostly and answers others (base/short_slice.hpp)
    /// What the layers above keep of the thread, each in its room (base/thread_room.hpp).
    static constexpr std::size_t rooms_count = 4, room_bytes = 64;
    alignas(std::max_align_t) std::byte rooms[rooms_count][room_bytes] = {};
};

/// `thread`, the calling one, is in the runtime again: what it did before is done.
inline void end_going_first(ThreadContext& thread) noexcept {
    if (thread.goes_first == nullptr) [[likely]]
        return;
    thread.goes_first->store(nullptr, std::memory_order_release);  // pairs with SingleTurn
    thread.goes_first = nullptr;
}

/// The calling thread's context; made on first use (mmap, private). Async-signal-safe.
ThreadContext& this_thread() noexcept;

/// The calling thread's, once it has one: the one word in TLS. Initial-exec: it is found without a
/// call that could allocate.
extern constinit thread_local ThreadContext* own_context
    [[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]];
/// As this_thread(), but nullptr where that would have to make one.
inline ThreadContext* this_thread_if_known() noexcept { return own_context; }

/// Makes `next` the calling thread's context and returns the former one (nullptr: none was made
/// yet). For a simulator that runs several threads by turns on one of the machine.
ThreadContext* exchange_thread_context(ThreadContext* next) noexcept;

/// While one lives, its thread executes our code on the program's stack: a signal handler of the
/// program would find latches held by the thread it interrupted, so it waits.
class RuntimeScope {
public:
    RuntimeScope() noexcept : context_(this_thread()), before_(context_.in_runtime) {
        context_.in_runtime = true;
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    RuntimeScope(const RuntimeScope&) = delete;
    RuntimeScope& operator=(const RuntimeScope&) = delete;
    ~RuntimeScope() {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        context_.in_runtime = before_;
    }

private:
    ThreadContext& context_;
    bool before_;
};

/// While one lives, what its thread calls of libc and the kernel is not the program's: a library
/// that serves this node makes the calls (base/own_libraries.hpp).
class CallsOfOwnLibrary {
public:
    CallsOfOwnLibrary() noexcept
        : context_(this_thread()),
          examined_before_(context_.examines_calls),
          inside_before_(context_.in_own_library) {
        context_.examines_calls = 0;
        context_.in_own_library = true;
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    CallsOfOwnLibrary(const CallsOfOwnLibrary&) = delete;
    CallsOfOwnLibrary& operator=(const CallsOfOwnLibrary&) = delete;
    ~CallsOfOwnLibrary() {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        context_.in_own_library = inside_before_;
        context_.examines_calls = examined_before_;
    }

private:
    ThreadContext& context_;
    char examined_before_;
    bool inside_before_;
};

using RuntimeCall = void (*)(void*);

/// Calls `function(argument)` on the thread's private runtime stack (256 KiB), or directly when
/// already there, or in a signal handler on the alternate stack, which is as private: leaving that
/// would let the next signal's frame begin at its top again, over the handler's. Needed around
/// everything that may make the program's own stack inaccessible or compares it while it would be
/// changing (design rule: release and acquire run on a stack of ours).
void call_on_runtime_stack(RuntimeCall function, void* argument) noexcept;

/// As above for any callable.
template <class Callable>
void on_runtime_stack(Callable&& callable) noexcept {
    using Plain = std::remove_reference_t<Callable>;
    call_on_runtime_stack([](void* argument) { (*static_cast<Plain*>(argument))(); },
                          const_cast<std::remove_const_t<Plain>*>(&callable));
}

}  // namespace hiroba
