// SPDX-License-Identifier: BSD-3-Clause
// Role: waiting for the requests that a measurement makes.
#pragma once

#include <atomic>
#include <cstdint>

#include "tools/perf/rig.hpp"

namespace hiroba::tools::perf_parts {

inline void note_done(void* data, net::Outcome) noexcept {
    // Release, pairs with wait_for(): what the operation brought is there.
    static_cast<std::atomic<std::uint64_t>*>(data)->fetch_add(1, std::memory_order_release);
}

/// Counts completions and waits for them.
struct Done {
    std::atomic<std::uint64_t> count{0};
    net::Callback callback() { return {note_done, &count}; }
    void wait_for(Rig& rig, std::uint64_t wanted) {
        if (count.load(std::memory_order_acquire) == wanted) [[likely]]
            return;
        rig.async().wait_until([&] { return count.load(std::memory_order_acquire) == wanted; });
    }
};

}  // namespace hiroba::tools::perf_parts
