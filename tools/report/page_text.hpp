// SPDX-License-Identifier: BSD-3-Clause
// Role: the parts of the page, which the build makes of the files in tools/report/page.
#pragma once

namespace hiroba::tools {

extern const char* const page_html;
extern const char* const page_css;
extern const char* const page_js;

}  // namespace hiroba::tools
