// SPDX-License-Identifier: BSD-3-Clause
// Role: the standard input of a host's command: its start-up packet, and on rank 0's host behind it
// what comes on the launcher's own standard input. Invariant: never blocks; reads ahead one piece
// at most, so that a slow program slows its input.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

namespace hiroba::tools {

class Feed {
public:
    /// Owns `pipe`, which is non-blocking. @param then_input  go on with descriptor 0
    Feed(int pipe, std::string packet, bool then_input)
        : pipe_(pipe), waiting_(std::move(packet)), then_input_(then_input) {}
    Feed(Feed&& other) noexcept;
    Feed& operator=(Feed&&) = delete;
    ~Feed() { close(); }

    void add_poll_entries(std::vector<pollfd>& entries) const;
    void serve();
    /// The launcher may be in the terminal's foreground again.
    void resume() { paused_ = false; }

private:
    void read_input();
    void close();

    int pipe_;
    std::string waiting_;
    bool then_input_;
    bool paused_ = false;  ///< the terminal is another job's
};

}  // namespace hiroba::tools
