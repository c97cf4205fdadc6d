// SPDX-License-Identifier: BSD-3-Clause
// Role: what the test programs of the relocatable space share.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "hiroba/gas.hpp"

namespace gas_test {

/// Joins the job or ends the process.
inline std::unique_ptr<hiroba::gas::space> join() {
    std::string why;
    auto space = hiroba::gas::space::open(&why);
    if (space != nullptr) return space;
    std::fprintf(stderr, "%s\n", why.c_str());
    std::exit(78);
}

/// Ends the process unless `good`.
inline void insist(bool good, const char* what, const std::string& why = "") {
    if (good) return;
    std::fprintf(stderr, "WRONG: %s %s\n", what, why.c_str());
    std::_Exit(1);
}
inline void insist(const hiroba::gas::Status& status, const char* what) {
    insist(static_cast<bool>(status), what, status.text());
}

}  // namespace gas_test
