// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba check`: what a run would make of a program, told before it runs.
// Invariant: nothing of the program is executed.
#pragma once

#include <string>

namespace hiroba::tools {

struct CheckOptions {
    std::string program;
    bool json = false;
};

/// Prints what survey() finds. Status 0: nothing ends a run for certain; 78: something does; 64:
/// there is no such program.
int check(const CheckOptions& options);

}  // namespace hiroba::tools
