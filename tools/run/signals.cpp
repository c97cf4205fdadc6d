// SPDX-License-Identifier: BSD-3-Clause
// Role: signalfd around the launcher's life.
#include "tools/run/signals.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <utility>

namespace hiroba::tools {

namespace {

constexpr int watched[] = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP, SIGQUIT,
                           SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

}  // namespace

Result<SignalWatch> SignalWatch::open() {
    SignalWatch watch;
    struct sigaction action {};
    ::sigaction(SIGINT, nullptr, &action);
    watch.ignores_interrupt_ = action.sa_handler == SIG_IGN;

    // Our parent may have ignored SIGCHLD; then the kernel would reap the nodes unseen.
    action = {};
    action.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &action, &watch.former_child_action_);

    sigset_t set, blocked;
    ::sigemptyset(&set);
    for (int number : watched) ::sigaddset(&set, number);
    blocked = set;
    for (int number : {SIGPIPE, SIGTTOU, SIGTTIN}) ::sigaddset(&blocked, number);
    ::sigprocmask(SIG_BLOCK, &blocked, &watch.former_mask_);
    watch.fd_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (watch.fd_ < 0)
        return Error{ErrorKind::environment,
                     fmt::format("signalfd failed: {}. Raise ulimit -n, or allow the call in the "
                                 "container's seccomp profile",
                                 ::strerror(errno))};
    return watch;
}

SignalWatch::SignalWatch(SignalWatch&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      former_mask_(other.former_mask_),
      former_child_action_(other.former_child_action_),
      ignores_interrupt_(other.ignores_interrupt_) {}

SignalWatch::~SignalWatch() {
    if (fd_ < 0) return;
    ::close(fd_);
    restore();
}

std::optional<signalfd_siginfo> SignalWatch::next() {
    signalfd_siginfo info{};
    if (::read(fd_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
    return info;
}

void SignalWatch::restore() const {
    ::sigaction(SIGCHLD, &former_child_action_, nullptr);
    ::sigprocmask(SIG_SETMASK, &former_mask_, nullptr);
}

std::string signal_text(int number) {
    return fmt::format("signal {} ({})", number,
                       number < SIGRTMIN ? ::strsignal(number) : "real-time");
}

}  // namespace hiroba::tools
