// SPDX-License-Identifier: BSD-3-Clause
// Role: the lines at which two nodes wrote what they raced for, as far as recorded faults tell, and
// the line that allocated it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "net/bootstrap/control_packet.hpp"
#include "tools/report/names.hpp"
#include "tools/report/recording.hpp"

namespace hiroba::tools {

/// A sentence for each race of which at least one line is known.
std::vector<std::string> sites_of_races(const Recording& recording, const Names& names,
                                        std::span<const net::RaceBody> races);

}  // namespace hiroba::tools
