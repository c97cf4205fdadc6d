// SPDX-License-Identifier: BSD-3-Clause
// Role: prints the races that nodes report, each place once.
// Invariant: at most lines_max lines unless the user asked for all of them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "net/bootstrap/control_packet.hpp"
#include "tools/run/plan.hpp"
#include "tools/run/symbol.hpp"

namespace hiroba::tools {

/// Returns the function that the compiler made of the region in which `place` lies, and the
/// function in whose source the region stands: "main._omp_fn.0" and "main" for "barrier at a.c:7
/// (main._omp_fn.0)". Empty where `place` names no region.
std::vector<std::string> functions_of_region(std::string_view place);

class RaceReport {
public:
    enum class Volume { none, some, all };  ///< HIROBA_RACE off, report or abort, all
    static constexpr std::size_t lines_max = 20;

    /// @param process  whose files name the addresses; every node has the same layout
    /// @param plan     whose threads are known when the first race is; outlives the report
    RaceReport(Volume volume, pid_t process, const RunPlan& plan)
        : volume_(volume), plan_(plan), process_(process), names_(process) {}

    /// @param names  "variable\nplace", where they are known already
    void add(const net::RaceBody& race, const std::string& names);
    /// The races that had a line of their own, in order.
    const std::vector<net::RaceBody>& told() const { return told_; }
    /// The names of the process above.
    AddressNames& names() { return names_; }
    /// Says how many places were not printed and, of a run that is not recorded, which variables
    /// raced.
    void finish() const;

private:
    /// How often a node is stopped to find out whose frame an address lies in.
    static constexpr unsigned looks_max = 8;
    static std::string when(const SyncPlace& place, std::string_view name);
    std::string where(const net::RaceBody& race, std::string_view known, std::string_view place);
    static std::string variable_of(std::string_view what);
    std::string summary() const;
    std::string frame_of(std::uint64_t address, std::string_view place);

    Volume volume_;
    const RunPlan& plan_;
    pid_t process_;
    unsigned looks_ = 0;
    AddressNames names_;
    std::set<std::uint64_t> seen_;
    std::vector<net::RaceBody> told_;
    std::map<std::string, std::size_t> places_in_;  ///< by variable
};

}  // namespace hiroba::tools
