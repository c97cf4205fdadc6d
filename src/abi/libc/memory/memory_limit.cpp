// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/memory/memory_limit.hpp"

#include <fcntl.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "base/settings.hpp"

namespace hiroba::abi {
namespace {

constinit MemoryLimit limit;

/// A file of the kernel's; empty when it cannot be read.
std::string text_of(const std::string& path) {
    std::string text;
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return text;
    char piece[1024];
    for (ssize_t got; (got = read(fd, piece, sizeof piece)) > 0;) {
        text.append(piece, static_cast<std::size_t>(got));
    }
    close(fd);
    return text;
}

/// "max" is no number, and no limit.
std::uint64_t number_in(const std::string& path) {
    const std::string text = text_of(path);
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    return parsed.ec == std::errc{} ? value : UINT64_MAX;
}

/// The least limit of a group and all above it.
std::uint64_t least_up_from(const std::string& root, std::string path, const char* file) {
    std::uint64_t least = UINT64_MAX;
    for (;;) {
        least = std::min(least, number_in(root + path + "/" + file));
        if (path.empty()) return least;
        path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
}

std::uint64_t machine_bytes() noexcept {
    struct sysinfo facts {};
    if (sysinfo(&facts) != 0) return UINT64_MAX;
    return (std::uint64_t{facts.totalram} + facts.totalswap) * facts.mem_unit;
}

}  // namespace

std::uint64_t group_memory_limit(std::string_view memberships, const char* root) {
    std::uint64_t least = UINT64_MAX;
    while (!memberships.empty()) {
        const std::string_view line = memberships.substr(0, memberships.find('\n'));
        memberships.remove_prefix(std::min(line.size() + 1, memberships.size()));
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (first == std::string_view::npos || second == std::string_view::npos) continue;
        const std::string_view controllers = line.substr(first + 1, second - first - 1);
        std::string path{line.substr(second + 1)};
        if (path == "/") path.clear();
        const std::string base{root};
        if (controllers.empty()) {
            least = std::min(least, least_up_from(base, path, "memory.max"));
        } else if (controllers.find("memory") != std::string_view::npos) {
            least = std::min(least, least_up_from(base + "/memory", path, "memory.limit_in_bytes"));
        }
    }
    return least;
}

void learn_memory_limit() noexcept {
    if (setting("HIROBA_MEMORY") != "auto") {
        const auto wanted = setting_number("HIROBA_MEMORY");
        if (wanted) limit = {*wanted, "HIROBA_MEMORY"};
        return;
    }
    limit = {machine_bytes(), "memory and swap of the machine"};
    const std::uint64_t group = group_memory_limit(text_of("/proc/self/cgroup"), "/sys/fs/cgroup");
    if (group < limit.bytes) limit = {group, "limit of the control group"};
}

const MemoryLimit& memory_limit() noexcept { return limit; }

bool fits_memory(std::uint64_t used, std::uint64_t bytes) noexcept {
    const std::uint64_t room = limit.bytes / copies_per_byte;
    return used <= room && bytes <= room - used;
}

}  // namespace hiroba::abi
