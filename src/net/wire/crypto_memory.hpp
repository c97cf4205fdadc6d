// SPDX-License-Identifier: BSD-3-Clause
// Role: the memory of the library that encrypts (crypto_library.hpp). Contexts of new peers are
// made below page faults and beside signal handlers, where the program's allocator may be held.
// Invariant: never the program's memory; nothing waits but for a few instructions of another
// thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hiroba::net::wire {

/// nullptr when it is used up. Thread: any.
void* allocate_for_crypto(std::size_t bytes) noexcept;
/// What allocate_for_crypto() gave, or nullptr.
void free_for_crypto(void* memory) noexcept;
/// The same bytes in `bytes` bytes; nullptr, with `memory` as it was, when there is no room.
void* reallocate_for_crypto(void* memory, std::size_t bytes) noexcept;

/// Calls of allocate_for_crypto() so far, for tests.
std::uint64_t crypto_allocations() noexcept;

}  // namespace hiroba::net::wire
