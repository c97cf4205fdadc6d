// SPDX-License-Identifier: BSD-3-Clause
// Role: where to put large mappings: far from code.
// Invariant: a hint only; the kernel goes elsewhere when the place is taken. Left to itself it
// fills the address space downwards from the libraries, and no trampoline would find room within 2
// GiB.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"

namespace hiroba {

namespace detail {
inline constexpr std::uintptr_t first_address_hint = 0x4000'0000'0000;
inline constinit std::atomic<std::uintptr_t> next_address_hint{first_address_hint};
}  // namespace detail

/// Begins again with the first address. For tests that make many nodes, one after the other, once
/// the mappings of the former are gone: so that equal runs have equal addresses.
inline void reset_address_hints() noexcept {
    detail::next_address_hint = detail::first_address_hint;
}

/// An address to suggest to mmap for `bytes` bytes. Thread: any; async-signal-safe.
inline void* address_hint(std::size_t bytes) noexcept {
    constexpr std::size_t guard_bytes = std::size_t{1} << 21;
    // No partner: only the sum matters.
    return reinterpret_cast<void*>(detail::next_address_hint.fetch_add(
        round_up(bytes, guard_bytes) + guard_bytes, std::memory_order_relaxed));
}

}  // namespace hiroba
