// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/openmp/side.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/fatal.hpp"
#include "tools/become.hpp"
#include "tools/build.hpp"
#include "tools/line.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr const char* program_name = "hiroba-perf-openmp";
constexpr int exit_wrong_answer = 70, not_startable = 127;
constexpr std::uint32_t list_seconds = 60;

std::vector<std::string> words_between_tabs(const std::string& line) {
    std::vector<std::string> words;
    std::istringstream parts(line);
    for (std::string word; std::getline(parts, word, '\t');) words.push_back(word);
    return words;
}

std::uint32_t whole(const std::string& word) {
    return static_cast<std::uint32_t>(std::strtoul(word.c_str(), nullptr, 10));
}

Row& row_of(Side& side, const std::string& group, const std::string& name) {
    for (Row& row : side.rows)
        if (row.name == name) return row;
    side.rows.push_back({group, name, 0, {}});
    return side.rows.back();
}

void take_row(Side& side, const std::vector<std::string>& words) {
    Row& row = row_of(side, words[1], words[2]);
    row.processes = std::max(row.processes, whole(words[3]));
    for (std::size_t i = 4; i < words.size(); ++i)
        row.us.push_back(std::strtod(words[i].c_str(), nullptr));
}

/// `words`: "end", rows, threads and processes of the team.
Result<void> check_end(const Side& side, const std::vector<std::string>& words,
                       std::uint32_t rows) {
    const auto wrong = [](std::string text) { return Error{ErrorKind::internal, std::move(text)}; };
    if (whole(words[1]) != rows)
        return wrong(fmt::format("it measured {} rows and printed {}", words[1], rows));
    if (whole(words[2]) != side.threads)
        return wrong(fmt::format("its team has {} of {} threads", words[2], side.threads));
    if (whole(words[3]) != side.processes)
        return wrong(fmt::format("its team lies on {} of {} nodes", words[3], side.processes));
    return {};
}

std::string last_line(const std::string& text) {
    const std::size_t end = text.find_last_not_of('\n');
    if (end == text.npos) return "(it said nothing)";
    const std::size_t begin = text.rfind('\n', end);
    return text.substr(begin == text.npos ? 0 : begin + 1, end - (begin + 1) + 1);
}

/// The program's line about a wrong answer; the launcher may have said more behind it.
std::string fault_line(const std::string& text) {
    const std::string mark = std::string(program_name) + ": ";
    const std::size_t at = text.find(mark);
    if (at == text.npos) return last_line(text);
    return text.substr(at + mark.size(), text.find('\n', at) - at - mark.size());
}

}  // namespace

Result<void> take_rows(Side& side, const std::string& output, std::string& others) {
    std::istringstream lines(output);
    std::uint32_t rows = 0;
    std::vector<std::string> end;
    for (std::string line; std::getline(lines, line);) {
        const auto words = words_between_tabs(line);
        if (words.size() > 4 && words[0] == "row") {
            take_row(side, words);
            ++rows;
        } else if (words.size() == 4 && words[0] == "end") {
            end = words;
        } else if (!line.empty()) {
            others += line + '\n';
        }
    }
    if (end.empty()) return Error{ErrorKind::internal, "it has not come to its end"};
    return check_end(side, end, rows);
}

int run_side(Side& side, std::uint32_t seconds) {
    Child run(side.words, side.settings, true);
    std::string output, others;
    const int status = run.finish(seconds, output);
    const auto taken = take_rows(side, output, others);
    if (status == not_startable) {
        say_line(
            fmt::format("perf openmp: {} cannot be started: {}", side.name, last_line(others)));
        return exit_environment;
    }
    if (status == exit_wrong_answer) {
        say_line(fmt::format("perf openmp: {} brought a wrong answer: {}. Its figures do not count",
                             side.name, fault_line(others)));
        return exit_wrong_answer;
    }
    std::fputs(others.c_str(), stderr);
    if (status != 0) {
        say_line(fmt::format("perf openmp: {} ended with status {} within {} s; no figures of it",
                             side.name, status, seconds));
        return status;
    }
    if (taken) return 0;
    say_line(fmt::format("perf openmp: {}: {}. Its figures do not count", side.name,
                         taken.error().text));
    return exit_wrong_answer;
}

std::string openmp_program() {
    std::string beside = beside_this_program(program_name);
    if (is_program(beside)) return beside;
    const auto folder = std::filesystem::path(beside).parent_path();
    return (folder / build_programs_folder / program_name).lexically_normal().string();
}

Result<std::vector<Row>> list_rows(const std::string& only) {
    const std::string program = openmp_program();
    if (!is_program(program)) {
        return Error{ErrorKind::environment,
                     fmt::format("perf openmp: there is no {}. Install all of hiroba; a build has "
                                 "it whose C compiler is gcc",
                                 program)};
    }
    Child run({program, "--list"}, {}, true);
    std::string output;
    const int status = run.finish(list_seconds, output);
    if (status != 0) {
        return Error{ErrorKind::environment,
                     fmt::format("perf openmp: {} ended with status {}: {}. Debian's package "
                                 "libgomp1 has the library that it is measured with",
                                 program, status, last_line(output))};
    }
    std::vector<Row> rows;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
        const auto words = words_between_tabs(line);
        if (words.size() == 2 && words[1].find(only) != words[1].npos)
            rows.push_back({words[0], words[1], 0, {}});
    }
    return rows;
}

}  // namespace hiroba::tools::perf_parts
