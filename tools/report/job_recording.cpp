// SPDX-License-Identifier: BSD-3-Clause
#include "tools/report/job_recording.hpp"

#include <stdlib.h>

#include <filesystem>

#include "base/settings.hpp"
#include "tools/line.hpp"
#include "tools/report/names.hpp"
#include "tools/report/race_sites.hpp"

namespace hiroba::tools {

void JobRecording::make_name_absolute() {
    const std::string_view name = setting("HIROBA_RECORD");
    if (name.empty()) return;
    std::error_code failed;
    const auto whole = std::filesystem::absolute(name, failed);
    if (!failed) ::setenv("HIROBA_RECORD", whole.c_str(), 1);
}

Result<JobRecording> JobRecording::begin(const std::vector<std::string>& command,
                                         std::uint32_t nodes, std::uint32_t threads) {
    JobRecording recording;
    recording.path_ = setting("HIROBA_RECORD");
    if (!recording.is_on()) return recording;
    RecordedJob& job = recording.job_;
    job.nodes = nodes;
    job.threads = threads;
    for (const std::string& word : command) job.command += (job.command.empty() ? "" : " ") + word;
    for (char& each : job.command)
        if (each == '\n') each = ' ';
    std::error_code ignored;
    job.folder = std::filesystem::current_path(ignored).string();
    job.begin = clocks_now();
    if (auto begun = begin_archive(recording.path_, job); !begun) return begun.error();
    return recording;
}

void JobRecording::finish(int status, std::uint32_t threads, std::span<const net::RaceBody> races) {
    if (!is_on()) return;
    job_.status = status;
    job_.threads = threads;
    job_.end = clocks_now();
    if (const auto renewed = renew_archive(path_, job_); !renewed) {
        report(renewed.error());
        return;
    }
    const auto archive = open_archive(path_);
    if (!archive) {
        report(archive.error());
        return;
    }
    job_.files = archive->job.files;
    job_.file_stamps = archive->job.file_stamps;
    const Recording recording = decode(*archive);
    const Names names = Names::of(recording);
    for (const std::string& sentence : sites_of_races(recording, names, races)) say_line(sentence);
    if (const auto finished = finish_archive(path_, job_, names.text()); !finished)
        report(finished.error());
}

}  // namespace hiroba::tools
