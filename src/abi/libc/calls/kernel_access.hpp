// SPDX-License-Identifier: BSD-3-Clause
// Role: makes global memory fit for a system call that is about to read or write it.
// Invariant: the kernel never runs our fault handler: a page invalid on this node is EFAULT or a
// short count to it, so pages are touched beforehand. Private memory costs one range comparison.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>

namespace hiroba::abi {

void let_kernel_read(const void* buffer, std::size_t bytes) noexcept;
void let_kernel_write(void* buffer, std::size_t bytes) noexcept;

/// A string up to its end; nullptr is allowed.
void let_kernel_read_text(const char* text) noexcept;

/// The vector itself and every buffer it names.
void let_kernel_read(const iovec* vector, int count) noexcept;
void let_kernel_write(const iovec* vector, int count) noexcept;

/// A message of recvmsg() or sendmsg(): itself and all it points to. `write`: the kernel fills it.
void let_kernel_use(const msghdr* message, bool write) noexcept;

/// Whether `address` is global memory. Async-signal-safe.
bool is_global(const void* address) noexcept;

}  // namespace hiroba::abi
