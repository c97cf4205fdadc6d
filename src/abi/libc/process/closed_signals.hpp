// SPDX-License-Identifier: BSD-3-Clause
// Role: the signals that a thread of the runtime keeps closed, so that what is sent to the process
// finds main's thread, and the mask that the program sees and changes in such a thread.
// Invariant: what the program has not opened by SIG_UNBLOCK stays closed; it is shown as blocked
// only if the program has blocked it.
#pragma once

#include <csignal>

#include "dsm/memory/fault_lock.hpp"

namespace hiroba::abi {

using dsm::KernelMask;

/// The runtime needs them: the kernel never blocks them, whatever the program asks for.
inline constexpr KernelMask always_open =
    dsm::mask_of(SIGSEGV) | dsm::mask_of(SIGBUS) | dsm::mask_of(SIGTRAP) | dsm::mask_of(SIGSYS);

class ClosedSignals {
public:
    /// The thread begins, or becomes another: `closed` are kept so, `program` is the mask it has
    /// from its maker. @return what the kernel is to have
    constexpr KernelMask begin(KernelMask closed, KernelMask program) noexcept {
        closed_ = closed;
        asked_ = program & ours();
        return (program | closed) & ~always_open;
    }
    /// The mask to the program, `kernel` being the thread's.
    constexpr KernelMask shown(KernelMask kernel) const noexcept {
        return (kernel & ~closed_) | asked_;
    }
    /// The program changes its mask. @return what the kernel is to have
    constexpr KernelMask change(int how, KernelMask given, KernelMask kernel) noexcept {
        const KernelMask allowed = given & ~always_open;
        switch (how) {
            case SIG_BLOCK: asked_ |= given & ours(); return kernel | allowed;
            case SIG_UNBLOCK:
                closed_ &= ~given;
                asked_ &= ~given;
                return kernel & ~given;
            default: asked_ = given & ours(); return allowed | closed_;
        }
    }

    /// `signal` had been opened for one that was sent to this thread.
    constexpr KernelMask close_again(KernelMask signal, KernelMask kernel) const noexcept {
        return kernel | (closed_ & signal);
    }

private:
    constexpr KernelMask ours() const noexcept { return closed_ | always_open; }

    KernelMask closed_ = 0, asked_ = 0;  ///< asked: of ours(), by the program
};

}  // namespace hiroba::abi
