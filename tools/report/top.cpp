// SPDX-License-Identifier: BSD-3-Clause
// Invariant: a thread that waits has recorded that it came to the meeting, and not yet that it
// left.
#include "tools/report/top.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/fatal.hpp"
#include "tools/line.hpp"
#include "tools/report/names.hpp"
#include "tools/run/jobs.hpp"

namespace hiroba::tools {

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

/// What the last records of a thread say.
struct Doing {
    std::uint32_t node = 0, thread = 0;
    std::optional<std::pair<std::uint64_t, std::uint64_t>> waits_at;  ///< region, barrier
    bool in_region = false;
    std::uint64_t region = 0, passed = 0;  ///< barriers of the region
    std::int64_t since_ns = 0;
    std::uint32_t place = 0;
    std::uint64_t faults = 0, bytes = 0;  ///< in the last second

    /// Whether it has come to the meeting at which another one waits.
    bool has_come_to(const std::pair<std::uint64_t, std::uint64_t>& meeting) const {
        if (region != meeting.first) return region > meeting.first;
        if (waits_at) return waits_at->second >= meeting.second;
        return !in_region || passed > meeting.second;
    }
};
constexpr std::uint64_t end_of_region = ~std::uint64_t{0};

Doing doing_of(const Recording& recording, const Stream& stream, std::int64_t now_ns) {
    Doing doing;
    doing.node = stream.node;
    doing.thread = static_cast<std::uint32_t>(stream.thread) % recording.threads_per_node_most();
    for (const Event& event : stream.events) {
        const bool recent = now_ns - event.end_ns < second_ns;
        doing.place = event.place;
        if (event.kind == RecordKind::fault) doing.faults += recent;
        if (event.kind == RecordKind::fetched && recent) doing.bytes += event.second >> 32;
        switch (event.kind) {
            case RecordKind::region:
                if (event.first == 0) break;
                doing.in_region = true;
                doing.region = event.first;
                doing.passed = 0;
                break;
            case RecordKind::barrier_at:
                doing.waits_at = {event.first, event.second & 0xffff'ffff};
                break;
            case RecordKind::ends: doing.waits_at = {event.first, end_of_region}; break;
            case RecordKind::barrier:
                doing.passed = (event.second & 0xffff'ffff) + 1;
                doing.waits_at.reset();
                break;
            case RecordKind::join:
            case RecordKind::idle:
                doing.in_region = false;
                doing.waits_at.reset();
                break;
            default: continue;
        }
        doing.since_ns = event.end_ns;
    }
    return doing;
}

/// Threads that have not come, a few of them by name.
std::string late_ones(const std::vector<Doing>& all, const Doing& waiting) {
    constexpr unsigned named_most = 3;
    std::string text;
    unsigned count = 0;
    for (const Doing& other : all) {
        if (other.has_come_to(*waiting.waits_at)) continue;
        if (++count <= named_most)
            text += fmt::format("{}node {} thread {}", count == 1 ? "" : ", ", other.node,
                                other.thread);
    }
    if (count > named_most) text += fmt::format(" and {} more", count - named_most);
    return text;
}

std::string text_of(const std::vector<Doing>& all, const Doing& doing) {
    if (!doing.waits_at) return doing.in_region ? "computes" : "outside of regions";
    const std::string late = late_ones(all, doing);
    if (!late.empty()) return "waits for " + late;
    return doing.waits_at->second == end_of_region ? "waits for the next region"
                                                   : "leaves a barrier";
}

std::string duration_text(std::int64_t ns) {
    const auto value = static_cast<double>(std::max<std::int64_t>(ns, 0));
    return value >= 1e9 ? fmt::format("{:.1f} s", value / 1e9)
                        : fmt::format("{:.0f} ms", value / 1e6);
}

std::optional<double> seconds_of(const std::string& text) {
    double seconds = 1;
    if (text.empty()) return seconds;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || seconds < 0.1 ||
        seconds > 3600)
        return std::nullopt;
    return seconds;
}

/// The recording that is meant.
Result<std::string> file_of(const std::string& job) {
    const bool is_number = !job.empty() && std::ranges::all_of(job, [](char each) {
        return each >= '0' && each <= '9';
    });
    if (!job.empty() && !is_number) return job;
    const auto found = find_job(job, "hiroba top PID, or hiroba top FILE", true);
    if (!found) return found.error();
    if (!found->recording.empty()) return found->recording;
    return Error{ErrorKind::usage,
                 fmt::format("{} is not being recorded. Start it by hiroba run --record FILE ...",
                             found->command())};
}

}  // namespace

std::string top_text(const Recording& recording, std::int64_t now_ns) {
    std::vector<Doing> all;
    for (const Stream& stream : recording.streams)
        if (stream.thread >= 0) all.push_back(doing_of(recording, stream, now_ns));
    std::ranges::sort(all, [](const Doing& a, const Doing& b) {
        return std::pair(a.node, a.thread) < std::pair(b.node, b.thread);
    });
    const Names names = Names::of(recording);
    std::string text = fmt::format("{}, {}\nnode thread       for  faults/s   MiB/s\n",
                                   recording.job.command, duration_text(now_ns));
    for (const Doing& doing : all)
        text += fmt::format("{:>4} {:>6} {:>9} {:>9} {:>7.1f}   {}, {}\n", doing.node, doing.thread,
                            duration_text(now_ns - doing.since_ns), doing.faults,
                            static_cast<double>(doing.bytes) / (1u << 20), text_of(all, doing),
                            names.place(recording.places[doing.place]));
    return text;
}

int show_top(const TopOptions& options) {
    const auto seconds = seconds_of(options.interval);
    if (!seconds) {
        say_line("--interval " + options.interval + ": must be seconds from 0.1 to 3600");
        return exit_usage;
    }
    const bool clears = ::isatty(STDOUT_FILENO) == 1 && !options.once;
    const auto file = file_of(options.job);
    if (!file) return report(file.error());
    for (;;) {
        const auto archive = open_archive(*file);
        if (!archive) return report(archive.error());
        if (archive->job.status >= 0) {
            say_line(*file + ": the job has ended. See hiroba report " + *file);
            return 0;
        }
        const Recording recording = decode(*archive, Extent::newest);
        const std::string text =
            (clears ? "\x1b[H\x1b[J" : "") +
            top_text(recording, static_cast<std::int64_t>(clocks_now().ns) - recording.zero_ns);
        if (::write(STDOUT_FILENO, text.data(), text.size()) < 0 || options.once) return 0;
        ::usleep(static_cast<useconds_t>(*seconds * 1e6));
    }
}

}  // namespace hiroba::tools
