// SPDX-License-Identifier: BSD-3-Clause
// Role: the thresholds.
#include "tools/info/limits.hpp"

#include <fmt/format.h>

#include "tools/run/plan.hpp"

namespace hiroba::tools {

namespace {

std::string count_text(std::uint64_t count) {
    return count == unlimited ? "unlimited" : fmt::format("{}", count);
}

}  // namespace

std::vector<LimitVerdict> judge_limits(const Machine& machine, std::uint32_t nodes,
                                       std::uint64_t heap_bytes, bool pins) {
    std::vector<LimitVerdict> all;
    const auto bytes = [&](const char* name, std::uint64_t has, std::uint64_t needs,
                           const char* setting) {
        const bool enough = has >= needs;
        all.push_back(
            {name, size_text(has), enough,
             enough ? "" : fmt::format("{} nodes need {}: {}", nodes, size_text(needs), setting)});
    };
    const auto count = [&](const char* name, std::uint64_t has, std::uint64_t needs,
                           const char* setting) {
        const bool enough = has >= needs;
        all.push_back(
            {name, count_text(has), enough,
             enough ? "" : fmt::format("{} nodes need about {}: {}", nodes, needs, setting)});
    };
    const std::uint64_t space = nodes * heap_bytes;
    bytes("memory available", machine.memory_available, nodes * node_memory_min, "add memory");
    bytes("memory left in the control group", machine.memory_cgroup, nodes * node_memory_min,
          "raise memory.max");
    bytes("address space (ulimit -v)", machine.address_space_bytes, 2 * space,
          "raise ulimit -v or lower HIROBA_HEAP");
    bytes("file size (ulimit -f)", machine.file_bytes, space,
          "raise ulimit -f or lower HIROBA_HEAP");
    bytes("stack (ulimit -s)", machine.stack_bytes, std::uint64_t{1} << 20, "raise ulimit -s");
    // Each process needs these; what a program uses comes on top.
    bytes("locked memory (ulimit -l)", machine.locked_bytes, pins ? node_memory_min : 0,
          "raise ulimit -l to unlimited (memlock in /etc/security/limits.conf): provider verbs "
          "pins what is used");
    count("open files (ulimit -n)", machine.open_files, 64 + 8 * std::uint64_t{nodes},
          "raise ulimit -n");
    count("processes (ulimit -u)", machine.processes, 4 * std::uint64_t{nodes}, "raise ulimit -u");
    // An mprotect engine splits a mapping at every change of access.
    count("mappings of a process (vm.max_map_count)", machine.mappings_max, 65530,
          "sysctl vm.max_map_count=262144");
    return all;
}

}  // namespace hiroba::tools
