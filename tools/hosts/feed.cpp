// SPDX-License-Identifier: BSD-3-Clause
#include "tools/hosts/feed.hpp"

#include <errno.h>
#include <unistd.h>

#include <utility>

namespace hiroba::tools {

namespace {

constexpr std::size_t piece_bytes = 65536;

short state_of(int fd, short events) {
    pollfd entry{fd, events, 0};
    return ::poll(&entry, 1, 0) > 0 ? entry.revents : short{0};
}

}  // namespace

Feed::Feed(Feed&& other) noexcept
    : pipe_(std::exchange(other.pipe_, -1)),
      waiting_(std::move(other.waiting_)),
      then_input_(other.then_input_),
      paused_(other.paused_) {}

void Feed::close() {
    if (pipe_ >= 0) ::close(pipe_);
    pipe_ = -1;
    waiting_.clear();
}

void Feed::add_poll_entries(std::vector<pollfd>& entries) const {
    if (pipe_ < 0) return;
    entries.push_back({pipe_, static_cast<short>(waiting_.empty() ? 0 : POLLOUT), 0});
    if (waiting_.empty() && then_input_ && !paused_) entries.push_back({STDIN_FILENO, POLLIN, 0});
}

void Feed::serve() {
    if (pipe_ < 0) return;
    if (state_of(pipe_, 0) & POLLERR) return close();  // The reader is gone.
    if (waiting_.empty() && then_input_ && !paused_) read_input();
    while (!waiting_.empty()) {
        const ssize_t written = ::write(pipe_, waiting_.data(), waiting_.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0 && errno == EAGAIN) return;
        if (written < 0) return close();
        waiting_.erase(0, static_cast<std::size_t>(written));
    }
    if (!then_input_) close();
}

void Feed::read_input() {
    if (state_of(STDIN_FILENO, POLLIN) == 0) return;
    waiting_.resize(piece_bytes);
    const ssize_t got = ::read(STDIN_FILENO, waiting_.data(), waiting_.size());
    const int error = errno;
    waiting_.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    // In the background a terminal cannot be read (SIGTTIN is blocked); SIGCONT may change that.
    if (got < 0 && error == EIO && ::isatty(STDIN_FILENO)) paused_ = true;
    if (got == 0 || (got < 0 && error != EIO && error != EINTR && error != EAGAIN))
        then_input_ = false;
}

}  // namespace hiroba::tools
