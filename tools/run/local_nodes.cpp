// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/local_nodes.hpp"

#include <fmt/format.h>
#include <signal.h>

#include "tools/run/stacks.hpp"
#include "tools/run/stillness.hpp"

namespace hiroba::tools {

std::string LocalNodes::name_of(std::uint32_t rank) const {
    return fmt::format("rank {} (process {})", rank, nodes_[rank].pid);
}

std::vector<NodeEvent> LocalNodes::take_events() { return reap_nodes(nodes_); }

void LocalNodes::signal(std::uint32_t rank, int number) {
    if (nodes_[rank].alive) ::kill(nodes_[rank].pid, number);
}

std::uint64_t LocalNodes::kernel_time_ns(std::uint32_t rank) const {
    return tools::kernel_time_ns(nodes_[rank].pid);
}

std::uint64_t LocalNodes::processor_time_ns() { return tools::processor_time_ns(nodes_); }

// A program that has no use for the signal would die of it.
void LocalNodes::user_signal() {
    if (nodes_[0].alive && !uses_user_signal(nodes_[0].pid))
        print_stacks();
    else
        signal(0, SIGUSR1);
}

void LocalNodes::print_stacks() { tools::print_stacks(nodes_); }

void LocalNodes::tell_waits() { tools::tell_waits(nodes_); }

}  // namespace hiroba::tools
