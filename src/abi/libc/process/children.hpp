// SPDX-License-Identifier: BSD-3-Clause
// Role: the refusal of fork(), wherever it is noticed.
// Invariant: one text for the function and for the system call inside libc.
#pragma once

namespace hiroba::abi {

/// Says why fork() has failed with ENOSYS. Allocates nothing.
void say_fork_refused() noexcept;

}  // namespace hiroba::abi
