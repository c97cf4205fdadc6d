// SPDX-License-Identifier: BSD-3-Clause
// Role: how long something has been under way to a peer without anything coming back.
// Invariant: pure. A thread may ask with a time that it read before another thread began.
#pragma once

#include <cstdint>

namespace hiroba::net::verbs {

/// Owned by the latch of its queue. Times are now_ns().
class Silence {
public:
    void begin(std::uint64_t now_ns) noexcept { since_ns_ = now_ns; }
    void begin_once(std::uint64_t now_ns) noexcept {
        if (since_ns_ == 0) begin(now_ns);
    }
    void end() noexcept { since_ns_ = 0; }
    bool is_longer_than(std::uint64_t limit_ns, std::uint64_t now_ns) const noexcept {
        return since_ns_ != 0 && now_ns > since_ns_ && now_ns - since_ns_ > limit_ns;
    }

private:
    std::uint64_t since_ns_ = 0;  ///< 0: nothing is waited for
};

}  // namespace hiroba::net::verbs
