// SPDX-License-Identifier: BSD-3-Clause
// Role: prints the races that nodes report, each place once.
// Invariant: at most lines_max lines unless the user asked for all of them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "net/bootstrap/control_packet.hpp"
#include "tools/run/symbol.hpp"

namespace hiroba::tools {

class RaceReport {
public:
    enum class Volume { none, some, all };  ///< HIROBA_RACE off, report or abort, all
    static constexpr std::size_t lines_max = 20;

    /// @param process  whose files name the addresses; every node has the same layout
    RaceReport(Volume volume, pid_t process, std::uint32_t threads_per_node)
        : volume_(volume), process_(process), threads_per_node_(threads_per_node) {}

    void add(const net::RaceBody& race);
    /// Says how many places were not printed.
    void finish() const;

private:
    std::string where(const net::RaceBody& race);

    Volume volume_;
    pid_t process_;
    std::uint32_t threads_per_node_;
    std::vector<LoadedFile> files_;
    std::set<std::uint64_t> seen_;
};

}  // namespace hiroba::tools
