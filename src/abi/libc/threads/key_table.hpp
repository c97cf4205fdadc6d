// SPDX-License-Identifier: BSD-3-Clause
// Role: the thread-specific keys of the program, which are the job's: which numbers are in use, and
// what destroys their values.
// Invariant: the table is global memory, changed by atomics and read plainly: who has learned of a
// key from another thread has learned of its row as well. A key's life has a number of its own, so
// that values of a former key with its number are none of it.
#pragma once

#include <cstdint>
#include <optional>

#include "abi/libc/memory/malloc_place.hpp"

namespace hiroba::abi {

using KeyDestructor = void (*)(void*);

/// Changes under the block's critical section, as a whole.
struct alignas(16) KeyRow {
    std::uint64_t life;  ///< odd: in use
    KeyDestructor destructor;
};

/// Numbers below are libc's, for keys of system libraries; their values are libc's, too.
inline constexpr unsigned first_program_key = 64;
inline constexpr unsigned program_keys = 1024 - first_program_key;
static_assert(program_keys * sizeof(KeyRow) <= common_bytes);

/// Which row a key has, if it is one of the program's. is_spread() only.
inline std::optional<unsigned> row_of_key(unsigned key) noexcept {
    const unsigned row = key - first_program_key;
    return row < program_keys ? std::optional{row} : std::nullopt;
}
inline unsigned key_of_row(unsigned row) noexcept { return row + first_program_key; }

inline const KeyRow& key_row(unsigned row) noexcept {
    return reinterpret_cast<const KeyRow*>(common_memory())[row];
}
inline bool is_in_use(const KeyRow& row) noexcept { return (row.life & 1) != 0; }

/// Takes the lowest number that is free, as far as this node knows. None: all are in use.
std::optional<unsigned> take_key_row(KeyDestructor destructor) noexcept;
/// False: it is not in use.
bool free_key_row(unsigned row) noexcept;

}  // namespace hiroba::abi
