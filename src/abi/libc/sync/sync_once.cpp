// SPDX-License-Identifier: BSD-3-Clause
// Role: pthread_once and call_once, and the guards of function statics.
// Invariant: that something is done stands in the object's own bytes. The thread that did it writes
// it there before it releases, or owes that. So a new object in old memory is a new one; a thread
// that finds it there still acquires.
//
// A guard's first byte is read by the compiler's code, with no call that could acquire. So on
// several nodes it stays 0 for ever and the second byte says that the static is made. A guard is
// never made anew, so a node remembers in private memory which ones it has seen done.
//
// In private memory, and on one node, a guard is the word libstdc++ makes of it: bit 0 done, bit 8
// being made, bit 16 a thread sleeps.
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>
#include <unwind.h>

#include <array>
#include <atomic>
#include <climits>

#include "abi/libc/real.hpp"
#include "abi/libc/sync/sync_objects.hpp"
#include "base/program_call.hpp"

HIROBA_REAL(pthread_once);
HIROBA_REAL(call_once);

namespace hiroba::abi {
namespace {

/// The values that libc writes into a pthread_once_t or once_flag.
constexpr int once_done = 2;

struct OnceEnd {
    dsm::SyncTable& table;
    const volatile void* object;
    ~OnceEnd() { table.end_once(key_of(object)); }
};

/// This library has an unwinder of its own, which must know its registers before the program's
/// unwinder asks it to clean up a frame here; its first use of any kind sees to that.
void prepare_unwinder() noexcept {
    _Unwind_Backtrace([](_Unwind_Context*, void*) { return _URC_END_OF_STACK; }, nullptr);
}

/// An exception of `routine` passes through and leaves it undone.
void once(dsm::SyncTable& table, volatile int* control, void (*routine)()) {
    if (*control == once_done) {
        table.see_once(key_of(control));
        return;
    }
    table.begin_once(key_of(control));
    const OnceEnd end{table, control};
    if (*control == once_done) return;
    prepare_unwinder();
    call_program(routine);
    *control = once_done;
}

// --- guards --------------------------------------------------------------------------------------

using Guard = std::uint64_t;

/// Guards in global memory whose statics this node has seen made. A place is overwritten by
/// another guard; then the table is asked again.
constinit std::array<std::atomic<const Guard*>, 1024> made_guards{};

std::atomic<const Guard*>& place_of(const Guard* guard) noexcept {
    return made_guards[(reinterpret_cast<std::uintptr_t>(guard) / sizeof(Guard)) %
                       made_guards.size()];
}

volatile char& made_byte(Guard* guard) noexcept { return reinterpret_cast<char*>(guard)[1]; }

int acquire_global(dsm::SyncTable& table, Guard* guard) noexcept {
    // Acquire: pairs with the release below; the storing thread had acquired.
    if (place_of(guard).load(std::memory_order_acquire) == guard) return 0;
    table.begin_once(key_of(guard));
    if (made_byte(guard) == 0) return 1;
    table.forgo_once(key_of(guard));
    place_of(guard).store(guard, std::memory_order_release);
    return 0;
}

constexpr std::uint32_t guard_done = 1, guard_making = 1u << 8, guard_sleeper = 1u << 16;

std::atomic_ref<std::uint32_t> word_of(Guard* guard) noexcept {
    return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(guard));
}

int acquire_local(Guard* guard) noexcept {
    auto word = word_of(guard);
    for (;;) {
        std::uint32_t value = 0;
        if (word.compare_exchange_strong(value, guard_making)) return 1;
        if ((value & guard_done) != 0) return 0;
        const std::uint32_t asleep = value | guard_sleeper;
        if (value == asleep || word.compare_exchange_strong(value, asleep)) {
            syscall(SYS_futex, guard, FUTEX_WAIT_PRIVATE, asleep, nullptr, nullptr, 0);
        }
    }
}

void end_local(Guard* guard, std::uint32_t value) noexcept {
    const std::uint32_t former = word_of(guard).exchange(value);
    if ((former & guard_sleeper) != 0)
        syscall(SYS_futex, guard, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int pthread_once(pthread_once_t* control, void (*routine)()) {
    auto* const table = table_of(control);
    if (table == nullptr) return real_pthread_once(control, routine);
    once(*table, control, routine);
    return 0;
}

void call_once(once_flag* flag, void (*routine)()) {
    auto* const table = table_of(flag);
    if (table == nullptr) return real_call_once(flag, routine);
    once(*table, &flag->__data, routine);
}

int __cxa_guard_acquire(Guard* guard) noexcept {
    auto* const table = table_of(guard);
    return table != nullptr ? acquire_global(*table, guard) : acquire_local(guard);
}

void __cxa_guard_release(Guard* guard) noexcept {
    auto* const table = table_of(guard);
    if (table == nullptr) return end_local(guard, guard_done);
    made_byte(guard) = 1;
    table->end_once(key_of(guard));
}

void __cxa_guard_abort(Guard* guard) noexcept {
    auto* const table = table_of(guard);
    if (table == nullptr) return end_local(guard, 0);
    table->end_once(key_of(guard));
}

}  // extern "C"
