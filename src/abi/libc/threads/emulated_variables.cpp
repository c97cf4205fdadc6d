// SPDX-License-Identifier: BSD-3-Clause
// Role: thread-local variables of code built with -femulated-tls, which asks libgcc for the address
// of each. libgcc numbers the variables by itself on each node and has their memory from libc,
// private to the node; copyin reads another thread's.
// Invariant: a thread's variable lies in global memory, and is known by the address of the
// variable's description, which is one on all nodes. The descriptions are never written.
#include <pthread.h>
#include <string.h>

#include <cstddef>
#include <cstdint>

#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/threads/kept_by_threads.hpp"
#include "base/fatal.hpp"

namespace {

/// What the compiler emits for each variable (libgcc/emutls.c).
struct Description {
    std::size_t bytes;
    std::size_t alignment;
    void* place;          ///< libgcc's
    const void* initial;  ///< null: zeros
};

}  // namespace

extern "C" void* __emutls_get_address(Description* description);

HIROBA_REAL(__emutls_get_address);

namespace hiroba::abi {
namespace {

struct Variable {
    const Description* description = nullptr;
    void* block = nullptr;
};

/// One thread's, in libc's heap: open addressing, at most half full.
struct Variables {
    Variable* rows = nullptr;
    std::size_t room = 0;  ///< a power of two
    std::size_t count = 0;
    int rounds_left = 0;  ///< of destructors that may still use them
};
constinit thread_local Variables variables;

std::size_t first_row(const Description* description, std::size_t room) noexcept {
    return reinterpret_cast<std::uintptr_t>(description) / sizeof(Description) % room;
}

Variable& row_of(const Description* description) noexcept {
    std::size_t i = first_row(description, variables.room);
    while (variables.rows[i].description != nullptr && variables.rows[i].description != description)
        i = (i + 1) % variables.room;
    return variables.rows[i];
}

void free_variables(void* of_thread) noexcept;

/// libgcc, too, keeps them for the destructors that run before the last round.
void free_at_end() noexcept {
    static const pthread_key_t key = [] {
        pthread_key_t made;
        if (pthread_key_create(&made, &free_variables) != 0)
            die(exit_environment, "no thread-specific key is left for emulated thread-local data");
        return made;
    }();
    pthread_setspecific(key, &variables);
}

void free_variables(void*) noexcept {
    if (variables.rounds_left-- > 0) return free_at_end();
    for (std::size_t i = 0; i < variables.room; ++i)
        if (variables.rows[i].block != nullptr) give_back(variables.rows[i].block);
    libc_free(variables.rows);
    variables = {};
}

void make_room() noexcept {
    const Variables before = variables;
    variables.room = before.room == 0 ? 32 : 2 * before.room;
    variables.rows = static_cast<Variable*>(libc_calloc(variables.room, sizeof(Variable)));
    if (variables.rows == nullptr)
        die(exit_environment, "no memory for %lu emulated thread-local variables", before.count);
    for (std::size_t i = 0; i < before.room; ++i)
        if (before.rows[i].description != nullptr)
            row_of(before.rows[i].description) = before.rows[i];
    libc_free(before.rows);
    if (before.room != 0) return;
    variables.rounds_left = 2;
    free_at_end();
}

void* make_block(const Description& description) noexcept {
    void* const block = allocate_for_program(description.bytes, description.alignment,
                                             description.initial == nullptr);
    if (block == nullptr) {
        die(exit_environment, "no room for %lu bytes of a thread-local variable: set HIROBA_HEAP",
            description.bytes);
    }
    if (description.initial != nullptr) memcpy(block, description.initial, description.bytes);
    return block;
}

void* address_of(const Description* description) noexcept {
    if (variables.room != 0) {
        const Variable& known = row_of(description);
        if (known.block != nullptr) return known.block;
    }
    if (2 * (variables.count + 1) > variables.room) make_room();
    Variable& row = row_of(description);
    row = {description, make_block(*description)};
    ++variables.count;
    return row.block;
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" void* __emutls_get_address(Description* description) {
    note_kept_by_caller(__builtin_return_address(0));
    return is_spread() ? address_of(description) : real___emutls_get_address(description);
}
