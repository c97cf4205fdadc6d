// SPDX-License-Identifier: BSD-3-Clause
#include "tools/report/report.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "base/fatal.hpp"
#include "tools/line.hpp"
#include "tools/report/output.hpp"

namespace hiroba::tools {

namespace {

/// A recording keeps the names; one of a job that was killed has them looked up now.
void warn_of_changed_files(Recording& recording) {
    if (!recording.names.empty()) return;
    const auto now = stamps_of(recording.job.files);
    for (std::size_t at = 0; at < now.size(); ++at) {
        if (at >= recording.job.file_stamps.size()) break;
        if (now[at] == recording.job.file_stamps[at]) continue;
        recording.notes.push_back(recording.job.files[at].path +
                                  " has changed since the run: lines may be wrong");
    }
}

int write_to(const std::string& path, const auto& write) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    if (out) write(out);
    if (out.flush()) return 0;
    say_line(fmt::format("{} cannot be written: {}. Name another file", path, ::strerror(errno)));
    return exit_environment;
}

/// A recording with what it comes to, which refers to it.
struct Run {
    Recording recording;
    Analysis analysis;
};

Result<std::unique_ptr<Run>> read_run(const std::string& file) {
    const auto archive = open_archive(file);
    if (!archive) return archive.error();
    auto run = std::make_unique<Run>();
    run->recording = decode(*archive);
    warn_of_changed_files(run->recording);
    run->analysis = analyse(run->recording);
    return run;
}

int write_page(const ReportOptions& options, const Run& run) {
    std::vector<NamedAnalysis> runs = {{options.file, &run.analysis}};
    std::unique_ptr<Run> other;
    if (!options.beside.empty()) {
        auto read = read_run(options.beside);
        if (!read) return report(read.error());
        other = std::move(*read);
        runs.push_back({options.beside, &other->analysis});
    }
    return write_to(options.html, [&](std::ostream& out) { out << report_page(runs); });
}

}  // namespace

int report_on(const ReportOptions& options) {
    const auto run = read_run(options.file);
    if (!run) return report(run.error());
    const Analysis& analysis = (*run)->analysis;
    if (!options.html.empty()) return write_page(options, **run);
    if (!options.perfetto.empty())
        return write_to(options.perfetto, [&](std::ostream& out) { write_trace(analysis, out); });
    const std::string text = options.json ? report_json(analysis) : report_text(analysis);
    [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    return 0;
}

}  // namespace hiroba::tools
