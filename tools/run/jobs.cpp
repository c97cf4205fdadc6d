// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/jobs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>

namespace hiroba::tools {

namespace {

std::optional<pid_t> number_of(const std::string& text) {
    pid_t number = 0;
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, number);
    if (parsed.ec != std::errc() || parsed.ptr != end || number <= 0) return std::nullopt;
    return number;
}

std::filesystem::path folder_of(pid_t process) { return fmt::format("/proc/{}", process); }

/// Words that end with a zero byte, as in /proc/PID/cmdline.
std::vector<std::string> words_in(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::vector<std::string> words;
    for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
    return words;
}

std::string link_at(const std::filesystem::path& path) {
    std::error_code failed;
    const auto target = std::filesystem::read_symlink(path, failed);
    return failed ? "" : target.string();
}

/// A program that was replaced since is still itself.
bool is_hiroba(pid_t process) {
    std::string name = std::filesystem::path(link_at(folder_of(process) / "exe")).filename();
    constexpr std::string_view replaced = " (deleted)";
    if (name.ends_with(replaced)) name.resize(name.size() - replaced.size());
    return name == "hiroba";
}

pid_t parent_of(pid_t process) {
    std::ifstream file(folder_of(process) / "status");
    constexpr std::string_view key = "PPid:";
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(key)) return std::atoi(line.c_str() + key.size());
    return 0;
}

std::vector<pid_t> processes() {
    std::vector<pid_t> found;
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", failed))
        if (const auto number = number_of(entry.path().filename())) found.push_back(*number);
    std::ranges::sort(found);
    return found;
}

/// The file that `hiroba run` was told to record into.
std::string recording_of(pid_t launcher, const RunningJob& job) {
    std::string file;
    for (const std::string& each : words_in(folder_of(launcher) / "environ"))
        if (each.starts_with("HIROBA_RECORD=")) file = each.substr(each.find('=') + 1);
    for (std::size_t at = 2; at < job.words.size() && job.words[at] != "--"; ++at) {
        if (job.words[at] == "--record" && at + 1 < job.words.size()) file = job.words[at + 1];
        constexpr std::string_view joined = "--record=";
        if (job.words[at].starts_with(joined)) file = job.words[at].substr(joined.size());
        if (!file.empty() && job.words[at].starts_with("--record")) break;
    }
    if (file.empty()) return file;
    return (std::filesystem::path(job.folder) / file).string();
}

/// What /proc tells of a launcher; nullopt: it is none.
std::optional<RunningJob> job_of(pid_t process) {
    if (!is_hiroba(process)) return std::nullopt;
    RunningJob job;
    job.launcher = process;
    job.words = words_in(folder_of(process) / "cmdline");
    if (job.words.size() < 2 || (job.words[1] != "run" && job.words[1] != "exec"))
        return std::nullopt;
    job.folder = link_at(folder_of(process) / "cwd");
    job.recording = recording_of(process, job);
    return job;
}

Error cannot_choose(const std::vector<RunningJob>& jobs, const std::string& command,
                    bool recorded) {
    const char* const kind = recorded ? " that is being recorded" : "";
    if (jobs.empty())
        return {ErrorKind::usage,
                fmt::format("no job of yours{} runs on this host. Start one, or ask on the host "
                            "where hiroba run was started: {}",
                            kind, command)};
    std::string list;
    for (const RunningJob& job : jobs)
        list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", job.launcher, job.command());
    return {ErrorKind::usage, fmt::format("{} jobs{} run on this host: {}. Name one: {}",
                                          jobs.size(), kind, list, command)};
}

}  // namespace

std::string RunningJob::command() const {
    std::string text = "hiroba";
    for (std::size_t at = 1; at < words.size(); ++at) text += " " + words[at];
    constexpr std::size_t shown_most = 60;
    for (char& each : text)
        if (static_cast<unsigned char>(each) < ' ') each = ' ';
    return text.size() > shown_most ? text.substr(0, shown_most) + "..." : text;
}

std::vector<RunningJob> running_jobs() {
    std::vector<RunningJob> jobs;
    for (const pid_t process : processes()) {
        auto job = job_of(process);
        // A node that is being started still has its launcher's words.
        if (job && !job_of(parent_of(process))) jobs.push_back(std::move(*job));
    }
    return jobs;
}

Result<RunningJob> find_job(const std::string& process, const std::string& command, bool recorded) {
    if (!process.empty()) {
        const auto number = number_of(process);
        auto job = number ? job_of(*number) : std::nullopt;
        if (!job)
            return Error{ErrorKind::usage,
                         fmt::format("{} is no process of hiroba run. Use {}, with the PID of "
                                     "hiroba run",
                                     process, command)};
        return std::move(*job);
    }
    std::vector<RunningJob> jobs = running_jobs();
    if (recorded) std::erase_if(jobs, [](const auto& job) { return job.recording.empty(); });
    if (jobs.size() > 1) {
        std::error_code failed;
        const std::string here = std::filesystem::current_path(failed).string();
        std::vector<RunningJob> own;
        std::ranges::copy_if(jobs, std::back_inserter(own),
                             [&](const auto& job) { return job.folder == here; });
        if (own.size() == 1) jobs = std::move(own);
    }
    if (jobs.size() != 1) return cannot_choose(jobs, command, recorded);
    return std::move(jobs[0]);
}

std::map<std::uint32_t, pid_t> nodes_of(const RunningJob& job) {
    std::map<std::uint32_t, pid_t> nodes;
    for (const pid_t process : processes()) {
        if (parent_of(process) != job.launcher) continue;
        for (const std::string& each : words_in(folder_of(process) / "environ")) {
            constexpr std::string_view key = "HIROBA_JOB_RANK=";
            if (!each.starts_with(key)) continue;
            nodes[static_cast<std::uint32_t>(std::atoi(each.c_str() + key.size()))] = process;
        }
    }
    return nodes;
}

}  // namespace hiroba::tools
