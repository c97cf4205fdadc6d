// SPDX-License-Identifier: BSD-3-Clause
// Role: the program's locks on one node: a mutual exclusion in 4 bytes the program provides.
// Invariant: 0 open, 1 closed, 2 closed and a thread may sleep on it. Zeroed memory is an open
// lock, as compilers expect of critical names.
#pragma once

#include <cstdint>

namespace hiroba::omp {

/// Thread: any. `word` is 4-byte aligned.
void lock_word(std::uint32_t* word) noexcept;
bool try_lock_word(std::uint32_t* word) noexcept;
void unlock_word(std::uint32_t* word) noexcept;

}  // namespace hiroba::omp
