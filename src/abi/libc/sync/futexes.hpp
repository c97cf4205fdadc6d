// SPDX-License-Identifier: BSD-3-Clause
// Role: futex(2) and futex_waitv(2) on words in global memory, whoever calls.
// Invariant: results are as the kernel's: in [-4095, -1] the negated error number.
#pragma once

#include <linux/futex.h>
#include <time.h>

#include <cstdint>

#include "abi/libc/sync/sync_objects.hpp"

namespace hiroba::abi {

/// Whether one of the words that the call names is in global memory.
bool is_global_futex(long number, const long (&arguments)[6]) noexcept;
/// Such a call, between the threads of all nodes. What needs the kernel to know who holds a lock
/// ends the process with a line. Thread: any, on the program's stack or in the handler of a call.
long perform_futex(long number, const long (&arguments)[6]) noexcept;

/// A wait that a system library makes on a word of its own node. What it waits for may be global:
/// it gets a look at it every now and then, as after a wake without a cause.
bool is_system_wait(long number, const long (&arguments)[6], const void* caller) noexcept;
long perform_system_wait(const long (&arguments)[6]) noexcept;

namespace futex {

constexpr std::uint64_t pause_first_ns = 50'000, pause_max_ns = 2'000'000;
/// After so long the caller looks itself: what it waits for may be more than the word.
constexpr std::uint64_t own_look_ns = 100'000'000;

dsm::Deadline in_ns(std::uint64_t ns) noexcept;
/// What the word holds in this node's copy: what the caller could have seen last.
std::uint32_t copy_of(const std::uint32_t* word) noexcept;
/// What the word holds after all that was flushed is known here.
std::uint32_t current(const std::uint32_t* word) noexcept;
long wait_for_one(const futex_waitv* vector, std::uint32_t count,
                  const dsm::Deadline* deadline) noexcept;

}  // namespace futex
}  // namespace hiroba::abi
