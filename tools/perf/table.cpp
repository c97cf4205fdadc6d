// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "base/settings.hpp"
#include "tools/become.hpp"
#include "tools/line.hpp"
#include "tools/perf/beside.hpp"
#include "tools/perf/child.hpp"
#include "tools/perf/plan.hpp"
#include "tools/perf/tests.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr std::uint64_t bytes_min = 8;

Result<std::vector<std::uint64_t>> sizes_of(const std::string& text) {
    std::vector<std::uint64_t> sizes;
    const std::size_t colon = text.find(':');
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, colon == text.npos ? ',' : ':');) {
        const auto size = parse_size(part, "--sizes");
        if (!size) return size.error();
        sizes.push_back(*size);
    }
    const bool is_range = colon != text.npos;
    if (sizes.empty() || (is_range && (sizes.size() != 2 || sizes[0] > sizes[1]))) {
        return Error{ErrorKind::usage,
                     fmt::format("--sizes {}: give the smallest and the largest, as "
                                 "8:1M, or each, as 8,4K,1M. Change --sizes",
                                 text)};
    }
    if (!is_range || sizes[0] == 0) return sizes;
    std::vector<std::uint64_t> doubled;
    for (std::uint64_t size = sizes[0]; size <= sizes[1]; size *= 2) doubled.push_back(size);
    return doubled;
}

/// How many nodes the words of --hosts carry; none: not known here. What is wrong with them the
/// launcher says.
std::uint32_t places_of(const std::string& hosts) {
    std::uint32_t places = 0;
    std::istringstream items(hosts);
    for (std::string item; std::getline(items, item, ',');) {
        const std::size_t colon = item.rfind(':');
        const bool has_count = colon != item.npos && item.find(']', colon) == item.npos;
        places +=
            has_count
                ? static_cast<std::uint32_t>(std::strtoul(item.c_str() + colon + 1, nullptr, 10))
                : 1;
    }
    return places;
}

/// The options that `test` has, of those that were given for all tests.
PerfOptions options_for(const Test& test, const PerfOptions& given) {
    PerfOptions options = given;
    options.test = test.name;
    if (!test.takes_threads) options.threads = "1";
    if (!takes_executors(test)) options.executors = "";
    if (test.measure != measure_dsm_release) options.change = options.home = "";
    if (!given.nodes.empty() && given.hosts.empty() && given.hostfile.empty()) {
        const long wanted = std::strtol(given.nodes.c_str(), nullptr, 10);
        if (wanted > 0 && wanted < test.nodes_min) options.nodes = std::to_string(test.nodes_min);
    }
    return options;
}

/// Adds a row for each size of one test.
Result<void> add_rows(const Test& test, const PerfOptions& given,
                      const std::vector<std::uint64_t>& sizes, std::vector<PerfOptions>& rows) {
    const bool is_one_of_all = given.test == every_test;
    PerfOptions options = is_one_of_all ? options_for(test, given) : given;
    options.sizes = "";
    const bool has_sizes = !sizes.empty() && (test.bytes_max > bytes_min || !is_one_of_all);
    if (!has_sizes) {
        const auto plan = make_perf_plan(options);
        if (!plan) return plan.error();
        rows.push_back(options);
        return {};
    }
    for (const std::uint64_t size : sizes) {
        if (is_one_of_all && (size < bytes_min || size > test.bytes_max)) continue;
        options.bytes = std::to_string(size);
        if (const auto plan = make_perf_plan(options); !plan) return plan.error();
        rows.push_back(options);
    }
    return {};
}

/// What a JSON object of one line says for `name`; 0: nothing.
double number(const std::string& line, const char* name) {
    const std::size_t at = line.find(fmt::format("\"{}\":", name));
    if (at == line.npos) return 0;
    return std::strtod(line.c_str() + line.find(':', at) + 1, nullptr);
}

/// The object in a command's output; what else it said goes to stderr.
std::string object_in(const std::string& output) {
    std::istringstream lines(output);
    std::string object;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with('{')) {
            object = line;
        } else if (!line.empty()) {
            fmt::print(stderr, "{}\n", line);
        }
    }
    return object;
}

void print_row(const PerfOptions& row, const std::string& object) {
    fmt::print("{:<18}{:>9.0f}{:>4.0f}{:>4.0f}{:>13.1f}{:>13.1f}{:>13.1f}{:>13.1f}{:>8.2f}\n",
               row.test, number(object, "bytes"), number(object, "nodes"),
               number(object, "threads"), number(object, "median_ns"), number(object, "p10_ns"),
               number(object, "p90_ns"), number(object, "floor_ns"), number(object, "ratio"));
}

}  // namespace

bool is_table(const PerfOptions& options) {
    return options.test == every_test || !options.sizes.empty();
}

Result<std::vector<PerfOptions>> rows_of(const PerfOptions& options) {
    std::vector<std::uint64_t> sizes;
    if (!options.sizes.empty()) {
        if (!options.bytes.empty())
            return Error{ErrorKind::usage, "--bytes beside --sizes: leave one of them out"};
        auto read = sizes_of(options.sizes);
        if (!read) return read.error();
        sizes = std::move(*read);
    }
    std::vector<PerfOptions> rows;
    if (options.test == every_test && !options.bytes.empty()) {
        return Error{ErrorKind::usage,
                     "--bytes: tests differ in the sizes they take. Change it to "
                     "--sizes, of which each test is given those it takes"};
    }
    for (const Test& test : all_tests()) {
        const bool wanted = options.test == test.name || options.test == every_test;
        if (!wanted) continue;
        if (options.test == every_test && !options.beside.empty() && !has_equal(test, options))
            continue;
        const std::uint32_t places = places_of(options.hosts);
        if (options.test == every_test && places >= 2 && places < test.nodes_min) continue;
        if (const auto added = add_rows(test, options, sizes, rows); !added) return added.error();
    }
    if (!rows.empty()) return rows;
    const auto plan = make_perf_plan(options);  // says which test or peer there is not
    if (!plan && options.test != every_test) return plan.error();
    return Error{ErrorKind::usage,
                 fmt::format("perf {}: nothing is left to measure with --sizes {} and --beside {}. "
                             "Change one of them",
                             options.test, options.sizes, options.beside)};
}

std::vector<std::string> words_of(const PerfOptions& options) {
    std::vector<std::string> words = {beside_this_program("hiroba-perf"),
                                      options.test,
                                      "--json",
                                      "--threads",
                                      options.threads,
                                      "--repeat",
                                      options.repeat,
                                      "--milliseconds",
                                      options.milliseconds};
    const std::pair<const char*, const std::string&> given[] = {
        {"--provider", options.provider},   {"--offload", options.offload},
        {"--nodes", options.nodes},         {"--bytes", options.bytes},
        {"--executors", options.executors}, {"--change", options.change},
        {"--home", options.home},           {"--hosts", options.hosts},
        {"--hostfile", options.hostfile},   {"--ssh", options.ssh},
        {"--ports", options.ports}};
    for (const auto& [name, value] : given) {
        if (value.empty()) continue;
        words.emplace_back(name);
        words.push_back(value);
    }
    if (options.copy) words.emplace_back("--copy");
    return words;
}

std::uint32_t seconds_max(const PerfOptions& options) {
    // Checked before: both are numbers. Trials, starts and a busy machine take their time.
    const double measured = std::strtod(options.repeat.c_str(), nullptr) *
                            std::strtod(options.milliseconds.c_str(), nullptr) / 1000;
    return static_cast<std::uint32_t>(120 + 4 * measured);
}

int measure_table(const std::vector<PerfOptions>& rows, bool json) {
    if (!json) {
        fmt::print("over {}{}{}, offload={}; ns\n", setting("HIROBA_PROVIDER"),
                   rows[0].hosts.empty() ? "" : ", hosts ", rows[0].hosts,
                   setting("HIROBA_OFFLOAD"));
        fmt::print("{:<18}{:>9}{:>4}{:>4}{:>13}{:>13}{:>13}{:>13}{:>8}\n", "test", "bytes", "n",
                   "t", "median", "p10", "p90", "floor", "ratio");
        std::fflush(stdout);
    }
    int first_failure = 0;
    for (const PerfOptions& row : rows) {
        Child run(words_of(row), {}, true);
        std::string output;
        const int status = run.finish(seconds_max(row), output);
        const std::string object = object_in(output);
        if (status != 0 || object.empty()) {
            say_line(fmt::format("perf {} --bytes {}: ended with status {}; no figures of it",
                                 row.test, row.bytes.empty() ? "(its own)" : row.bytes, status));
            if (first_failure == 0) first_failure = status != 0 ? status : 1;
            continue;
        }
        if (json) {
            fmt::print("{}\n", object);
        } else {
            print_row(row, object);
        }
        std::fflush(stdout);
    }
    return first_failure;
}

}  // namespace hiroba::tools::perf_parts
