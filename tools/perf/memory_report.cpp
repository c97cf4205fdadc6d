// SPDX-License-Identifier: BSD-3-Clause
// Role: see memory_report.hpp. What is resident is asked of the kernel, so whatever a layer takes
// is in it: nothing is added up from sizes that the code believes in.
#include "tools/perf/memory_report.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "acp/node.hpp"
#include "base/fatal.hpp"
#include "base/settings.hpp"
#include "net/bootstrap/job.hpp"
#include "tools/json.hpp"
#include "tools/line.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr std::uint64_t words_count = 4096;
constexpr std::uint64_t registrations = 100;
constexpr int commands_together = 4096;

// The paper's table 6, the UDP implementation.
constexpr std::uint64_t paper_queue_bytes = std::uint64_t{80} * 4096,
                        paper_command_station_bytes = std::uint64_t{1504} * 64,
                        paper_delegate_station_bytes = std::uint64_t{48 + 3480} * 64,
                        paper_rank_bytes = 6 + 8 + 4;

/// Private and shared memory of this process that is resident; -1: the kernel does not say.
long resident_kib() {
    std::ifstream status("/proc/self/status");
    long kib = 0;
    int found = 0;
    for (std::string line; std::getline(status, line);) {
        long value = 0;
        if (std::sscanf(line.c_str(), "RssAnon: %ld", &value) == 1 ||
            std::sscanf(line.c_str(), "RssShmem: %ld", &value) == 1) {
            kib += value;
            ++found;
        }
    }
    return found == 2 ? kib : -1;
}

struct Row {
    std::string what;
    long kib = 0;        ///< in all, more than before the rank joined
    long paper_kib = 0;  ///< what the paper's has for that; 0: not listed
};

/// The steps; every rank takes them, rank 0 remembers.
class Steps {
public:
    Steps(acp::Node& node, long before) : node_(node), before_(before) {}
    void note(std::string what, std::uint64_t paper_bytes = 0) {
        node_.sync();
        rows_.push_back({std::move(what), resident_kib() - before_, paper_kib(paper_bytes)});
        node_.sync();
    }
    const std::vector<Row>& rows() const { return rows_; }

private:
    static long paper_kib(std::uint64_t bytes) { return static_cast<long>((bytes + 1023) / 1024); }
    acp::Node& node_;
    long before_;
    std::vector<Row> rows_;
};

template <class T>
T must(Result<T> result) {
    if (!result) die(exit_environment, "%s", result.error().text.c_str());
    return std::move(*result);
}

void copy(acp::Node& node, std::uint64_t dst, std::uint64_t src, std::uint64_t bytes) {
    acp::Access access;
    access.dst = dst;
    access.src = src;
    access.bytes = bytes;
    if (node.try_access(access, acp::handle_null) == 0) {
        die(exit_environment, "%s", node.why_refused(access, acp::handle_null).text.c_str());
    }
}

void take_steps(acp::Node& node, Steps& steps, std::uint64_t* memory) {
    const std::uint32_t ranks = node.ranks();
    steps.note(
        fmt::format("stations, registrations, starter memory; {} ranks met", ranks),
        paper_command_station_bytes + paper_delegate_station_bytes + paper_rank_bytes * ranks);

    const std::uint64_t key = must(node.register_memory(memory, words_count * 8, 0));
    const std::uint64_t own = must(node.address_of(key, memory));
    *static_cast<std::uint64_t*>(must(node.local(must(node.starter_address(node.rank()))))) = own;
    node.sync();
    std::vector<std::uint64_t> at(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        copy(node, own + 8, must(node.starter_address(rank)), 8);
        node.complete(acp::handle_all);
        at[rank] = memory[1];
    }
    steps.note("every rank talked to");

    // Registered memory of others: its owner alone can touch it, so each is a command.
    for (int i = 0; i < commands_together; ++i) {
        const std::uint32_t others = ranks > 1 ? ranks - 1 : 1;
        const auto step = 1 + static_cast<std::uint32_t>(i) % others;
        const std::uint32_t to = (node.rank() + step) % ranks;
        copy(node, at[to] + 16 + 8 * (static_cast<std::uint64_t>(i) % 1024), own, 8);
    }
    node.complete(acp::handle_all);
    steps.note(fmt::format("{} copies of 8 bytes at once: the queue is full", commands_together),
               paper_queue_bytes);

    std::vector<std::uint64_t> keys;
    for (std::uint64_t i = 0; i < registrations; ++i) {
        keys.push_back(must(node.register_memory(memory + i, 8, 0)));
    }
    steps.note(fmt::format("{} registrations", registrations));
    for (const std::uint64_t each : keys) {
        if (auto done = node.unregister_memory(each); !done) {
            die(exit_environment, "%s", done.error().text.c_str());
        }
    }
    if (auto done = node.unregister_memory(key); !done) {
        die(exit_environment, "%s", done.error().text.c_str());
    }
}

void print(const Steps& steps, std::uint32_t ranks, bool json) {
    const std::string provider(setting("HIROBA_PROVIDER"));
    Json rows = Json::array();
    long last = 0;
    if (!json) {
        fmt::print(
            "memory of rank 0 of {} (provider {}, HIROBA_ACP_STARTER {}): KiB that became "
            "resident, private and shared\n{:<58}{:>8}{:>8}{:>14}\n",
            ranks, provider, setting("HIROBA_ACP_STARTER"), "", "more", "in all", "ACP, table 6");
    }
    for (const Row& row : steps.rows()) {
        rows.push_back(Json::object({{"what", row.what},
                                     {"more_kib", std::int64_t{row.kib - last}},
                                     {"kib", std::int64_t{row.kib}},
                                     {"paper_kib", std::int64_t{row.paper_kib}}}));
        if (!json) {
            fmt::print("{:<58}{:>8}{:>8}{:>14}\n", row.what, row.kib - last, row.kib,
                       row.paper_kib == 0 ? "-" : std::to_string(row.paper_kib));
        }
        last = row.kib;
    }
    if (json) {
        fmt::print(
            "{}\n",
            Json::object({{"ranks", ranks}, {"provider", provider}, {"memory", rows}}).dump(2));
    }
    std::fflush(stdout);
}

}  // namespace

int report_memory(bool json) {
    auto job = net::read_job_info();
    if (!job) return report(job.error());
    set_identity(job->self.value, "memory");
    // Touched before, so that it is none of what the layers take.
    std::vector<std::uint64_t> memory(words_count, 1);
    net::ControlChannel control{*job};
    if (resident_kib() < 0) {
        say_line("/proc/self/status has no RssAnon and RssShmem: the kernel is older than 4.5");
        return exit_environment;
    }
    const long before = resident_kib();
    auto opened = acp::Node::open(*job, control, {});
    if (!opened) return report(opened.error());
    acp::Node& node = **opened;
    Steps steps{node, before};
    take_steps(node, steps, memory.data());
    if (node.rank() == 0) print(steps, node.ranks(), json);
    if (auto left = node.leave(); !left) return report(left.error());
    control.report_participation(0, 0);
    return 0;
}

}  // namespace hiroba::tools::perf_parts
