// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba report`: what a recorded run did, and why it was slow.
#pragma once

#include <string>

namespace hiroba::tools {

struct ReportOptions {
    std::string file;
    bool json = false;
    std::string html;      ///< file for a page
    std::string beside;    ///< another recording, to be shown on the same page
    std::string perfetto;  ///< file for a trace that ui.perfetto.dev opens
};

/// Returns the exit status.
int report_on(const ReportOptions& options);

}  // namespace hiroba::tools
