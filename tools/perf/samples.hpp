// SPDX-License-Identifier: BSD-3-Clause
// Role: figures and what is said of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace hiroba::tools::perf_parts {

/// Nanoseconds for one operation, one sample a batch, taken in turn.
struct Measured {
    std::vector<double> test;
    std::vector<double> floor;
    /// Samples of a floor that also authenticates what it moves; empty where there is none.
    std::vector<double> authenticated_floor;
    bool verified = false;  ///< the answers were right
};

/// The value below which `share` of the samples lie. Not of none.
inline double quantile(std::vector<double> samples, double share) {
    std::sort(samples.begin(), samples.end());
    const double at = share * static_cast<double>(samples.size() - 1);
    return samples[static_cast<std::size_t>(std::lround(at))];
}

}  // namespace hiroba::tools::perf_parts
