// SPDX-License-Identifier: BSD-3-Clause
// Role: functions of stdio with wide characters. A stream that another node opened is worked on
// there, character by character as here: the owner converts them, for it has the stream's state.
// Invariant: as standard_calls.cpp: a stream goes to the node that has it. Scanning one of another
// node's is refused: it would need that state here.
#ifndef __NO_INLINE__
#define __NO_INLINE__ 1
#endif
#include <stdarg.h>
#include <stdio.h>
#include <wchar.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "abi/libc/files/foreign_streams.hpp"
#include "abi/libc/files/remote_files.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"

extern "C" {
int __vfwprintf_chk(FILE*, int, const wchar_t*, va_list);
int __isoc99_vfwscanf(FILE*, const wchar_t*, va_list);
wchar_t* __fgetws_chk(wchar_t*, size_t, int, FILE*);
wchar_t* __fgetws_unlocked_chk(wchar_t*, size_t, int, FILE*);
}

HIROBA_REAL(vfwprintf);
HIROBA_REAL(__vfwprintf_chk);
HIROBA_REAL(__isoc99_vfwscanf);
HIROBA_REAL(fputws);
HIROBA_REAL(fputws_unlocked);
HIROBA_REAL(fputwc);
HIROBA_REAL(fputwc_unlocked);
HIROBA_REAL(putwc);
HIROBA_REAL(putwc_unlocked);
HIROBA_REAL(fgetws);
HIROBA_REAL(fgetws_unlocked);
HIROBA_REAL(fgetwc);
HIROBA_REAL(fgetwc_unlocked);
HIROBA_REAL(getwc);
HIROBA_REAL(getwc_unlocked);
HIROBA_REAL(ungetwc);
HIROBA_REAL(fwide);

namespace hiroba::abi {
namespace {

/// All of them or an error: -1 and errno.
int write_far(FILE* stream, const wchar_t* text, std::size_t count) noexcept {
    const std::size_t most = world()->files->chunk_bytes() / sizeof(wchar_t);
    while (count != 0) {
        const std::size_t piece = std::min(count, most);
        const std::int64_t result = ask_owner(stream, StreamCall::write_wide, 0, 0,
                                              std::as_bytes(std::span(text, piece)), {});
        if (result < 0) {
            errno = static_cast<int>(-result);
            return -1;
        }
        text += piece;
        count -= piece;
    }
    return 0;
}

/// Up to `count`, or up to the end of the line. @return how many
std::size_t read_far(FILE* stream, wchar_t* text, std::size_t count) noexcept {
    const std::size_t most = world()->files->chunk_bytes() / sizeof(wchar_t);
    std::size_t done = 0;
    while (done < count) {
        const std::size_t piece = std::min(count - done, most);
        const std::int64_t result =
            ask_owner(stream, StreamCall::read_wide, static_cast<long>(piece), 0, {},
                      std::as_writable_bytes(std::span(text + done, piece)));
        if (result < 0) errno = static_cast<int>(-result);
        if (result <= 0) break;
        done += static_cast<std::size_t>(result);
        if (text[done - 1] == L'\n' || static_cast<std::size_t>(result) < piece) break;
    }
    return done;
}

/// Formats in libc's heap, which tells no size beforehand.
int print_far(FILE* stream, const wchar_t* format, va_list list) noexcept {
    for (std::size_t room = 512;; room *= 2) {
        auto* const text = static_cast<wchar_t*>(libc_malloc(room * sizeof(wchar_t)));
        if (text == nullptr) return -1;
        va_list again;
        va_copy(again, list);
        errno = 0;
        const int printed = vswprintf(text, room, format, again);
        va_end(again);
        const bool is_too_long = printed < 0 && errno != EILSEQ && room < std::size_t{1} << 26;
        const int result =
            printed < 0 ? -1 : write_far(stream, text, static_cast<std::size_t>(printed));
        libc_free(text);
        if (!is_too_long) return result < 0 ? -1 : printed;
    }
}

int print(FILE* stream, const wchar_t* format, va_list list) {
    if (is_far(stream)) return print_far(stream, format, list);
    return real_vfwprintf(Output(stream).near_stream(), format, list);
}

int print_checked(FILE* stream, int flag, const wchar_t* format, va_list list) {
    if (is_far(stream)) return print_far(stream, format, list);
    return real___vfwprintf_chk(Output(stream).near_stream(), flag, format, list);
}

/// @param here  libc's: fputwc() fails on a stream of bytes, putwc() writes the low byte, as
///              std::wcout does behind std::cout
wint_t put(wchar_t character, FILE* stream, const auto& here) {
    if (!is_far(stream)) return here(character, Output(stream).near_stream());
    return write_far(stream, &character, 1) < 0 ? WEOF : static_cast<wint_t>(character);
}

wint_t get(FILE* stream, const auto& here) {
    if (!is_far(stream)) return here(near(stream));
    wchar_t character;
    return read_far(stream, &character, 1) == 1 ? static_cast<wint_t>(character) : WEOF;
}

wchar_t* get_line(wchar_t* text, int room, FILE* stream) {
    if (!is_far(stream)) return real_fgetws(text, room, near(stream));
    if (room <= 0) return nullptr;
    const std::size_t count = read_far(stream, text, static_cast<std::size_t>(room) - 1);
    if (count == 0 && room > 1) return nullptr;
    text[count] = L'\0';
    return text;
}

int scan(FILE* stream, const wchar_t* format, va_list list) {
    if (is_far(stream)) {
        die(exit_environment,
            "fwscanf of a stream that another node has opened: read it by fgetws and swscanf, or "
            "run on one node (-n 1)");
    }
    return real___isoc99_vfwscanf(near(stream), format, list);
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;

#define HIROBA_WITH_LIST(result, last, call) \
    va_list list;                            \
    va_start(list, last);                    \
    const result outcome = call;             \
    va_end(list);                            \
    return outcome

#pragma GCC visibility push(default)
extern "C" {

int vfwprintf(FILE* stream, const wchar_t* format, va_list list) {
    return print(stream, format, list);
}
int fwprintf(FILE* stream, const wchar_t* format, ...) {
    HIROBA_WITH_LIST(int, format, print(stream, format, list));
}
int vwprintf(const wchar_t* format, va_list list) { return print(stdout, format, list); }
int wprintf(const wchar_t* format, ...) {
    HIROBA_WITH_LIST(int, format, print(stdout, format, list));
}
int __vfwprintf_chk(FILE* stream, int flag, const wchar_t* format, va_list list) {
    return print_checked(stream, flag, format, list);
}
int __fwprintf_chk(FILE* stream, int flag, const wchar_t* format, ...) {
    HIROBA_WITH_LIST(int, format, print_checked(stream, flag, format, list));
}
int __vwprintf_chk(int flag, const wchar_t* format, va_list list) {
    return print_checked(stdout, flag, format, list);
}
int __wprintf_chk(int flag, const wchar_t* format, ...) {
    HIROBA_WITH_LIST(int, format, print_checked(stdout, flag, format, list));
}

int fputws(const wchar_t* text, FILE* stream) {
    if (is_far(stream)) return write_far(stream, text, wcslen(text)) < 0 ? -1 : 1;
    return real_fputws(text, Output(stream).near_stream());
}
int fputws_unlocked(const wchar_t* text, FILE* stream) {
    if (is_far(stream)) return fputws(text, stream);
    return real_fputws_unlocked(text, Output(stream).near_stream());
}
wint_t fputwc(wchar_t character, FILE* stream) { return put(character, stream, real_fputwc); }
wint_t putwc(wchar_t character, FILE* stream) { return put(character, stream, real_putwc); }
wint_t putwchar(wchar_t character) { return put(character, stdout, real_putwc); }
wint_t fputwc_unlocked(wchar_t character, FILE* stream) {
    return put(character, stream, real_fputwc_unlocked);
}
wint_t putwc_unlocked(wchar_t character, FILE* stream) {
    return put(character, stream, real_putwc_unlocked);
}
wint_t putwchar_unlocked(wchar_t character) { return put(character, stdout, real_putwc_unlocked); }

wchar_t* fgetws(wchar_t* text, int room, FILE* stream) { return get_line(text, room, stream); }
wchar_t* fgetws_unlocked(wchar_t* text, int room, FILE* stream) {
    if (is_far(stream)) return get_line(text, room, stream);
    return real_fgetws_unlocked(text, room, near(stream));
}
wchar_t* __fgetws_chk(wchar_t* text, size_t known, int room, FILE* stream) {
    if (room > 0 && static_cast<size_t>(room) > known)
        hiroba::die(hiroba::exit_environment, "fgetws of %d characters into %lu", room, known);
    return get_line(text, room, stream);
}
wchar_t* __fgetws_unlocked_chk(wchar_t* text, size_t known, int room, FILE* stream) {
    return __fgetws_chk(text, known, room, stream);
}
wint_t fgetwc(FILE* stream) { return get(stream, real_fgetwc); }
wint_t getwc(FILE* stream) { return get(stream, real_getwc); }
wint_t getwchar() { return get(stdin, real_getwc); }
wint_t fgetwc_unlocked(FILE* stream) { return get(stream, real_fgetwc_unlocked); }
wint_t getwc_unlocked(FILE* stream) { return get(stream, real_getwc_unlocked); }
wint_t getwchar_unlocked() { return get(stdin, real_getwc_unlocked); }

wint_t ungetwc(wint_t character, FILE* stream) {
    if (!is_far(stream)) return real_ungetwc(character, near(stream));
    const std::int64_t result =
        ask_owner(stream, StreamCall::unread_wide, static_cast<long>(character), 0, {}, {});
    return result < 0 ? WEOF : character;
}

int fwide(FILE* stream, int mode) noexcept {
    if (!is_far(stream)) return real_fwide(near(stream), mode);
    return static_cast<int>(ask_owner(stream, StreamCall::orient, mode, 0, {}, {})) - 1;
}

int __isoc99_vfwscanf(FILE* stream, const wchar_t* format, va_list list) {
    return scan(stream, format, list);
}
int __isoc99_fwscanf(FILE* stream, const wchar_t* format, ...) {
    HIROBA_WITH_LIST(int, format, scan(stream, format, list));
}
int __isoc99_wscanf(const wchar_t* format, ...) {
    HIROBA_WITH_LIST(int, format, scan(stdin, format, list));
}
int __isoc99_vwscanf(const wchar_t* format, va_list list) { return scan(stdin, format, list); }

}  // extern "C"
