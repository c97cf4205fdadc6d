// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/sync/background_flusher.hpp"

#include <time.h>

#include <algorithm>

#include "base/clock.hpp"
#include "dsm/dsm.hpp"

namespace hiroba::dsm {

namespace {
// Besides its own time, a flush costs the program a fault for each page it writes again.
constexpr std::uint64_t share_of_time = 400;
constexpr std::uint64_t share_in_hurry = 10;
/// A sleeping background flusher looks so often whether it is in a hurry.
constexpr std::uint64_t nap_ns = 4'000'000;
/// As above, while it has nothing to do but in a hurry. Naps of hundreds of nodes on one machine
/// are all that its processors do.
constexpr std::uint64_t nap_apart_ns = 50'000'000;

/// Processor time of this thread. Where a thread waits for what is published, the share is of this:
/// what a flush waits for, a peer or a core, costs the program nothing. Elsewhere a flush that has
/// to wait is one that disturbs, so the share is of the time it takes.
std::uint64_t processor_ns() noexcept {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec);
}
}  // namespace

std::uint64_t BackgroundFlusher::next_wait_ns(std::uint64_t wait_ns, bool found,
                                              std::uint64_t took_ns, bool hurry) {
    if (hurry) return std::clamp(share_in_hurry * took_ns, shortest_in_hurry_ns, longest_ns);
    const std::uint64_t wanted = found ? shortest_ns : 2 * wait_ns;
    return std::max(std::min(wanted, longest_ns),
                    std::min(share_of_time * took_ns, longest_behind_much_ns));
}

void BackgroundFlusher::run() noexcept {
    std::uint64_t wait_ns = shortest_ns;
    while (!stopping_.load(std::memory_order_relaxed)) {
        for (std::uint64_t left = wait_ns; left > 0;) {
            const std::uint64_t part = std::min(left, is_apart() ? nap_apart_ns : nap_ns);
            const timespec wait{0, static_cast<long>(part)};
            clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, nullptr);
            left = memory_.somebody_spins() ? 0 : left - part;
        }
        bool found = false;
        std::uint64_t took_ns = 0;
        if (active_.load(std::memory_order_relaxed)) {
            const bool hurry = memory_.somebody_spins();
            const std::uint64_t begin = hurry ? processor_ns() : now_ns();
            found = memory_.flush_aside();
            took_ns = (hurry ? processor_ns() : now_ns()) - begin;
        }
        wait_ns = next_wait_ns(wait_ns, found, took_ns, memory_.somebody_spins());
    }
}

}  // namespace hiroba::dsm
