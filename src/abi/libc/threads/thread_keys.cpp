// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes thread-specific keys: pthread_key_create() and its kin, C11's tss_create().
// Invariant: keys of the program are the job's (key_table.hpp), whichever node makes them. Those of
// system libraries are libc's, as all are on one node. A key's number says which it is.
#include "abi/libc/threads/thread_keys.hpp"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <threads.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "abi/libc/memory/malloc_callers.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/threads/kept_by_threads.hpp"
#include "abi/libc/threads/key_table.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "base/program_call.hpp"
#include "dsm/memory/kernel_calls.hpp"
#include "omp/process/system_libraries.hpp"

HIROBA_REAL(pthread_key_create);
HIROBA_REAL(pthread_key_delete);
HIROBA_REAL(pthread_getspecific);
HIROBA_REAL(pthread_setspecific);

namespace hiroba::abi {
namespace {

/// One thread's, mapped at its first value, since a handler may set it.
struct KeyValues {
    struct Value {
        std::uint64_t life;  ///< of the key when it was set
        void* value;
    };
    unsigned rows = 0;  ///< below lie all that were set
    Value of[program_keys];
};

/// Values of the thread that runs libraries' constructors.
constinit std::atomic<KeyValues*> early_values{nullptr};

/// libc's key whose value is a thread's KeyValues, and by which libc tells of its end.
pthread_key_t values_key() noexcept {
    // 1 + the key; 0: not made. No function static: a handler may come here.
    static constinit std::atomic<unsigned> made{0};
    unsigned known = made.load(std::memory_order_acquire);
    if (known != 0) [[likely]]
        return known - 1;
    pthread_key_t own = 0;
    if (real_pthread_key_create(&own, [](void* values) {
            real_pthread_setspecific(values_key(), values);  // libc has just taken it away
            end_key_values();
        }) != 0)
        die(exit_environment, "libc has no thread-specific key left for those of the program");
    if (made.compare_exchange_strong(known, own + 1)) return own;
    real_pthread_key_delete(own);
    return known - 1;
}

KeyValues* known_values() noexcept {
    return static_cast<KeyValues*>(real_pthread_getspecific(values_key()));
}

/// nullptr: there is no memory.
KeyValues* own_values() noexcept {
    if (KeyValues* const values = known_values()) return values;
    const long address = dsm::kernel_call(SYS_mmap, 0, sizeof(KeyValues), PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (dsm::kernel_failed(address)) return nullptr;
    auto* const values = reinterpret_cast<KeyValues*>(address);
    real_pthread_setspecific(values_key(), values);
    KeyValues* none = nullptr;
    if (world() == nullptr) early_values.compare_exchange_strong(none, values);
    return values;
}

/// Whether the key is of the program: by where it is kept, for a function that ends in the call
/// shows its own caller, which may be anyone's.
bool is_key_of_program(const pthread_key_t* key, const void* return_address) noexcept {
    if (is_program_call(return_address)) return true;
    if (is_own_code(return_address)) return false;
    if (is_program_memory(key)) return true;
    dl_find_object found;
    if (_dl_find_object(const_cast<pthread_key_t*>(key), &found) == 0)
        return !is_own_code(key) && !omp::is_system_code(key);
    // On a stack, or in memory of the program's own: an object that has it as a member.
    return caller_of(return_address) == Caller::program;
}

int create_key(pthread_key_t* key, KeyDestructor destructor, const void* return_address) noexcept {
    if (!is_spread()) return real_pthread_key_create(key, destructor);
    if (is_key_of_program(key, return_address)) {
        const auto row = take_key_row(destructor);
        if (!row) return EAGAIN;
        *key = key_of_row(*row);
        return 0;
    }
    const int failure = real_pthread_key_create(key, destructor);
    if (failure == 0 && row_of_key(*key))
        die(exit_environment,
            "system libraries have made more than %u thread-specific keys: the others are the "
            "program's. Run on one node (-n 1)",
            first_program_key);
    return failure;
}

int set_value(unsigned row, void* value) noexcept {
    const std::uint64_t life = key_row(row).life;
    if ((life & 1) == 0) return EINVAL;
    KeyValues* const values = value != nullptr ? own_values() : known_values();
    if (values == nullptr) return value != nullptr ? ENOMEM : 0;
    values->of[row] = {life, value};
    values->rows = std::max(values->rows, row + 1);
    return 0;
}

void* value_of(unsigned row) noexcept {
    const KeyValues* const values = known_values();
    if (values == nullptr) return nullptr;
    const KeyValues::Value& own = values->of[row];
    return own.value != nullptr && own.life == key_row(row).life ? own.value : nullptr;
}

/// Whether there was one: destroying it may set others.
bool destroy_all(KeyValues& values) noexcept {
    bool any = false;
    for (unsigned row = 0; row < values.rows; ++row) {
        void* const value = std::exchange(values.of[row].value, nullptr);
        if (value == nullptr) continue;
        any = true;
        const KeyRow key = key_row(row);
        if (key.life == values.of[row].life && key.destructor != nullptr)
            call_program(key.destructor, value);
    }
    return any;
}

/// What libc's and C11's functions return, in turn.
int told_by_thread(int error) noexcept {
    if (error == ENOMEM) return thrd_nomem;
    return error == 0 ? thrd_success : thrd_error;
}

}  // namespace

void end_key_values() noexcept {
    KeyValues* const values = known_values();
    if (values == nullptr) return;
    for (int round = 0; round < PTHREAD_DESTRUCTOR_ITERATIONS; ++round)
        if (!destroy_all(*values)) break;
    real_pthread_setspecific(values_key(), nullptr);
    dsm::kernel_call(SYS_munmap, values, sizeof *values);
}

void inherit_key_values() noexcept {
    if (KeyValues* const values = early_values.load())
        real_pthread_setspecific(values_key(), values);
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int pthread_key_create(pthread_key_t* key, void (*destructor)(void*)) noexcept {
    return create_key(key, destructor, __builtin_return_address(0));
}
/// libc's second name, which libraries look for to learn whether there are threads.
int __pthread_key_create(pthread_key_t* key, void (*destructor)(void*)) noexcept {
    return create_key(key, destructor, __builtin_return_address(0));
}
int pthread_key_delete(pthread_key_t key) noexcept {
    const auto row = is_spread() ? row_of_key(key) : std::nullopt;
    if (!row) return real_pthread_key_delete(key);
    return free_key_row(*row) ? 0 : EINVAL;
}
void* pthread_getspecific(pthread_key_t key) noexcept {
    const auto row = is_spread() ? row_of_key(key) : std::nullopt;
    return row ? value_of(*row) : real_pthread_getspecific(key);
}
int pthread_setspecific(pthread_key_t key, const void* value) noexcept {
    note_kept_by_caller(__builtin_return_address(0));
    const auto row = is_spread() ? row_of_key(key) : std::nullopt;
    return row ? set_value(*row, const_cast<void*>(value)) : real_pthread_setspecific(key, value);
}

/// The names of old programs.
void* __pthread_getspecific(pthread_key_t key) noexcept { return pthread_getspecific(key); }
int __pthread_setspecific(pthread_key_t key, const void* value) noexcept {
    note_kept_by_caller(__builtin_return_address(0));
    return pthread_setspecific(key, value);
}

int tss_create(tss_t* key, tss_dtor_t destructor) {
    return told_by_thread(create_key(key, destructor, __builtin_return_address(0)));
}
void tss_delete(tss_t key) { pthread_key_delete(key); }
void* tss_get(tss_t key) { return pthread_getspecific(key); }
int tss_set(tss_t key, void* value) {
    note_kept_by_caller(__builtin_return_address(0));
    return told_by_thread(pthread_setspecific(key, value));
}

}  // extern "C"
