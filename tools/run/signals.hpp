// SPDX-License-Identifier: BSD-3-Clause
// Role: signals of the launcher as file events, and what a child must get back.
// Invariant: while a SignalWatch lives, no signal but SIGKILL and SIGSTOP interrupts the launcher.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>

#include <optional>
#include <string>

#include "base/result.hpp"

namespace hiroba::tools {

class SignalWatch {
public:
    /// Blocks what the launcher handles. One at a time in a process.
    static Result<SignalWatch> open();
    SignalWatch(SignalWatch&& other) noexcept;
    SignalWatch& operator=(SignalWatch&&) = delete;
    ~SignalWatch();

    int fd() const { return fd_; }
    /// The next signal that came, if any.
    std::optional<signalfd_siginfo> next();
    /// Puts back what this process was started with. For a child before exec; async-signal-safe.
    void restore() const;
    /// Whether SIGINT was ignored when this process started (a background job of a plain shell).
    bool ignores_interrupt() const { return ignores_interrupt_; }

private:
    SignalWatch() = default;
    int fd_ = -1;
    sigset_t former_mask_{};
    struct sigaction former_child_action_ {};
    bool ignores_interrupt_ = false;
};

/// "signal 11 (Segmentation fault)".
std::string signal_text(int number);

}  // namespace hiroba::tools
