// SPDX-License-Identifier: BSD-3-Clause
// Role: how a node stops when an invariant is broken or the job cannot go on.
// Invariant: everything here is async-signal-safe: no allocation, no stdio, no lock.
#pragma once

namespace hiroba {

/// Sets the prefix of every line of this process, "hiroba[rank@host]: "; call once at start.
void set_identity(unsigned rank, const char* host) noexcept;

/// The prefix set above ("hiroba: " before that).
const char* identity() noexcept;

/// Writes one line, printf format (%s %d %u %lx %lu %p only), with the identity before it.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...) noexcept;

/// Prints the line and the last trace records of this thread, then ends the process with
/// `abort` semantics that no handler of the program can intercept. For broken invariants.
[[noreturn, gnu::format(printf, 1, 2)]] void fatal(const char* format, ...) noexcept;

/// Prints the line and ends the process with `status` (64 usage, 78 environment, ...).
[[noreturn, gnu::format(printf, 2, 3)]] void die(int status, const char* format, ...) noexcept;

inline constexpr int exit_program = 1;  ///< the program uses a library wrongly
inline constexpr int exit_usage = 64;
inline constexpr int exit_environment = 78;

}  // namespace hiroba

/// Stops the node when `condition` is false; `...` is a printf format with the values.
#define HIROBA_INVARIANT(condition, ...)                                      \
    do {                                                                      \
        if (!(condition)) [[unlikely]]                                        \
            ::hiroba::fatal("invariant " #condition " broken: " __VA_ARGS__); \
    } while (false)
