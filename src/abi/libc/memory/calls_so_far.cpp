// SPDX-License-Identifier: BSD-3-Clause
// Role: functions of libc that go on where the process's last call has stopped, in a variable of
// libc's own: strtok(), conversions of characters without a state of the caller's, re_exec().
// Invariant: that variable is the job's (KeptObjects). Threads that share it synchronize, as they
// must alone.
#include <regex.h>
#include <string.h>
#include <uchar.h>
#include <wchar.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "abi/libc/handles/kept_objects.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"

// Declared by glibc where _REGEX_RE_COMP asks for them.
extern "C" {
char* re_comp(const char*);
int re_exec(const char*);
}

HIROBA_REAL(strtok);
HIROBA_REAL(re_comp);
HIROBA_REAL(re_exec);

using namespace hiroba::abi;

#define HIROBA_CALLER __builtin_return_address(0)

namespace {

bool serves_program(const void* return_address) noexcept {
    return spans_nodes() && is_for_program(return_address);
}

/// Each function has a state of its own.
enum Conversion : std::size_t {
    len,
    to_wide,
    from_wide,
    texts,
    wide_texts,
    n_texts,
    n_wide_texts,
    to_16,
    from_16,
    to_32,
    from_32
};

mbstate_t* state_for(mbstate_t* given, Conversion which, const void* return_address) noexcept {
    if (given != nullptr || !serves_program(return_address)) return given;
    return &publish_kept_objects()->calls.shift[which];
}

/// The expression that this node's libc knows.
constinit std::atomic<std::uint64_t> known_expression{0};

}  // namespace

#define HIROBA_CONVERTS(which, name, parameters, ...)                    \
    HIROBA_REAL(name);                                                   \
    size_t name parameters noexcept {                                    \
        mbstate_t* const state = state_for(given, which, HIROBA_CALLER); \
        return real_##name(__VA_ARGS__, state);                          \
    }

#pragma GCC visibility push(default)
extern "C" {

char* strtok(char* text, const char* delimiters) noexcept {
    if (!serves_program(HIROBA_CALLER)) return real_strtok(text, delimiters);
    return strtok_r(text, delimiters, &publish_kept_objects()->calls.token);
}

HIROBA_CONVERTS(len, mbrlen, (const char* text, size_t bytes, mbstate_t* given), text, bytes)
HIROBA_CONVERTS(to_wide, mbrtowc, (wchar_t * to, const char* text, size_t bytes, mbstate_t* given),
                to, text, bytes)
HIROBA_CONVERTS(from_wide, wcrtomb, (char* to, wchar_t from, mbstate_t* given), to, from)
HIROBA_CONVERTS(texts, mbsrtowcs, (wchar_t * to, const char** from, size_t room, mbstate_t* given),
                to, from, room)
HIROBA_CONVERTS(wide_texts, wcsrtombs,
                (char* to, const wchar_t** from, size_t room, mbstate_t* given), to, from, room)
HIROBA_CONVERTS(n_texts, mbsnrtowcs,
                (wchar_t * to, const char** from, size_t bytes, size_t room, mbstate_t* given), to,
                from, bytes, room)
HIROBA_CONVERTS(n_wide_texts, wcsnrtombs,
                (char* to, const wchar_t** from, size_t count, size_t room, mbstate_t* given), to,
                from, count, room)
HIROBA_CONVERTS(to_16, mbrtoc16, (char16_t* to, const char* text, size_t bytes, mbstate_t* given),
                to, text, bytes)
HIROBA_CONVERTS(from_16, c16rtomb, (char* to, char16_t from, mbstate_t* given), to, from)
HIROBA_CONVERTS(to_32, mbrtoc32, (char32_t* to, const char* text, size_t bytes, mbstate_t* given),
                to, text, bytes)
HIROBA_CONVERTS(from_32, c32rtomb, (char* to, char32_t from, mbstate_t* given), to, from)

char* re_comp(const char* text) {
    char* const failure = real_re_comp(text);
    if (text == nullptr || failure != nullptr || !serves_program(HIROBA_CALLER)) return failure;
    const std::size_t bytes = strlen(text) + 1;
    void* const copy = allocate_for_program(bytes, 1, false);
    if (copy == nullptr) return const_cast<char*>("Memory exhausted");
    const KeptObjectsGuard kept;
    release_block(kept->expression);
    kept->expression = static_cast<char*>(memcpy(copy, text, bytes));
    known_expression.store(++kept->expressions);
    return nullptr;
}

int re_exec(const char* text) {
    if (serves_program(HIROBA_CALLER)) {
        const KeptObjectsGuard kept;
        if (known_expression.load() != kept->expressions) {
            real_re_comp(static_cast<const char*>(kept->expression));
            known_expression.store(kept->expressions);
        }
    }
    return real_re_exec(text);
}

}  // extern "C"
