// SPDX-License-Identifier: BSD-3-Clause
// Role: changes a recording in ways that its seed decides, and has `hiroba report` and `hiroba
// predict` make of each what they make of any: all forms of the report, the work, other numbers of
// nodes. They are read in processes of their own, with bounds of time and memory.
// Invariant: a recording is refused by one line that names it, or read to its end.
//
// Usage: recording_fuzz FILE ROUNDS [FIRST_SEED]
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/record_format.hpp"
#include "tools/predict/work.hpp"
#include "tools/report/output.hpp"
#include "tools/report/top.hpp"

namespace hiroba::tools {
namespace {

constexpr std::size_t section_head_bytes = 24;

/// Where things lie in a recording that nobody has changed.
struct Places {
    std::vector<std::size_t> sections;     ///< their heads
    std::vector<std::size_t> texts;        ///< bytes of texts
    std::vector<std::size_t> node_heads;   ///< first bytes of what nodes recorded
    std::vector<std::size_t> chunk_heads;  ///< of chunks
    std::vector<std::size_t> records;      ///< that are no `none`
};

std::uint64_t word_at(const std::string& bytes, std::size_t at) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    return word;
}

void note_node(const std::string& bytes, std::size_t begin, std::size_t end, Places& places) {
    places.node_heads.push_back(begin);
    for (std::size_t chunk = begin + record_head_bytes; chunk + record_chunk_bytes <= end;
         chunk += record_chunk_bytes) {
        places.chunk_heads.push_back(chunk);
        for (std::size_t at = chunk + sizeof(RecordChunkHead); at < chunk + record_chunk_bytes;
             at += sizeof(Record)) {
            if ((word_at(bytes, at + 8) & 0xff) == 0) break;
            places.records.push_back(at);
        }
    }
}

Places places_of(const std::string& bytes) {
    Places places;
    for (std::size_t at = 0; at + section_head_bytes <= bytes.size();) {
        places.sections.push_back(at);
        const std::size_t begin = at + section_head_bytes, end = begin + word_at(bytes, at + 16);
        if (end > bytes.size()) break;
        if (bytes.compare(at, 4, "node") == 0)
            note_node(bytes, begin, end, places);
        else
            for (std::size_t text = begin; text < end; ++text) places.texts.push_back(text);
        at = end;
    }
    return places;
}

/// Changes a recording, as a seed decides.
class Changer {
public:
    Changer(const std::string& bytes, const Places& places, std::uint64_t seed)
        : bytes_(bytes), places_(places), random_(seed) {}

    std::string changed() {
        const std::uint64_t changes = 1 + below(8);
        for (std::uint64_t change = 0; change < changes; ++change) change_once();
        if (below(16) == 0) bytes_.resize(below(bytes_.size() + 1));
        if (below(16) == 0) repeat_section();
        return std::move(bytes_);
    }

private:
    std::uint64_t below(std::uint64_t end) { return end == 0 ? 0 : random_() % end; }
    std::size_t any(const std::vector<std::size_t>& places) { return places[below(places.size())]; }

    /// What programs handle worst, or anything.
    std::uint64_t word() {
        constexpr std::uint64_t ends[] = {0, 1, 2, 3, 0x7fff'ffff, 0x8000'0000, 0xffff'ffff};
        switch (below(6)) {
            case 0: return ends[below(std::size(ends))];
            case 1: return std::uint64_t{1} << below(64);
            case 2: return (std::uint64_t{1} << below(64)) - 1;
            case 3: return ~std::uint64_t{0} - below(100);
            case 4: return below(100);
            default: return random_();
        }
    }
    void put_word(std::size_t at, std::uint64_t value) {
        if (at + sizeof value <= bytes_.size())
            std::memcpy(bytes_.data() + at, &value, sizeof value);
    }
    void put_byte(std::size_t at, std::uint64_t value) { bytes_[at] = static_cast<char>(value); }

    void change_once() {
        switch (below(10)) {
            case 0: put_byte(below(bytes_.size()), random_()); break;
            case 1: put_word(any(places_.sections) + 8 * below(3), word()); break;
            case 2:
                put_byte(any(places_.texts), below(4) == 0 ? random_() : "0129 -\n"[below(7)]);
                break;
            case 3: put_word(any(places_.node_heads) + 8 * below(12), word()); break;
            case 4: put_word(any(places_.chunk_heads) + 8 * below(4), word()); break;
            case 5: put_byte(any(places_.records) + 8, below(record_kinds + 2)); break;
            case 6: copy_record(); break;
            case 7: put_word(any(places_.records), word()); break;
            default: put_word(any(places_.records) + 8 * below(4), word()); break;
        }
    }
    void copy_record() {
        const std::size_t from = any(places_.records), to = any(places_.records);
        const std::uint64_t most = (bytes_.size() - std::max(from, to)) / sizeof(Record);
        const std::uint64_t count = 1 + below(std::min<std::uint64_t>(most, 50));
        std::memmove(bytes_.data() + to, bytes_.data() + from, count * sizeof(Record));
    }
    void repeat_section() {
        const std::size_t at = any(places_.sections), end = at + below(200'000);
        if (end < bytes_.size()) bytes_ += bytes_.substr(at, end - at);
    }

    std::string bytes_;
    const Places& places_;
    std::mt19937_64 random_;
};

void use_work(const Analysis& analysis, bool cured) {
    const auto table = work_of(analysis, {.without_false_sharing = cured});
    if (!table) return;
    for (const auto& [nodes, threads] : {std::pair{2u, 1u}, {5u, 3u}, {16u, 1u}})
        for (const Growth growth : {Growth::divided, Growth::each})
            if (spread_over(*table, nodes, threads, growth).stretches.empty()) std::abort();
    if (on_one_host_ns(*table, 2) < 0) std::abort();
}

enum class Outcome : std::uint8_t { read, refused, refused_badly };

/// All that is made of a recording.
Outcome use(const std::string& path, bool as_page) {
    const auto archive = open_archive(path);
    if (!archive) {
        const std::string& text = archive.error().text;
        return text.find(path) != std::string::npos && text.find('\n') == std::string::npos
                   ? Outcome::refused
                   : Outcome::refused_badly;
    }
    const Recording newest = decode(*archive, Extent::newest);
    if (top_text(newest, newest.end_ns).empty()) std::abort();
    const Recording recording = decode(*archive);
    const Analysis analysis = analyse(recording);
    const NamedAnalysis runs[] = {{path, &analysis}, {path, &analysis}};
    std::ostringstream trace;
    write_trace(analysis, trace);
    if (report_text(analysis).empty() || report_json(analysis).empty() || trace.str().empty() ||
        (as_page && report_page(runs).empty()))
        std::abort();
    use_work(analysis, false);
    use_work(analysis, true);
    return Outcome::read;
}

void write_changed(int fd, const std::string& bytes) {
    if (::ftruncate(fd, 0) == 0 &&
        ::pwrite(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()))
        return;
    std::perror("recording_fuzz: a changed recording cannot be written");
    std::exit(2);
}

/// What became of each change. The processes that read them share it.
struct Outcomes {
    std::uint64_t at = 0;  ///< the seed whose change is being read
    std::uint64_t read = 0, refused = 0;
};

[[noreturn]] void be_reader(const std::string& whole, const Places& places, std::uint64_t end,
                            Outcomes& outcomes) {
    constexpr rlim_t seconds = 20;
    const rlimit time{seconds, seconds}, none{0, 0};
    ::setrlimit(RLIMIT_CPU, &time);
    ::setrlimit(RLIMIT_CORE, &none);
#if !defined(__SANITIZE_ADDRESS__)
    const rlimit memory{rlim_t{2} << 30, rlim_t{2} << 30};
    ::setrlimit(RLIMIT_AS, &memory);
#endif
    const int fd = ::memfd_create("changed", MFD_CLOEXEC);
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    for (; outcomes.at < end; ++outcomes.at) {
        write_changed(fd, Changer(whole, places, outcomes.at).changed());
        const Outcome outcome = use(path, outcomes.at % 4 == 0);
        if (outcome == Outcome::refused_badly) ::_exit(1);
        ++(outcome == Outcome::read ? outcomes.read : outcomes.refused);
    }
    ::_exit(0);
}

/// Reads some changes in a process of its own. Returns its status as wait says it.
int read_apart(const std::string& whole, const Places& places, std::uint64_t end,
               Outcomes& outcomes) {
    constexpr std::uint64_t together = 50;
    const pid_t child = ::fork();
    if (child == 0) be_reader(whole, places, std::min(end, outcomes.at + together), outcomes);
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
}

int fuzz(const std::string& file, std::uint64_t rounds, std::uint64_t first) {
    std::ifstream in(file, std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(in), {}};
    const Places places = places_of(whole);
    if (places.records.empty() || places.texts.empty()) {
        std::printf("%s is no recording that has ended\n", file.c_str());
        return 2;
    }
    void* const shared = ::mmap(nullptr, sizeof(Outcomes), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 2;
    Outcomes& outcomes = *new (shared) Outcomes{.at = first};
    std::uint64_t failed = 0;
    while (outcomes.at < first + rounds) {
        const int status = read_apart(whole, places, first + rounds, outcomes);
        if (status == 0) continue;
        if (++failed <= 20)
            std::printf("status 0x%x: recording_fuzz %s 1 %llu\n", status, file.c_str(),
                        static_cast<unsigned long long>(outcomes.at));
        ++outcomes.at;
    }
    std::printf(
        "%llu read, %llu refused, %llu failed\n", static_cast<unsigned long long>(outcomes.read),
        static_cast<unsigned long long>(outcomes.refused), static_cast<unsigned long long>(failed));
    return failed == 0 && outcomes.read > 0 && outcomes.refused > 0 ? 0 : 1;
}

}  // namespace
}  // namespace hiroba::tools

int main(int count, char** words) {
    if (count < 3) return 64;
    return hiroba::tools::fuzz(words[1], std::strtoull(words[2], nullptr, 10),
                               count > 3 ? std::strtoull(words[3], nullptr, 10) : 1);
}
