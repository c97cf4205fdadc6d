// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba info`: what this build is, what this machine offers it, and every setting.
#pragma once

#include <string>

namespace hiroba::tools {

struct InfoOptions {
    bool json = false;
    bool settings = false;  ///< -c: variables with value, default, origin and help
    bool all = false;       ///< --all, with -c: also those for tests and for builders of runtimes
    bool limits = false;    ///< -l: a verdict on each limit; exit status 78 when one is too low
    bool memory = false;    ///< what a rank of a job of `nodes` keeps in memory
    std::string nodes;      ///< of --memory; empty: 4
    std::string provider;   ///< of --memory; empty: as HIROBA_PROVIDER says
};

int info(const InfoOptions& options);

}  // namespace hiroba::tools
