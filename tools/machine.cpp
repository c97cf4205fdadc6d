// SPDX-License-Identifier: BSD-3-Clause
// Role: reads limits from getrlimit, /proc and both generations of control groups.
#include "tools/machine.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace hiroba::tools {

namespace {

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

std::optional<std::uint64_t> number_in(const std::string& text) {
    std::istringstream stream(text);
    std::uint64_t value = 0;
    if (text.starts_with('-') || !(stream >> value)) return std::nullopt;
    return value;
}

std::uint64_t soft_limit(int resource) {
    rlimit limit{};
    // The enum type of the C library differs from int in C++.
    if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return unlimited;
    return limit.rlim_cur == RLIM_INFINITY ? unlimited : limit.rlim_cur;
}

std::uint64_t available_memory(const std::string& root) {
    std::ifstream file(root + "/proc/meminfo");
    std::string line;
    while (std::getline(file, line)) {
        if (!line.starts_with("MemAvailable:")) continue;
        const auto kilobytes = number_in(line.substr(line.find(':') + 1));
        return kilobytes ? *kilobytes * 1024 : unlimited;
    }
    return unlimited;
}

/// The group of this process in the hierarchy of `controller` ("" for the unified one), and all
/// groups above it, innermost first.
std::vector<std::string> groups(const std::string& root, std::string_view controller) {
    std::ifstream file(root + "/proc/self/cgroup");
    std::vector<std::string> found;
    std::string line;
    while (std::getline(file, line)) {
        const auto first = line.find(':');
        const auto second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string list = "," + line.substr(first + 1, second - first - 1) + ",";
        const bool matches = controller.empty()
                                 ? list == ",,"
                                 : list.find("," + std::string(controller) + ",") != list.npos;
        if (!matches) continue;
        std::string path = line.substr(second + 1);
        // Inside a container the path may be the host's; the mount's own root holds then.
        for (; path.size() > 1; path.erase(path.rfind('/'))) found.push_back(path);
        found.push_back("");
        break;
    }
    return found;
}

void narrow(std::uint64_t& tightest, const std::string& limit_path, const std::string& used_path) {
    const auto limit = number_in(first_line(limit_path));
    if (!limit) return;
    const auto used = number_in(first_line(used_path));
    tightest = std::min(tightest, *limit - std::min(*limit, used.value_or(0)));
}

std::uint64_t cgroup_memory(const std::string& root) {
    std::uint64_t tightest = unlimited;
    for (const std::string& group : groups(root, "")) {
        const std::string base = root + "/sys/fs/cgroup" + group + "/memory.";
        narrow(tightest, base + "max", base + "current");
    }
    for (const std::string& group : groups(root, "memory")) {
        const std::string base = root + "/sys/fs/cgroup/memory" + group + "/memory.";
        narrow(tightest, base + "limit_in_bytes", base + "usage_in_bytes");
    }
    // The first generation writes "no limit" as the largest page-aligned number.
    return tightest >= (std::uint64_t{1} << 62) ? unlimited : tightest;
}

std::optional<double> cgroup_cores(const std::string& root) {
    std::optional<double> tightest;
    const auto narrow_to = [&](double quota, double period) {
        if (quota <= 0 || period <= 0) return;
        tightest = std::min(tightest.value_or(quota / period), quota / period);
    };
    for (const std::string& group : groups(root, "")) {
        std::istringstream line(first_line(root + "/sys/fs/cgroup" + group + "/cpu.max"));
        double quota = 0, period = 0;
        if (line >> quota >> period) narrow_to(quota, period);
    }
    for (const std::string& group : groups(root, "cpu")) {
        const std::string base = root + "/sys/fs/cgroup/cpu" + group + "/cpu.cfs_";
        const auto quota = number_in(first_line(base + "quota_us"));
        const auto period = number_in(first_line(base + "period_us"));
        if (quota && period) narrow_to(static_cast<double>(*quota), static_cast<double>(*period));
    }
    return tightest;
}

}  // namespace

std::uint32_t Machine::cores() const {
    double cores = cores_affinity;
    if (cores_quota) cores = std::min(cores, std::ceil(*cores_quota));
    return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(cores));
}

Machine look_at_machine(const std::string& root) {
    Machine machine;
    utsname name{};
    if (::uname(&name) == 0) machine.kernel = name.release;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) == 0)
        machine.cores_affinity = static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&set)));
    machine.cores_quota = cgroup_cores(root);
    machine.memory_available = available_memory(root);
    machine.memory_cgroup = cgroup_memory(root);
    machine.stack_bytes = soft_limit(RLIMIT_STACK);
    machine.address_space_bytes = soft_limit(RLIMIT_AS);
    machine.file_bytes = soft_limit(RLIMIT_FSIZE);
    machine.locked_bytes = soft_limit(RLIMIT_MEMLOCK);
    machine.open_files = soft_limit(RLIMIT_NOFILE);
    machine.processes = soft_limit(RLIMIT_NPROC);
    machine.mappings_max =
        number_in(first_line(root + "/proc/sys/vm/max_map_count")).value_or(unlimited);
    machine.overcommit = first_line(root + "/proc/sys/vm/overcommit_memory");
    return machine;
}

std::string size_text(std::uint64_t bytes) {
    if (bytes == unlimited) return "unlimited";
    constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
    const bool whole = value == std::floor(value);
    return fmt::format("{:.{}f} {}", value, whole ? 0 : 1, units[unit]);
}

bool fix_addresses() {
    constexpr unsigned long ask = 0xffffffff;
    const int now = ::personality(ask);
    if (now < 0) return false;
    if (::personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) < 0) return false;
    // Some sandboxes accept the call and ignore it.
    if (::personality(ask) & ADDR_NO_RANDOMIZE) return true;
    errno = ENOSYS;
    return false;
}

}  // namespace hiroba::tools
