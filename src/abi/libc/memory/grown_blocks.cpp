// SPDX-License-Identifier: BSD-3-Clause
// Role: functions of libc that let the program's own structures grow by malloc(): obstacks, vectors
// of texts (argz, envz), what a child shall do, attributes of threads, GNU's regular expressions.
// All of it is plain data, so libc makes it in the program's memory (ProgramMemory).
// Invariant: each such function is here, for one that is not would go on in libc's heap.
// The headers' inline versions would stand in the way of these definitions.
#ifndef __NO_INLINE__
#define __NO_INLINE__ 1
#endif
#include <argz.h>
#include <envz.h>
#include <obstack.h>
#include <pthread.h>
#include <regex.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>

#include <cstddef>
#include <optional>

#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/sync/sync_objects.hpp"

// The headers' macros would stand in the way of these definitions.
#undef obstack_free

extern "C" {
int __obstack_printf_chk(obstack*, int, const char*, ...) noexcept;
int __obstack_vprintf_chk(obstack*, int, const char*, va_list) noexcept;
}

using namespace hiroba::abi;

#define HIROBA_CALLER __builtin_return_address(0)
#define HIROBA_GROWS(result, name, parameters, arguments) \
    HIROBA_REAL(name);                                    \
    result name parameters noexcept {                     \
        const ProgramMemory memory{HIROBA_CALLER};        \
        return real_##name arguments;                     \
    }

namespace {

/// A compiled expression grows while it is used, and libc's lock in it is this node's alone.
class ExpressionTurn {
public:
    explicit ExpressionTurn(const re_pattern_buffer* pattern) noexcept {
        const void* const compiled = pattern->__REPB_PREFIX(buffer);
        if (spans_nodes() && is_program_memory(compiled)) key_ = key_of(compiled);
        if (key_) world()->sync->lock_mutex(*key_, hiroba::dsm::MutexType::normal, {});
    }
    ExpressionTurn(const ExpressionTurn&) = delete;
    ExpressionTurn& operator=(const ExpressionTurn&) = delete;
    ~ExpressionTurn() {
        if (key_) world()->sync->unlock_mutex(*key_, hiroba::dsm::MutexType::normal);
    }

private:
    std::optional<hiroba::dsm::SyncKey> key_;
};

}  // namespace

#define HIROBA_MATCHES(name, parameters, arguments) \
    HIROBA_REAL(name);                              \
    regoff_t name parameters {                      \
        const ExpressionTurn turn{pattern};         \
        const ProgramMemory memory{HIROBA_CALLER};  \
        return real_##name arguments;               \
    }

#pragma GCC visibility push(default)
extern "C" {

HIROBA_GROWS(int, _obstack_begin,
             (struct obstack * stack, int bytes, int alignment, void* (*allocate)(long),
              void (*release)(void*)),
             (stack, bytes, alignment, allocate, release))
HIROBA_GROWS(int, _obstack_begin_1,
             (struct obstack * stack, int bytes, int alignment, void* (*allocate)(void*, long),
              void (*release)(void*, void*), void* argument),
             (stack, bytes, alignment, allocate, release, argument))
HIROBA_GROWS(void, _obstack_newchunk, (struct obstack * stack, int bytes), (stack, bytes))
HIROBA_GROWS(int, obstack_vprintf, (struct obstack * stack, const char* format, va_list list),
             (stack, format, list))
HIROBA_GROWS(int, __obstack_vprintf_chk,
             (struct obstack * stack, int flag, const char* format, va_list list),
             (stack, flag, format, list))
int obstack_printf(struct obstack* stack, const char* format, ...) noexcept {
    const ProgramMemory memory{HIROBA_CALLER};
    va_list list;
    va_start(list, format);
    const int printed = real_obstack_vprintf(stack, format, list);
    va_end(list);
    return printed;
}
int __obstack_printf_chk(struct obstack* stack, int flag, const char* format, ...) noexcept {
    const ProgramMemory memory{HIROBA_CALLER};
    va_list list;
    va_start(list, format);
    const int printed = real___obstack_vprintf_chk(stack, flag, format, list);
    va_end(list);
    return printed;
}

HIROBA_GROWS(error_t, argz_create, (char* const texts[], char** argz, size_t* bytes),
             (texts, argz, bytes))
HIROBA_GROWS(error_t, argz_create_sep, (const char* text, int sep, char** argz, size_t* bytes),
             (text, sep, argz, bytes))
HIROBA_GROWS(error_t, argz_append, (char** argz, size_t* bytes, const char* text, size_t more),
             (argz, bytes, text, more))
HIROBA_GROWS(error_t, argz_add, (char** argz, size_t* bytes, const char* text), (argz, bytes, text))
HIROBA_GROWS(error_t, argz_add_sep, (char** argz, size_t* bytes, const char* text, int sep),
             (argz, bytes, text, sep))
HIROBA_GROWS(error_t, argz_insert, (char** argz, size_t* bytes, char* before, const char* text),
             (argz, bytes, before, text))
HIROBA_GROWS(error_t, argz_replace,
             (char** argz, size_t* bytes, const char* text, const char* by, unsigned* count),
             (argz, bytes, text, by, count))
HIROBA_GROWS(error_t, envz_add, (char** envz, size_t* bytes, const char* name, const char* value),
             (envz, bytes, name, value))
HIROBA_GROWS(error_t, envz_merge,
             (char** envz, size_t* bytes, const char* other, size_t more, int overrides),
             (envz, bytes, other, more, overrides))

using Actions = posix_spawn_file_actions_t;
HIROBA_GROWS(int, posix_spawn_file_actions_addopen,
             (Actions * actions, int fd, const char* path, int flags, mode_t mode),
             (actions, fd, path, flags, mode))
HIROBA_GROWS(int, posix_spawn_file_actions_addclose, (Actions * actions, int fd), (actions, fd))
HIROBA_GROWS(int, posix_spawn_file_actions_adddup2, (Actions * actions, int fd, int as),
             (actions, fd, as))
HIROBA_GROWS(int, posix_spawn_file_actions_addchdir_np, (Actions * actions, const char* path),
             (actions, path))
HIROBA_GROWS(int, posix_spawn_file_actions_addfchdir_np, (Actions * actions, int fd), (actions, fd))
HIROBA_GROWS(int, posix_spawn_file_actions_addclosefrom_np, (Actions * actions, int fd),
             (actions, fd))

HIROBA_GROWS(int, pthread_attr_setaffinity_np,
             (pthread_attr_t * attributes, size_t bytes, const cpu_set_t* set),
             (attributes, bytes, set))
HIROBA_GROWS(int, pthread_attr_setsigmask_np, (pthread_attr_t * attributes, const sigset_t* mask),
             (attributes, mask))

// GNU's own calls; regcomp() is a handle (regular_expressions.cpp).
HIROBA_REAL(re_compile_pattern);
const char* re_compile_pattern(const char* text, size_t bytes, struct re_pattern_buffer* pattern) {
    const ProgramMemory memory{HIROBA_CALLER};
    return real_re_compile_pattern(text, bytes, pattern);
}
HIROBA_REAL(re_compile_fastmap);
int re_compile_fastmap(struct re_pattern_buffer* pattern) {
    const ExpressionTurn turn{pattern};
    const ProgramMemory memory{HIROBA_CALLER};
    return real_re_compile_fastmap(pattern);
}
HIROBA_MATCHES(re_search,
               (struct re_pattern_buffer * pattern, const char* text, regoff_t bytes,
                regoff_t start, regoff_t range, struct re_registers* registers),
               (pattern, text, bytes, start, range, registers))
HIROBA_MATCHES(re_match,
               (struct re_pattern_buffer * pattern, const char* text, regoff_t bytes,
                regoff_t start, struct re_registers* registers),
               (pattern, text, bytes, start, registers))
HIROBA_MATCHES(re_search_2,
               (struct re_pattern_buffer * pattern, const char* a, regoff_t a_bytes, const char* b,
                regoff_t b_bytes, regoff_t start, regoff_t range, struct re_registers* registers,
                regoff_t stop),
               (pattern, a, a_bytes, b, b_bytes, start, range, registers, stop))
HIROBA_MATCHES(re_match_2,
               (struct re_pattern_buffer * pattern, const char* a, regoff_t a_bytes, const char* b,
                regoff_t b_bytes, regoff_t start, struct re_registers* registers, regoff_t stop),
               (pattern, a, a_bytes, b, b_bytes, start, registers, stop))

}  // extern "C"
