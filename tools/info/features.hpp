// SPDX-License-Identifier: BSD-3-Clause
// Role: what the kernel lets this process do, found by trying.
#pragma once

#include <string>
#include <vector>

namespace hiroba::tools {

struct Feature {
    std::string name;
    bool usable = false;
    std::string detail;  ///< why not, or what it is needed for
};

/// Tries each feature the runtime cares about; leaves no trace in this process but the
/// personality's ADDR_NO_RANDOMIZE.
std::vector<Feature> try_features();

}  // namespace hiroba::tools
