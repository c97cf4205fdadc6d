// SPDX-License-Identifier: BSD-3-Clause
// Role: a latch for state that both the fault path and other code of the same thread use.
// Invariant: while it is held no signal handler of the program runs on this thread: such a handler
// might touch shared memory and wait in its fault for the latch its own thread holds. SIGBUS and
// SIGSEGV stay open, because the kernel kills a process that faults with them blocked.
#pragma once

#include <csignal>
#include <cstdint>

#include "base/latch.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::dsm {

/// The kernel's signal set: bit n - 1 is signal n.
using KernelMask = std::uint64_t;

constexpr KernelMask mask_of(int signal) { return KernelMask{1} << (signal - 1); }
inline constexpr KernelMask all_but_faults =
    ~(mask_of(SIGBUS) | mask_of(SIGSEGV) | mask_of(SIGSYS));

inline KernelMask change_mask(int how, KernelMask mask) noexcept {
    KernelMask before = 0;
    kernel_call(SYS_rt_sigprocmask, how, &mask, &before, sizeof mask);
    return before;
}

/// Holds `latch` for a scope. Async-signal-safe.
class FaultSafeLock {
public:
    explicit FaultSafeLock(Latch& latch) noexcept
        : latch_(latch), mask_before_(change_mask(SIG_BLOCK, all_but_faults)) {
        latch_.lock();
    }
    FaultSafeLock(const FaultSafeLock&) = delete;
    FaultSafeLock& operator=(const FaultSafeLock&) = delete;
    ~FaultSafeLock() {
        latch_.unlock();
        change_mask(SIG_SETMASK, mask_before_);
    }

private:
    Latch& latch_;
    KernelMask mask_before_;
};

}  // namespace hiroba::dsm
