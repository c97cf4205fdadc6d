// SPDX-License-Identifier: BSD-3-Clause
#include "tools/report/progress.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "base/settings.hpp"
#include "tools/report/names.hpp"

namespace hiroba::tools {

namespace {

constexpr std::string_view temporary_name = "hiroba-progress.";

/// One place where the first thread has met the others.
struct Meetings {
    std::vector<std::int64_t> at_ns;  ///< what is recorded of it, lately without a gap
    std::int64_t last_ns() const { return at_ns.back(); }
};

struct Lately {
    std::map<std::uint32_t, Meetings> by_place;
    std::vector<std::uint64_t>
        strides;               ///< how many meetings from one that is recorded to the next
    std::uint64_t region = 0;  ///< the last that was begun
    std::uint32_t last_place = 0;
    std::int64_t last_ns = 0;
};

/// Where a recording is a sample, phases in between are left out.
std::uint64_t stride_between(const Event& before, const Event& event) {
    if (before.kind != event.kind) return 1;
    const bool fork = event.kind == RecordKind::fork;
    if (!fork && before.first != event.first) return 1;
    const std::uint64_t from = fork ? before.first : before.second & 0xffff'ffff;
    const std::uint64_t to = fork ? event.first : event.second & 0xffff'ffff;
    return to > from ? to - from : 1;
}

constexpr std::size_t latest = 16;  ///< of what is recorded, as much as counts

/// The middle one of the last few.
template <class Number>
Number middle_of_last(std::vector<Number> numbers) {
    if (numbers.size() > latest) numbers.erase(numbers.begin(), numbers.end() - latest);
    const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
    std::ranges::nth_element(numbers, middle);
    return *middle;
}

/// What the first thread's records say, of which the first and the last few are read.
Lately lately(const Recording& recording) {
    Lately found;
    for (const Stream& stream : recording.streams) {
        if (stream.thread != 0) continue;
        const Event* before = nullptr;
        for (const Event& event : stream.events) {
            const bool fork = event.kind == RecordKind::fork;
            if (fork) found.region = event.first;
            if (!fork && (event.kind != RecordKind::barrier || event.first == 0)) continue;
            if (before != nullptr) found.strides.push_back(stride_between(*before, event));
            before = &event;
            found.by_place[event.place].at_ns.push_back(event.end_ns);
            found.last_place = event.place;
            found.last_ns = event.end_ns;
        }
    }
    return found;
}

/// From one to the next that is recorded.
std::int64_t step_ns(const Meetings& meetings) {
    std::vector<std::int64_t> steps;
    for (std::size_t i = 1; i < meetings.at_ns.size(); ++i)
        steps.push_back(meetings.at_ns[i] - meetings.at_ns[i - 1]);
    return middle_of_last(std::move(steps));
}

std::string duration_text(std::int64_t ns) {
    const auto value = static_cast<double>(std::max<std::int64_t>(ns, 0));
    if (value >= 1e9) return fmt::format("{:.1f} s", value / 1e9);
    return value >= 1e6 ? fmt::format("{:.1f} ms", value / 1e6)
                        : fmt::format("{:.0f} us", value / 1e3);
}

/// As in a report; looked up alone, since all that a recording names takes long.
std::string name_of_place(const Recording& recording, std::uint32_t place) {
    Recording alone;
    alone.job = recording.job;
    alone.places = {recording.places[place]};
    return Names::of(alone).place(recording.places[place]);
}

}  // namespace

Result<std::uint64_t> progress_interval_ns(const std::string& text) {
    double seconds = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size() ||
        !(seconds >= 0.1 && seconds <= 3600))
        return Error{ErrorKind::usage,
                     fmt::format("--progress {}: must be seconds from 0.1 to 3600", text)};
    return static_cast<std::uint64_t>(seconds * 1e9);
}

void record_for_progress() {
    if (!setting("HIROBA_RECORD").empty()) return;
    std::error_code failed;
    const auto folder = std::filesystem::temp_directory_path(failed);
    const std::string file =
        fmt::format("{}/{}{}", failed ? "/tmp" : folder.string(), temporary_name, ::getpid());
    ::setenv("HIROBA_RECORD", file.c_str(), 1);
    ::setenv("HIROBA_RECORD_SIZE", "32M", 0);
}

void remove_progress_file() {
    const std::filesystem::path file(setting("HIROBA_RECORD"));
    const std::string name = file.filename().string();
    if (name != fmt::format("{}{}", temporary_name, ::getpid())) return;
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
    for (const auto& entry : std::filesystem::directory_iterator(file.parent_path(), ignored))
        if (entry.path().filename().string().starts_with(name + "."))
            std::filesystem::remove(entry.path(), ignored);
}

std::string progress_text(const Recording& recording, std::int64_t now_ns) {
    const Lately found = lately(recording);
    if (found.by_place.empty()) return "";
    const Meetings* step = nullptr;
    std::uint32_t place = 0;
    for (const auto& [at, meetings] : found.by_place) {
        if (meetings.at_ns.size() < 2) continue;
        // What has not come round for several of its steps is over.
        if (found.last_ns - meetings.last_ns() > 4 * step_ns(meetings)) continue;
        if (step != nullptr && step_ns(meetings) <= step_ns(*step)) continue;
        step = &meetings;
        place = at;
    }
    std::string text = fmt::format("after {}: region {}", duration_text(now_ns), found.region);
    if (step == nullptr)
        return text + fmt::format(", since {} at {}", duration_text(now_ns - found.last_ns),
                                  name_of_place(recording, found.last_place));
    const std::int64_t took =
        step_ns(*step) / static_cast<std::int64_t>(middle_of_last(found.strides));
    text += fmt::format(", comes round to {} every {}", name_of_place(recording, place),
                        duration_text(took));
    if (now_ns - found.last_ns > std::max<std::int64_t>(3 * step_ns(*step), 1'000'000'000))
        text += fmt::format("; nothing for {}, since {}", duration_text(now_ns - found.last_ns),
                            name_of_place(recording, found.last_place));
    return text;
}

std::string progress_now() {
    const auto archive = open_archive(std::string(setting("HIROBA_RECORD")));
    if (!archive) return "";
    const Recording recording = decode(*archive, Extent::newest);
    return progress_text(recording, static_cast<std::int64_t>(clocks_now().ns) - recording.zero_ns);
}

}  // namespace hiroba::tools
