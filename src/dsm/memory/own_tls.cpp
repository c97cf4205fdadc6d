// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/memory/own_tls.hpp"

#include <asm/prctl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/bytes.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::dsm {

namespace {

/// Lies among this library's words.
thread_local char marker [[gnu::tls_model("initial-exec")]] = 0;

/// The thread control block, as far as compiled code uses it: self pointer, stack protector.
constexpr std::uintptr_t control_bytes = 64;
/// From the first of the words to the thread pointer.
constinit std::atomic<std::uintptr_t> bytes_below{0};

std::uintptr_t thread_pointer() noexcept {
    std::uintptr_t at = 0;
    kernel_call(SYS_arch_prctl, ARCH_GET_FS, &at);
    return at;
}

}  // namespace

void measure_tls() noexcept {
    const auto first = std::min(reinterpret_cast<std::uintptr_t>(&marker),
                                reinterpret_cast<std::uintptr_t>(&errno));
    bytes_below.store(thread_pointer() - first, std::memory_order_relaxed);
}

bool is_own_tls(std::uintptr_t address) noexcept {
    const std::uintptr_t at = thread_pointer();
    const std::uintptr_t first = (at - bytes_below.load(std::memory_order_relaxed)) & -page_bytes;
    return address >= first && address < round_up(at + control_bytes, page_bytes);
}

}  // namespace hiroba::dsm
