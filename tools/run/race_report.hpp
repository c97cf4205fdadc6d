// SPDX-License-Identifier: BSD-3-Clause
// Role: prints the races that nodes report, each place once.
// Invariant: at most lines_max lines unless the user asked for all of them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <set>
#include <string>

#include "net/bootstrap/control_packet.hpp"
#include "tools/run/symbol.hpp"

namespace hiroba::tools {

class RaceReport {
public:
    enum class Volume { none, some, all };  ///< HIROBA_RACE off, report or abort, all
    static constexpr std::size_t lines_max = 20;

    /// @param process  whose files name the addresses; every node has the same layout
    RaceReport(Volume volume, pid_t process) : volume_(volume), names_(process) {}

    /// @param name  of the place, where it is known already
    void add(const net::RaceBody& race, const std::string& name);
    /// Says how many places were not printed.
    void finish() const;

private:
    Volume volume_;
    AddressNames names_;
    std::set<std::uint64_t> seen_;
};

}  // namespace hiroba::tools
