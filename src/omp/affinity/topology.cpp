// SPDX-License-Identifier: BSD-3-Clause
// Role: what the kernel tells of this machine's processors.
// Invariant: what cannot be read makes a processor stand for itself (cores), or all of them one
// group (everything larger). Calls go to the kernel directly: the program's view of files is not
// asked.
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "dsm/memory/kernel_calls.hpp"
#include "omp/affinity/places.hpp"

namespace hiroba::omp {

namespace {

std::string read_file(const std::string& path) {
    const long file = dsm::kernel_call(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC, 0);
    if (file < 0) return "";
    char text[4096];
    const long bytes = dsm::kernel_call(SYS_read, file, text, sizeof text);
    dsm::kernel_call(SYS_close, file);
    return bytes > 0 ? std::string(text, static_cast<std::size_t>(bytes)) : "";
}

/// "0,2-5"
Processors parse_list(const std::string& text) {
    Processors list;
    for (const char* at = text.c_str(); *at >= '0' && *at <= '9';) {
        char* end = nullptr;
        const unsigned long first = std::strtoul(at, &end, 10);
        const unsigned long last = *end == '-' ? std::strtoul(end + 1, &end, 10) : first;
        for (unsigned long cpu = first; cpu <= last && cpu < CPU_SETSIZE; ++cpu)
            list.push_back(static_cast<std::uint32_t>(cpu));
        at = *end == ',' ? end + 1 : end;
    }
    return list;
}

/// The largest cache that has a list of those it serves.
Processors last_cache_of(const std::string& processor) {
    Processors found;
    for (int index = 0; index < 10; ++index) {
        const auto list = parse_list(
            read_file(processor + "/cache/index" + std::to_string(index) + "/shared_cpu_list"));
        if (list.size() >= found.size() && !list.empty()) found = list;
    }
    return found;
}

Processors companions(PlaceKind kind, std::uint32_t cpu, const std::string& root) {
    const std::string processor = root + "/cpu/cpu" + std::to_string(cpu);
    switch (kind) {
        case PlaceKind::threads: return {cpu};
        case PlaceKind::cores: {
            auto list = parse_list(read_file(processor + "/topology/thread_siblings_list"));
            return list.empty() ? Processors{cpu} : list;
        }
        case PlaceKind::sockets:
            return parse_list(read_file(processor + "/topology/core_siblings_list"));
        case PlaceKind::last_level_caches: return last_cache_of(processor);
        case PlaceKind::numa_domains:
            for (int node = 0; node < 1024; ++node) {
                const std::string text =
                    read_file(root + "/node/node" + std::to_string(node) + "/cpulist");
                auto list = parse_list(text);
                if (std::find(list.begin(), list.end(), cpu) != list.end()) return list;
                if (text.empty() && node > 64) break;
            }
    }
    return {};
}

}  // namespace

std::vector<Processors> group_processors(PlaceKind kind, const Processors& usable,
                                         const char* root) {
    std::vector<Processors> groups;
    Processors left = usable;
    while (!left.empty()) {
        Processors group = companions(kind, left.front(), root);
        if (group.empty()) group = usable;
        Processors place, rest;
        for (const std::uint32_t cpu : left)
            (std::find(group.begin(), group.end(), cpu) != group.end() ? place : rest)
                .push_back(cpu);
        if (place.empty()) place.push_back(left.front()), rest.erase(rest.begin());
        groups.push_back(place);
        left = rest;
    }
    return groups;
}

Processors own_processors() {
    cpu_set_t set;
    CPU_ZERO(&set);
    dsm::kernel_call(SYS_sched_getaffinity, 0, sizeof set, &set);
    Processors list;
    for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &set)) list.push_back(cpu);
    return list;
}

bool bind_to(const Processors& processors) noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const std::uint32_t cpu : processors) CPU_SET(cpu, &set);
    return dsm::kernel_call(SYS_sched_setaffinity, 0, sizeof set, &set) == 0;
}

}  // namespace hiroba::omp
