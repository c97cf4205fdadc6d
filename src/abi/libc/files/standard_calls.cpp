// SPDX-License-Identifier: BSD-3-Clause
// Role: functions of stdio that name no stream, because theirs is a standard one, and those without
// a lock. Each goes to the stream of the node that has it.
// Invariant: a macro of libc's headers that writes or reads a stream's own buffer ends in
// __overflow() or __uflow() when there is none: a stream that stands for another node's never has
// one. The headers' inline versions would stand in the way of these definitions.
#ifndef __NO_INLINE__
#define __NO_INLINE__ 1
#endif
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cerrno>

#include "abi/libc/files/foreign_streams.hpp"
#include "abi/libc/real.hpp"

extern "C" {
int __printf_chk(int, const char*, ...);
int __vprintf_chk(int, const char*, va_list);
int __vfprintf_chk(FILE*, int, const char*, va_list);
int __isoc99_vscanf(const char*, va_list);
int __isoc99_vfscanf(FILE*, const char*, va_list);
char* __fgets_chk(char*, size_t, int, FILE*);
char* __fgets_unlocked_chk(char*, size_t, int, FILE*);
int __overflow(FILE*, int);
int __uflow(FILE*);
}

HIROBA_REAL(fputs_unlocked);
HIROBA_REAL(fputc_unlocked);
HIROBA_REAL(fgets_unlocked);
HIROBA_REAL(__fgets_unlocked_chk);
HIROBA_REAL(fgetc_unlocked);
HIROBA_REAL(__overflow);
HIROBA_REAL(__uflow);
HIROBA_REAL(puts);
HIROBA_REAL(perror);

using namespace hiroba::abi;

namespace {

bool is_near(FILE* stream) noexcept { return near(stream) == stream; }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// The functions of the library that take a stream decide where it is; they are called by name.
int vprintf(const char* format, va_list list) { return vfprintf(stdout, format, list); }
int printf(const char* format, ...) {
    va_list list;
    va_start(list, format);
    const int printed = vfprintf(stdout, format, list);
    va_end(list);
    return printed;
}
int __vprintf_chk(int flag, const char* format, va_list list) {
    return __vfprintf_chk(stdout, flag, format, list);
}
int __printf_chk(int flag, const char* format, ...) {
    va_list list;
    va_start(list, format);
    const int printed = __vfprintf_chk(stdout, flag, format, list);
    va_end(list);
    return printed;
}

/// Elsewhere text and newline go in one piece, as under the stream's lock.
int puts(const char* text) {
    const Output output{stdout};
    if (output.near_stream() == stdout) return real_puts(text);
    return fprintf(stdout, "%s\n", text);
}
int putchar(int c) { return fputc(c, stdout); }
int putchar_unlocked(int c) { return fputc_unlocked(c, stdout); }

void perror(const char* text) {
    if (is_near(stderr)) return real_perror(text);
    const bool titled = text != nullptr && *text != '\0';
    char room[256];
    const char* const reason = strerror_r(errno, room, sizeof room);
    fprintf(stderr, "%s%s%s\n", titled ? text : "", titled ? ": " : "", reason);
}

int __isoc99_vscanf(const char* format, va_list list) {
    return __isoc99_vfscanf(stdin, format, list);
}

int fputs_unlocked(const char* text, FILE* stream) {
    return real_fputs_unlocked(text, Output(stream).near_stream());
}
int fputc_unlocked(int c, FILE* stream) {
    return real_fputc_unlocked(c, Output(stream).near_stream());
}
int putc_unlocked(int c, FILE* stream) {
    return real_fputc_unlocked(c, Output(stream).near_stream());
}
int __overflow(FILE* stream, int c) {
    return is_near(stream) ? real___overflow(stream, c)
                           : real_fputc_unlocked(c, Output(stream).near_stream());
}
char* fgets_unlocked(char* text, int bytes, FILE* stream) {
    return is_far(stream) ? fgets(text, bytes, stream)
                          : real_fgets_unlocked(text, bytes, near(stream));
}
char* __fgets_unlocked_chk(char* text, size_t room, int bytes, FILE* stream) {
    return is_far(stream) ? __fgets_chk(text, room, bytes, stream)
                          : real___fgets_unlocked_chk(text, room, bytes, near(stream));
}
int fgetc_unlocked(FILE* stream) { return real_fgetc_unlocked(near(stream)); }
int getc_unlocked(FILE* stream) { return real_fgetc_unlocked(near(stream)); }
int getchar_unlocked() { return real_fgetc_unlocked(near(stdin)); }
int __uflow(FILE* stream) {
    return is_near(stream) ? real___uflow(stream) : real_fgetc_unlocked(near(stream));
}
int fflush_unlocked(FILE* stream) { return fflush(stream); }

}  // extern "C"
