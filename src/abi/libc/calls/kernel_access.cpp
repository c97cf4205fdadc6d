// SPDX-License-Identifier: BSD-3-Clause
// Role: touches what the kernel is about to use (kernel_access.hpp).
// Invariant: errno stays as it was; memory that is not global is not looked at.
#include "abi/libc/calls/kernel_access.hpp"

#include <string.h>

#include <cerrno>

#include "abi/world.hpp"

namespace hiroba::abi {
namespace {

void let_kernel(const void* buffer, std::size_t bytes, bool write) noexcept {
    if (bytes == 0 || !is_global(buffer)) return;
    const int errno_before = errno;
    world()->memory->make_accessible(buffer, bytes, write);
    errno = errno_before;
}

/// A vector of another length is the kernel's to refuse.
std::size_t entries(int count) noexcept {
    constexpr int kernel_max = 1024;
    return count > 0 && count <= kernel_max ? static_cast<std::size_t>(count) : 0;
}

void let_kernel_vector(const iovec* vector, int count, bool write) noexcept {
    let_kernel(vector, entries(count) * sizeof *vector, false);
    for (std::size_t i = 0; i < entries(count); ++i) {
        let_kernel(vector[i].iov_base, vector[i].iov_len, write);
    }
}

}  // namespace

bool is_global(const void* address) noexcept {
    const World* const node = world();
    return node != nullptr && node->memory != nullptr && node->memory->contains(address);
}

void let_kernel_read(const void* buffer, std::size_t bytes) noexcept {
    let_kernel(buffer, bytes, false);
}

void let_kernel_write(void* buffer, std::size_t bytes) noexcept { let_kernel(buffer, bytes, true); }

void let_kernel_read(const iovec* vector, int count) noexcept {
    let_kernel_vector(vector, count, false);
}

void let_kernel_write(const iovec* vector, int count) noexcept {
    let_kernel_vector(vector, count, true);
}

void let_kernel_read_text(const char* text) noexcept {
    // strlen faults in what is invalid.
    if (text != nullptr && is_global(text)) let_kernel(text, strlen(text) + 1, false);
}

void let_kernel_use(const msghdr* message, bool write) noexcept {
    let_kernel(message, sizeof *message, write);
    let_kernel(message->msg_name, message->msg_namelen, write);
    let_kernel(message->msg_control, message->msg_controllen, write);
    let_kernel_vector(message->msg_iov, static_cast<int>(message->msg_iovlen), write);
}

}  // namespace hiroba::abi
