// SPDX-License-Identifier: BSD-3-Clause
// Role: where the calling thread's TLS lies, for a handler that may not touch it: it is what a
// fault is about.
#pragma once

#include <cstdint>

namespace hiroba::dsm {

/// Learns where in a thread's TLS this library's and the C library's words lie: at the same
/// distance from the thread pointer in every thread. Before the first is_own_tls().
void measure_tls() noexcept;
/// Whether the page of `address` holds words of the calling thread's TLS that a fault handler uses.
/// Reads no TLS; async-signal-safe.
bool is_own_tls(std::uintptr_t address) noexcept;

}  // namespace hiroba::dsm
