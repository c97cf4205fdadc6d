// SPDX-License-Identifier: BSD-3-Clause
// Role: the refusal of fork(), wherever it is noticed.
// Invariant: one text for the function and for the system call inside libc.
#pragma once

namespace hiroba::abi {

/// Says why fork() is to fail with ENOSYS; in a parallel region ends the job. Allocates nothing.
void refuse_fork() noexcept;

}  // namespace hiroba::abi
