// SPDX-License-Identifier: BSD-3-Clause
// Role: functions of libc that hand malloc'ed memory to the program. libc is the caller of that
// malloc, so the block is the node's; what the program gets must be its own.
// Invariant: libc works on its own memory as ever; only the finished result is moved. Nothing libc
// keeps for itself (a FILE's buffer, a locale) can become global that way.
// The headers' inline versions would stand in the way of these definitions.
#ifndef __NO_INLINE__
#define __NO_INLINE__ 1
#endif
#include <dirent.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include <cerrno>
#include <cstddef>

#include "abi/libc/files/foreign_streams.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"

#pragma GCC visibility push(default)

extern "C" {
int __vasprintf_chk(char**, int, const char*, va_list) noexcept;
char* __realpath_chk(const char*, char*, std::size_t) noexcept;
}

using namespace hiroba;

HIROBA_REAL(vasprintf);
HIROBA_REAL(__vasprintf_chk);
HIROBA_REAL(getdelim);
HIROBA_REAL(realpath);
HIROBA_REAL(__realpath_chk);
HIROBA_REAL(canonicalize_file_name);
HIROBA_REAL(getcwd);
HIROBA_REAL(get_current_dir_name);
HIROBA_REAL(tempnam);
HIROBA_REAL(scandir);
HIROBA_REAL(glob);

#define HIROBA_CALLER __builtin_return_address(0)

namespace {

bool serves_program(const void* return_address) noexcept {
    return abi::is_spread() && abi::is_for_program(return_address);
}

/// The program's copy of a block of libc's, which is freed. nullptr (ENOMEM) when there is no room.
void* hand_over(void* made, std::size_t bytes) noexcept {
    if (made == nullptr) return nullptr;
    void* const copy = abi::allocate_for_program(bytes, 16, false);
    if (copy != nullptr) memcpy(copy, made, bytes);
    abi::libc_free(made);
    return copy;
}

char* hand_over_text(char* made) noexcept {
    return made == nullptr ? nullptr : static_cast<char*>(hand_over(made, strlen(made) + 1));
}

char* duplicate(const char* text, std::size_t bytes, const void* return_address) noexcept {
    auto* const copy = static_cast<char*>(abi::allocate(bytes + 1, return_address));
    if (copy == nullptr) return nullptr;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    return copy;
}

/// `printed` is what a real vasprintf() returned, `*text` what it made.
int hand_over_printed(char** text, int printed) noexcept {
    if (printed < 0) return printed;
    *text = static_cast<char*>(hand_over(*text, static_cast<std::size_t>(printed) + 1));
    return *text == nullptr ? -1 : printed;
}

int print(char** text, const char* format, va_list arguments, const void* return_address) noexcept {
    const bool ours = serves_program(return_address);
    char* made = nullptr;
    int printed = real_vasprintf(ours ? &made : text, format, arguments);
    if (!ours) return printed;
    printed = hand_over_printed(&made, printed);
    if (printed >= 0) *text = made;
    return printed;
}

int print_checked(char** text, int flag, const char* format, va_list arguments,
                  const void* return_address) noexcept {
    const bool ours = serves_program(return_address);
    char* made = nullptr;
    int printed = real___vasprintf_chk(ours ? &made : text, flag, format, arguments);
    if (!ours) return printed;
    printed = hand_over_printed(&made, printed);
    if (printed >= 0) *text = made;
    return printed;
}

/// getdelim() makes a line's first buffer itself and enlarges any other with realloc(), which knows
/// a program's block by its address: so the first one is put there before.
ssize_t read_line(char** line, std::size_t* room, int delimiter, FILE* from,
                  const void* return_address) noexcept {
    constexpr std::size_t first_bytes = 120;  // as glibc
    if (line != nullptr && room != nullptr && (*line == nullptr || *room == 0) &&
        serves_program(return_address)) {
        *line = static_cast<char*>(abi::allocate_for_program(first_bytes, 16, false));
        if (*line == nullptr) return -1;
        *room = first_bytes;
    }
    if (abi::is_far(from)) return abi::get_line_far(line, room, delimiter, from);
    return real_getdelim(line, room, delimiter, abi::near(from));
}

char* working_directory(char* buffer, std::size_t bytes) noexcept {
    if (buffer != nullptr && bytes == 0) {
        errno = EINVAL;
        return nullptr;
    }
    // The kernel fills a buffer of libc's: the program's may lie in pages that it cannot reach.
    char* const made = real_getcwd(static_cast<char*>(nullptr), std::size_t{0});
    if (made == nullptr) return nullptr;
    const std::size_t needed = strlen(made) + 1;
    if (bytes != 0 && needed > bytes) {
        abi::libc_free(made);
        errno = ERANGE;
        return nullptr;
    }
    if (buffer == nullptr) {
        buffer =
            static_cast<char*>(abi::allocate_for_program(bytes == 0 ? needed : bytes, 16, false));
    }
    if (buffer != nullptr) memcpy(buffer, made, needed);
    abi::libc_free(made);
    return buffer;
}

using DirectoryEntry = struct dirent;

/// Moves the `count` entries and their list; on failure all of them are freed.
int hand_over_entries(DirectoryEntry*** list, DirectoryEntry** made, int count) noexcept {
    bool complete = true;
    for (int i = 0; i < count; ++i) {
        const std::size_t bytes = offsetof(DirectoryEntry, d_name) + strlen(made[i]->d_name) + 1;
        made[i] = static_cast<DirectoryEntry*>(hand_over(made[i], bytes));
        complete &= made[i] != nullptr;
    }
    DirectoryEntry** moved = nullptr;
    if (complete) {
        const std::size_t bytes = static_cast<std::size_t>(count) * sizeof made[0];
        moved = static_cast<DirectoryEntry**>(abi::allocate_for_program(bytes, 16, false));
    }
    if (moved != nullptr) {
        memcpy(moved, made, static_cast<std::size_t>(count) * sizeof made[0]);
        *list = moved;
    } else {
        for (int i = 0; i < count; ++i) abi::release_block(made[i]);
    }
    abi::libc_free(made);
    return moved != nullptr ? count : -1;
}

using Filter = int (*)(const DirectoryEntry*);
using Compare = int (*)(const DirectoryEntry**, const DirectoryEntry**);

int scan(const char* directory, DirectoryEntry*** list, Filter filter, Compare compare,
         const void* return_address) {
    if (!serves_program(return_address)) return real_scandir(directory, list, filter, compare);
    DirectoryEntry** made = nullptr;
    const int count = real_scandir(directory, &made, filter, compare);
    return count < 0 ? count : hand_over_entries(list, made, count);
}

/// Moves what real glob() has made to the program: its list, and the paths that are new in it. A
/// path without room stays the node's.
void hand_over_paths(glob_t& found) noexcept {
    if (found.gl_pathv == nullptr) return;
    const std::size_t before = (found.gl_flags & GLOB_DOOFFS) != 0 ? found.gl_offs : 0;
    const std::size_t count = before + found.gl_pathc + 1;  // the last one is nullptr
    if (!abi::is_program_memory(found.gl_pathv)) {
        void* const list = abi::allocate_for_program(count * sizeof(char*), 16, false);
        if (list == nullptr) return;
        memcpy(list, found.gl_pathv, count * sizeof(char*));
        abi::libc_free(found.gl_pathv);
        found.gl_pathv = static_cast<char**>(list);
    }
    for (std::size_t i = before; i + 1 < count; ++i) {
        char* const path = found.gl_pathv[i];
        if (abi::is_program_memory(path)) continue;
        const std::size_t bytes = strlen(path) + 1;
        void* const copy = abi::allocate_for_program(bytes, 1, false);
        if (copy == nullptr) return;
        found.gl_pathv[i] = static_cast<char*>(memcpy(copy, path, bytes));
        abi::libc_free(path);
    }
}

int find_paths(const char* pattern, int flags, int (*on_error)(const char*, int), glob_t* found,
               const void* return_address) {
    const int outcome = real_glob(pattern, flags, on_error, found);
    if ((outcome == 0 || outcome == GLOB_NOSPACE || outcome == GLOB_ABORTED) &&
        serves_program(return_address))
        hand_over_paths(*found);
    return outcome;
}

}  // namespace

extern "C" {

char* strdup(const char* text) noexcept { return duplicate(text, strlen(text), HIROBA_CALLER); }
char* __strdup(const char* text) noexcept { return duplicate(text, strlen(text), HIROBA_CALLER); }
char* strndup(const char* text, std::size_t bytes) noexcept {
    return duplicate(text, strnlen(text, bytes), HIROBA_CALLER);
}
char* __strndup(const char* text, std::size_t bytes) noexcept {
    return duplicate(text, strnlen(text, bytes), HIROBA_CALLER);
}
wchar_t* wcsdup(const wchar_t* text) noexcept {
    const std::size_t bytes = (wcslen(text) + 1) * sizeof(wchar_t);
    void* const copy = abi::allocate(bytes, HIROBA_CALLER);
    return copy == nullptr ? nullptr : static_cast<wchar_t*>(memcpy(copy, text, bytes));
}

int vasprintf(char** text, const char* format, va_list arguments) noexcept {
    return print(text, format, arguments, HIROBA_CALLER);
}
int asprintf(char** text, const char* format, ...) noexcept {
    va_list arguments;
    va_start(arguments, format);
    const int printed = print(text, format, arguments, HIROBA_CALLER);
    va_end(arguments);
    return printed;
}
int __vasprintf_chk(char** text, int flag, const char* format, va_list arguments) noexcept {
    return print_checked(text, flag, format, arguments, HIROBA_CALLER);
}
int __asprintf_chk(char** text, int flag, const char* format, ...) noexcept {
    va_list arguments;
    va_start(arguments, format);
    const int printed = print_checked(text, flag, format, arguments, HIROBA_CALLER);
    va_end(arguments);
    return printed;
}

ssize_t getline(char** line, std::size_t* room, FILE* from) {
    return read_line(line, room, '\n', from, HIROBA_CALLER);
}
ssize_t getdelim(char** line, std::size_t* room, int delimiter, FILE* from) {
    return read_line(line, room, delimiter, from, HIROBA_CALLER);
}
ssize_t __getdelim(char** line, std::size_t* room, int delimiter, FILE* from) {
    return read_line(line, room, delimiter, from, HIROBA_CALLER);
}

char* realpath(const char* path, char* resolved) noexcept {
    char* const made = real_realpath(path, resolved);
    return resolved != nullptr || !serves_program(HIROBA_CALLER) ? made : hand_over_text(made);
}
char* __realpath_chk(const char* path, char* resolved, std::size_t room) noexcept {
    char* const made = real___realpath_chk(path, resolved, room);
    return resolved != nullptr || !serves_program(HIROBA_CALLER) ? made : hand_over_text(made);
}
char* canonicalize_file_name(const char* path) noexcept {
    char* const made = real_canonicalize_file_name(path);
    return serves_program(HIROBA_CALLER) ? hand_over_text(made) : made;
}
char* getcwd(char* buffer, std::size_t bytes) noexcept {
    return serves_program(HIROBA_CALLER) ? working_directory(buffer, bytes)
                                         : real_getcwd(buffer, bytes);
}
char* get_current_dir_name() noexcept {
    char* const made = real_get_current_dir_name();
    return serves_program(HIROBA_CALLER) ? hand_over_text(made) : made;
}
char* tempnam(const char* directory, const char* prefix) noexcept {
    char* const made = real_tempnam(directory, prefix);
    return serves_program(HIROBA_CALLER) ? hand_over_text(made) : made;
}

int scandir(const char* directory, struct dirent*** list, Filter filter, Compare compare) {
    return scan(directory, list, filter, compare, HIROBA_CALLER);
}
int glob(const char* pattern, int flags, int (*on_error)(const char*, int), glob_t* found) {
    return find_paths(pattern, flags, on_error, found, HIROBA_CALLER);
}
// On this machine's ABI both names mean one structure.
int scandir64(const char* directory, struct dirent64*** list, int (*filter)(const struct dirent64*),
              int (*compare)(const struct dirent64**, const struct dirent64**)) {
    static_assert(sizeof(struct dirent64) == sizeof(struct dirent));
    return scan(directory, reinterpret_cast<struct dirent***>(list),
                reinterpret_cast<Filter>(filter), reinterpret_cast<Compare>(compare),
                HIROBA_CALLER);
}
int glob64(const char* pattern, int flags, int (*on_error)(const char*, int), glob64_t* found) {
    static_assert(sizeof(glob64_t) == sizeof(glob_t));
    return find_paths(pattern, flags, on_error, reinterpret_cast<glob_t*>(found), HIROBA_CALLER);
}

}  // extern "C"
