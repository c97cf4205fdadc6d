// SPDX-License-Identifier: BSD-3-Clause
// A node that waits looks now and then whether a handler of the program has to run, and its service
// threads sleep for a while at most: some thousandths of a processor.
#include "tools/run/stillness.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "base/settings.hpp"

namespace hiroba::tools {

namespace {

/// A node that uses less of a processor than one part in so many waits. A job never does that uses
/// half of one.
constexpr std::uint64_t still_part = 25, busy_part = 2;
/// A limit is divided into so many looks.
constexpr std::uint64_t looks = 6;

/// Fields `first` to `last` of /proc/<pid>/stat, added up.
std::uint64_t ticks_ns(pid_t process, int first, int last) {
    std::ifstream file(fmt::format("/proc/{}/stat", process));
    std::string text;
    std::getline(file, text);
    // The name in brackets may hold anything; the third field is behind it.
    std::istringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));
    std::string field;
    for (int i = 3; i < first; ++i) fields >> field;
    std::uint64_t sum = 0, ticks = 0;
    for (int i = first; i <= last && fields >> ticks; ++i) sum += ticks;
    return sum * (1'000'000'000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)));
}

constexpr int of_program = 14, of_kernel = 15;

}  // namespace

Result<std::uint64_t> still_limit_ns() {
    const auto seconds = setting_number("HIROBA_STILL");
    if (!seconds) return seconds.error();
    return *seconds * 1'000'000'000;
}

std::uint64_t processor_time_ns(pid_t process) { return ticks_ns(process, of_program, of_kernel); }
std::uint64_t processor_time_ns(const std::vector<NodeProcess>& nodes) {
    std::uint64_t sum = 0;
    for (const NodeProcess& node : nodes)
        if (node.alive) sum += processor_time_ns(node.pid);
    return sum;
}

std::uint64_t kernel_time_ns(pid_t process) { return ticks_ns(process, of_kernel, of_kernel); }

std::uint64_t Stillness::next_look_ns() const {
    return limit_ns_ == 0 || told_ ? std::numeric_limits<std::uint64_t>::max()
                                   : looked_ns_ + limit_ns_ / looks;
}

bool Stillness::look(std::uint64_t now, std::uint64_t used_ns, std::uint32_t nodes) {
    const std::uint64_t passed = now - looked_ns_;
    const std::uint64_t used = used_ns > used_ns_ ? used_ns - used_ns_ : 0;
    const bool still = used < std::min(passed / still_part * nodes, passed / busy_part);
    looked_ns_ = now;
    used_ns_ = used_ns;
    still_ns_ = still ? still_ns_ + passed : 0;
    told_ = still_ns_ >= limit_ns_;
    return told_;
}

}  // namespace hiroba::tools
