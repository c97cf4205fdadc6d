// SPDX-License-Identifier: BSD-3-Clause
// Role: for tests, the scheduler's slice of a thread.
#pragma once

#include <fstream>
#include <string>

namespace hiroba {

/// What the kernel says of this thread's slice; 0 where it does not tell.
inline double slice_of_this_thread() {
    std::ifstream file("/proc/thread-self/sched");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("se.slice")) return std::stod(line.substr(line.find(':') + 1));
    }
    return 0;
}

}  // namespace hiroba
