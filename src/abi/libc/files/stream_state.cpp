// SPDX-License-Identifier: BSD-3-Clause
// Role: functions of stdio that tell of a stream's state or change it: its flags, buffer, number
// and position. Those of a stream that another node has opened are asked of that node. Invariant:
// the owner's flags are the stream's: its stand-ins have none that outlast a call.
#ifndef __NO_INLINE__
#define __NO_INLINE__ 1
#endif
#include <stdio.h>
#include <stdio_ext.h>

#include <cerrno>
#include <cstdint>
#include <span>

#include "abi/libc/files/foreign_streams.hpp"
#include "abi/libc/real.hpp"

HIROBA_REAL(feof);
HIROBA_REAL(feof_unlocked);
HIROBA_REAL(ferror);
HIROBA_REAL(ferror_unlocked);
HIROBA_REAL(clearerr);
HIROBA_REAL(clearerr_unlocked);
HIROBA_REAL(fileno);
HIROBA_REAL(fileno_unlocked);
HIROBA_REAL(fgetpos);
HIROBA_REAL(fsetpos);
HIROBA_REAL(__fpending);
HIROBA_REAL(__freading);
HIROBA_REAL(__fwriting);
HIROBA_REAL(__freadable);
HIROBA_REAL(__fwritable);
HIROBA_REAL(__flbf);
HIROBA_REAL(__fbufsize);
HIROBA_REAL(__fpurge);
HIROBA_REAL(__fsetlocking);

namespace hiroba::abi {
namespace {

/// -1 and errno, or the result.
int as_libc_tells(std::int64_t result) noexcept {
    if (result >= 0) return static_cast<int>(result);
    errno = static_cast<int>(-result);
    return -1;
}

/// What the stream's node says; a stream of this node's is asked by `here`.
template <class Here>
auto look(FILE* stream, StreamQuestion question, const Here& here, int how = 0) noexcept {
    using Answer = decltype(here(stream));
    if (!is_far(stream)) return here(near(stream));
    return static_cast<Answer>(
        ask_owner(stream, StreamCall::look, static_cast<long>(question), how, {}, {}));
}

/// The owner's number, which names the file on every node.
int number_of(FILE* stream, const auto& here) noexcept {
    if (!is_far(stream)) return here(stream);
    return as_libc_tells(ask_owner(stream, StreamCall::number, 0, 0, {}, {}));
}

int get_position(FILE* stream, fpos_t* position) noexcept {
    fpos_t got;
    const int result = as_libc_tells(ask_owner(stream, StreamCall::get_position, 0, 0, {},
                                               std::as_writable_bytes(std::span(&got, 1))));
    if (result == 0) *position = got;
    return result;
}

int set_position(FILE* stream, const fpos_t* position) noexcept {
    return as_libc_tells(ask_owner(stream, StreamCall::set_position, 0, 0,
                                   std::as_bytes(std::span(position, 1)), {}));
}

/// For functions without a result.
auto without_result(const auto& function) noexcept {
    return [&function](FILE* stream) {
        function(stream);
        return 0;
    };
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;
using enum hiroba::abi::StreamQuestion;

static_assert(sizeof(fpos_t) == sizeof(fpos64_t));

#pragma GCC visibility push(default)
extern "C" {

int feof(FILE* stream) noexcept { return look(stream, at_end, real_feof); }
int feof_unlocked(FILE* stream) noexcept { return look(stream, at_end, real_feof_unlocked); }
int ferror(FILE* stream) noexcept { return look(stream, has_failed, real_ferror); }
int ferror_unlocked(FILE* stream) noexcept {
    return look(stream, has_failed, real_ferror_unlocked);
}
void clearerr(FILE* stream) noexcept { look(stream, clear_errors, without_result(real_clearerr)); }
void clearerr_unlocked(FILE* stream) noexcept {
    look(stream, clear_errors, without_result(real_clearerr_unlocked));
}
int fileno(FILE* stream) noexcept { return number_of(stream, real_fileno); }
int fileno_unlocked(FILE* stream) noexcept { return number_of(stream, real_fileno_unlocked); }

size_t __fpending(FILE* stream) noexcept { return look(stream, pending_bytes, real___fpending); }
int __freading(FILE* stream) noexcept { return look(stream, reads, real___freading); }
int __fwriting(FILE* stream) noexcept { return look(stream, writes, real___fwriting); }
int __freadable(FILE* stream) noexcept { return look(stream, is_readable, real___freadable); }
int __fwritable(FILE* stream) noexcept { return look(stream, is_writable, real___fwritable); }
int __flbf(FILE* stream) noexcept { return look(stream, is_line_buffered, real___flbf); }
size_t __fbufsize(FILE* stream) noexcept { return look(stream, buffer_bytes, real___fbufsize); }
void __fpurge(FILE* stream) noexcept { look(stream, purge, without_result(real___fpurge)); }
int __fsetlocking(FILE* stream, int how) noexcept {
    return look(
        stream, set_locking, [how](FILE* here) { return real___fsetlocking(here, how); }, how);
}

int fgetpos(FILE* stream, fpos_t* position) {
    return is_far(stream) ? get_position(stream, position) : real_fgetpos(near(stream), position);
}
int fsetpos(FILE* stream, const fpos_t* position) {
    return is_far(stream) ? set_position(stream, position) : real_fsetpos(near(stream), position);
}
int fgetpos64(FILE* stream, fpos64_t* position) {
    return fgetpos(stream, reinterpret_cast<fpos_t*>(position));
}
int fsetpos64(FILE* stream, const fpos64_t* position) {
    return fsetpos(stream, reinterpret_cast<const fpos_t*>(position));
}

int getw(FILE* stream) {
    int word;
    return fread(&word, sizeof word, 1, stream) == 1 ? word : EOF;
}
int putw(int word, FILE* stream) { return fwrite(&word, sizeof word, 1, stream) == 1 ? 0 : EOF; }

}  // extern "C"
