// SPDX-License-Identifier: BSD-3-Clause
// Role: thread-specific values of the program's keys.
// Invariant: a thread's values are private memory of its node, which only it reads and writes.
#pragma once

namespace hiroba::abi {

/// Destroys the calling thread's values, as libc does at a thread's end, and forgets them.
void end_key_values() noexcept;

/// main's thread, before main: has the values that libraries' constructors have set in the thread
/// that ran them.
void inherit_key_values() noexcept;

}  // namespace hiroba::abi
