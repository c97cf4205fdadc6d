// SPDX-License-Identifier: BSD-3-Clause
// Role: jobs of many nodes: publishes what a region writes, in place of
// dsm/sync/background_flusher.hpp, but only once the region lasts, and node after node. The
// background flusher comes in while a thread is seen to wait for what it publishes. Invariant:
// while a region runs on several nodes, each of them publishes from some moment on again and again,
// so that a thread which waits for a plain write sees it.
//
// A node that publishes takes the job's one flush object and tells every node. After each region
// every node had something to tell: so in a job of N nodes each region cost N * N messages and N
// turns at one lock, soon after it was over and all of that was known. 64 nodes over udp spent
// seconds with a program of one empty region.
#include <time.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/service_thread.hpp"
#include "dsm/dsm.hpp"
#include "dsm/sync/background_flusher.hpp"
#include "omp/runtime_core.hpp"

namespace hiroba::omp {

namespace {
constexpr std::uint64_t age_for_each_node_ns = 2'000'000;  ///< of a region, before the first time
constexpr std::uint64_t turn_ns = 5'000'000;               ///< of a node; then it is another's
/// Where publishing takes long a node publishes less often: the pause grows to this many times the
/// duration of the publishing, but by no more than a round of all nodes.
constexpr std::uint64_t share_of_time = 20;
constexpr std::uint64_t look_min_ns = 1'000'000, look_max_ns = 50'000'000;

void sleep_for(std::uint64_t ns) noexcept {
    const timespec pause{0, static_cast<long>(ns)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
}
}  // namespace

/// Starts no watch where all nodes tell all others anyway.
void RuntimeCore::start_watch() {
    if (link_ == nullptr || parts_.flusher == nullptr || nodes_ <= net::kick::tree_arity) return;
    link_->publish_elsewhere();
    parts_.flusher->stand_apart();
    watch_ = start_service_thread("publishes what long regions write", [this] { watch_regions(); });
}

// Node 0 knows when a region is over on all nodes; the others ask before they publish.
void RuntimeCore::watch_regions() noexcept {
    const std::uint64_t age_ns = nodes_ * age_for_each_node_ns + node_ * turn_ns;
    const std::uint64_t look_ns =
        std::clamp(nodes_ * age_for_each_node_ns / 4, look_min_ns, look_max_ns);
    std::uint64_t region = 0, next_ns = 0;
    while (!over_.load(std::memory_order_relaxed)) {  // ends some time after it is set
        sleep_for(look_ns);
        const bool hurry = parts_.memory->somebody_spins();
        parts_.flusher->set_active(hurry);
        const TeamLink::Begun begun = link_->begun();
        if (begun.region != region) {
            region = begun.region;
            next_ns = begun.at_ns + age_ns;
        }
        if (region == 0 || now_ns() < next_ns || over_.load(std::memory_order_relaxed)) continue;
        if (segment_words_->load(Workshare::region_over) >= region) {
            next_ns = ~std::uint64_t{0};
            continue;
        }
        const std::uint64_t begin = now_ns();
        parts_.memory->flush_aside();
        const std::uint64_t took = now_ns() - begin;
        const std::uint64_t round_ns = nodes_ * turn_ns;
        next_ns = now_ns() + std::clamp(share_of_time * took, round_ns, 2 * round_ns);
    }
}

}  // namespace hiroba::omp
