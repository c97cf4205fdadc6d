// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/bind.hpp"

#include <fmt/format.h>

#include "base/cpu_list.hpp"
#include "omp/affinity/places.hpp"

namespace hiroba::tools {

namespace {

std::string text_of(const std::vector<omp::Processors>& groups, std::size_t first,
                    std::size_t count) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (std::size_t i = first; i < first + count; ++i)
        for (const std::uint32_t cpu : groups[i]) CPU_SET(cpu, &set);
    return cpu_list(set);
}

}  // namespace

Result<void> bind_nodes(RunPlan& plan, std::string_view how) {
    if (how.empty() || how == "none") return {};
    const bool by_core = how == "core";
    if (!by_core && how != "numa")
        return Error{ErrorKind::usage, fmt::format("--bind-to {}: wanted core, numa or none", how)};
    const auto groups = omp::group_processors(
        by_core ? omp::PlaceKind::cores : omp::PlaceKind::numa_domains, omp::own_processors());
    const std::size_t nodes = plan.nodes_here(), threads = plan.threads_per_node;
    if (by_core && nodes * threads > groups.size())
        return Error{ErrorKind::environment,
                     fmt::format("--bind-to core: {} nodes of {} threads need {} cores, this job "
                                 "may use {}. Lower -n or --threads, or use --bind-to numa",
                                 nodes, threads, nodes * threads, groups.size())};
    for (std::size_t node = 0; node < nodes; ++node)
        plan.node_cpus.push_back(by_core ? text_of(groups, node * threads, threads)
                                         : text_of(groups, node * groups.size() / nodes, 1));
    return {};
}

}  // namespace hiroba::tools
