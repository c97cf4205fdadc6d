// SPDX-License-Identifier: BSD-3-Clause
// Role: the signal mask of a thread as the program has it (closed_signals.hpp).
#pragma once

#include <ucontext.h>

#include "abi/libc/process/closed_signals.hpp"

namespace hiroba::abi {

/// From here on the calling thread, of the runtime, keeps closed what comes from outside. The
/// program's mask begins as `program`.
void keep_signals_closed(const sigset_t& program) noexcept;
/// The same with SIGCHLD alone, which node 0 handles for all (child_signals.hpp).
void keep_child_signal_closed(const sigset_t& program) noexcept;

/// What the program has blocked in the calling thread.
KernelMask program_mask() noexcept;
/// What the kernel blocks in it besides.
KernelMask hidden_mask() noexcept;
/// The calling thread becomes one that was made with this mask.
void begin_with_mask(KernelMask mask) noexcept;

/// A call of the program's in a thread whose mask is `kernel`: what it becomes. `before`: what the
/// program is told.
KernelMask change_program_mask(int how, KernelMask given, KernelMask kernel) noexcept;
KernelMask shown_mask(KernelMask kernel) noexcept;
/// Behind a handler of `number` that has interrupted `context`: closed, if the runtime keeps it so.
void close_again(int number, ucontext_t& context) noexcept;

/// For a scope the kernel has the program's mask: a process that is started here inherits it.
class ProgramMask {
public:
    ProgramMask() noexcept;
    ProgramMask(const ProgramMask&) = delete;
    ProgramMask& operator=(const ProgramMask&) = delete;
    ~ProgramMask();

private:
    KernelMask kernel_;
    bool differs_;
};

/// For a scope the calling thread's mask is another to the program: as in ppoll().
class ChangedMask {
public:
    explicit ChangedMask(KernelMask mask) noexcept;
    ChangedMask(const ChangedMask&) = delete;
    ChangedMask& operator=(const ChangedMask&) = delete;
    ~ChangedMask();

private:
    KernelMask before_;
};

}  // namespace hiroba::abi
