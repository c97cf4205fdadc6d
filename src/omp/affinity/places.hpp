// SPDX-License-Identifier: BSD-3-Clause
// Role: places, and which thread of a team goes to which (OpenMP 5.2, sections 10.1.3 and 21.1.6).
// Invariant: places are those of one node: a team's threads on a node are dealt out to that node's
// places as if they were the whole team. All but own_processors() and bind_to() are pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace hiroba::omp {

/// Numbers of processors as the kernel has them, rising.
using Processors = std::vector<std::uint32_t>;

/// The numbers are those of omp_proc_bind_t.
enum class ProcBind : std::uint8_t { none = 0, any = 1, primary = 2, close = 3, spread = 4 };

/// Where a thread is, and the places that its team's threads may be dealt out to.
struct Binding {
    static constexpr std::uint32_t nowhere = UINT32_MAX;
    std::uint32_t place = nowhere;
    std::uint32_t first = 0, count = 0;
};

/// Which processors belong together, as /sys tells; `root` has the folders cpu and node.
enum class PlaceKind : std::uint8_t { threads, cores, sockets, last_level_caches, numa_domains };
std::vector<Processors> group_processors(PlaceKind kind, const Processors& usable,
                                         const char* root = "/sys/devices/system");

/// Reads OMP_PLACES. Processors that are not usable are left out, and so are places without any.
/// False: it is no such value, or no place is left; `places` is unchanged.
bool read_places(std::string_view text, const Processors& usable, std::vector<Processors>& places,
                 const char* root = "/sys/devices/system");
/// The same for GOMP_CPU_AFFINITY: each processor a place.
bool read_cpu_affinity(std::string_view text, const Processors& usable,
                       std::vector<Processors>& places);
/// Reads OMP_PROC_BIND: one word, or a policy for each level.
bool read_proc_bind(std::string_view text, std::vector<ProcBind>& levels);

/// Where `threads` threads go; the first is the leader's, which stays where it is.
/// @param leader  with a place in its partition
std::vector<Binding> deal_out(ProcBind policy, std::uint32_t threads, const Binding& leader);

Processors own_processors();
/// Binds the calling thread. False: the kernel did not want it.
bool bind_to(const Processors& processors) noexcept;

}  // namespace hiroba::omp
