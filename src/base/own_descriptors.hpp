// SPDX-License-Identifier: BSD-3-Clause
// Role: descriptors that hiroba keeps open in a program's process.
// Invariant: they have high numbers, where there is room, so that the program's first open() gets
// the number it is used to; and a program that closes all it does not know leaves them open.
#pragma once

#include <mutex>

#include "base/latch.hpp"

namespace hiroba {

/// Moves `fd` out of the program's way and remembers it for as long as the process lives.
/// @return its number now, which is `fd` where no other is allowed; a negative `fd` as it is
/// Thread: any.
int keep_descriptor(int fd) noexcept;
/// Held while a descriptor that is made beside running threads has its low number still, and while
/// the program closes many. Nothing that holds it may fault or wait.
inline constinit Latch descriptors_in_motion;

/// keep_descriptor() of what `make` returns, beside running threads.
template <class Make>
int keep_new_descriptor(Make make) noexcept {
    const std::scoped_lock guard{descriptors_in_motion};
    return keep_descriptor(make());
}
/// Remembers it where it is.
void adopt_descriptor(int fd) noexcept;
/// Closes what was kept: its number may become the program's.
void close_kept_descriptor(int fd) noexcept;
/// Whether `fd` was kept or adopted. Thread: any; async-signal-safe.
bool is_kept_descriptor(int fd) noexcept;

}  // namespace hiroba
