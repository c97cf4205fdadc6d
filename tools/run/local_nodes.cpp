// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/local_nodes.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tools/run/stacks.hpp"

namespace hiroba::tools {

std::string LocalNodes::name_of(std::uint32_t rank) const {
    return fmt::format("rank {} (process {})", rank, nodes_[rank].pid);
}

std::vector<NodeEvent> LocalNodes::take_events() { return reap_nodes(nodes_); }

void LocalNodes::signal(std::uint32_t rank, int number) {
    if (nodes_[rank].alive) ::kill(nodes_[rank].pid, number);
}

std::uint64_t LocalNodes::kernel_time_ns(std::uint32_t rank) const {
    std::ifstream file(fmt::format("/proc/{}/stat", nodes_[rank].pid));
    std::string text;
    std::getline(file, text);
    // The name in brackets may hold anything; the third field is behind it.
    std::istringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));
    constexpr int of_kernel = 15, first = 3;
    std::string field;
    for (int i = first; i <= of_kernel; ++i) fields >> field;
    const std::uint64_t ticks = std::strtoull(field.c_str(), nullptr, 10);
    return ticks * (1'000'000'000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)));
}

// A program that has no use for the signal would die of it.
void LocalNodes::user_signal() {
    if (nodes_[0].alive && !uses_user_signal(nodes_[0].pid))
        print_stacks();
    else
        signal(0, SIGUSR1);
}

void LocalNodes::print_stacks() { tools::print_stacks(nodes_); }

}  // namespace hiroba::tools
