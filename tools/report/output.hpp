// SPDX-License-Identifier: BSD-3-Clause
// Role: the forms of a report.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "tools/json.hpp"
#include "tools/report/analysis.hpp"

namespace hiroba::tools {

std::string report_text(const Analysis& analysis);
std::string report_json(const Analysis& analysis);
/// The same, to be added to.
Json json_of(const Analysis& analysis);

/// A run, by the file it was recorded in.
struct NamedAnalysis {
    std::string file;
    const Analysis* analysis = nullptr;
};
/// One HTML file, which opens without a network.
/// @param runs  one, or two to be compared
std::string report_page(std::span<const NamedAnalysis> runs);

/// What a span is called; empty: the kind is none.
const char* name_of_span(RecordKind kind);
/// Trace events that ui.perfetto.dev and chrome://tracing open: a process a node, a track a thread.
void write_trace(const Analysis& analysis, std::ostream& out);

}  // namespace hiroba::tools
