// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/settings.hpp"
#include "net/async.hpp"
#include "tools/perf/tests.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr std::uint64_t mebibyte = 1 << 20;
constexpr std::uint32_t nodes_max = 64, threads_max = 64;

constexpr Test tests[] = {
    {"put_latency", "how long until a peer that polls sees a write",
     "shm: a cache line there and back, half; udp: raw datagrams, half", 8, mebibyte, false, false,
     nullptr, measure_put_latency},
    {"get_latency", "how long one read takes of bytes the peer has just written",
     "shm: a copy of them; udp: a raw datagram and its answer", 8, mebibyte, false, false, nullptr,
     measure_get_latency},
    {"busy_get_latency", "how long one read takes of a node that computes without a call",
     "shm: a copy; udp: a datagram and its answer by a thread that slept, on a busy core", 8, 32768,
     false, false, nullptr, measure_busy_get_latency},
    {"atomic_latency", "how long one fetch-and-add takes on a line of the peer's",
     "shm: the CPU's own; udp: a raw datagram and its answer", 8, 8, false, false, nullptr,
     measure_atomic_latency},
    {"am_latency", "how long an active message and its answer take",
     "shm: a cache line there and back; udp: raw datagrams", 8, 32768, false, false,
     prepare_am_latency, measure_am_latency},
    {"sleep_latency", "how long an active message and its answer take where all threads sleep",
     "shm: a futex's wake-up and a line back; udp: datagrams, by a thread that slept", 0, 0, false,
     false, prepare_sleep_latency, measure_sleep_latency},
    {"enqueue", "what a thread pays to hand a request over", "a ticket and a line in an array", 8,
     4096, true, true, nullptr, measure_enqueue},
    {"read_latency", "how long a read takes when each thread has one under way",
     "shm: a copy; udp: a raw datagram and its answer, by one thread", 8, mebibyte, true, false,
     nullptr, measure_read_latency},
    {"read_overhead", "how long the call takes that makes a read (t1 - t0)",
     "two looks at the clock", 8, mebibyte, true, false, nullptr, measure_read_overhead},
    {"read_rate", "what one of many reads takes, 64 of each thread under way",
     "shm: the copies alone; udp: a raw datagram and its answer, by one thread", 8, mebibyte, true,
     false, nullptr, measure_read_rate},
    {"overlap", "how long a read takes together with as much computing",
     "the longer of both: ratio 1 is full overlap, 2 is none", 4096, mebibyte, false, false,
     nullptr, measure_overlap},
    {"message_rate", "what one of many small writes takes",
     "shm: the stores alone; udp: a raw GSO stream of the same bytes", 8, 65536, true, false,
     nullptr, measure_stream},
    {"bandwidth", "what one of many large writes takes", "shm: memcpy; udp: a raw GSO stream",
     mebibyte, 8 * mebibyte, true, false, nullptr, measure_stream},
    {"barrier", "how long all nodes take to meet", "shm: flags in lines; udp: raw datagrams", 0, 0,
     false, false, nullptr, measure_barrier},
    {"all_reduce", "how long a sum over all nodes takes",
     "shm: values in lines; udp: raw datagrams", 8, mebibyte / 4, false, false, nullptr,
     measure_all_reduce},
    {"all_gather", "how long everybody's bytes take to everybody",
     "shm: copies and flags; udp: raw datagrams", 8, mebibyte / 4, false, false, nullptr,
     measure_all_gather},
    {"idle", "how long a node that only waits uses its cores, of each second of --milliseconds",
     "a hundredth of a core: ratio 1 is the most it may take", 0, 0, false, false, nullptr,
     measure_idle},
    {"acp_copy", "how long acp_copy from registered memory to another rank takes, until complete",
     "a copy, or a write of net where nothing is mapped", 8, 32768, false, false, nullptr,
     measure_acp_copy},
    {"acp_copies", "how long 64 acp_copy take that are under way together", "one acp_copy", 8, 4096,
     false, false, nullptr, measure_acp_copies},
    {"acp_add8", "how long acp_add8 of another rank's word takes until it is complete",
     "an atomic instruction, or a fetch-and-add of net where nothing is mapped", 8, 8, false, false,
     nullptr, measure_acp_add8},
    {"acp_sync", "how long acp_sync takes", "a barrier of net", 0, 0, false, false, nullptr,
     measure_acp_sync},
    {"acp_third_party", "how long acp_copy from the second rank to the third takes",
     "a copy, or a read of net where nothing is mapped: one round trip", 8, 32768, false, false,
     nullptr, measure_acp_third_party, 3},
    {"acp_malloc", "how long acp_malloc and acp_free of another rank's memory take together",
     "acp_copy of as many bytes to that rank", 8, 4096, false, false, nullptr, measure_acp_malloc},
    {"acp_vector", "how long it takes to append to a vector on another rank",
     "acp_copy of as many bytes to that rank", 8, 4096, false, false, nullptr, measure_acp_vector},
    {"acp_list",
     "how long it takes to append to a list on another rank, and to erase its first element",
     "acp_copy of as many bytes to that rank", 8, 4096, false, false, nullptr, measure_acp_list},
    {"acp_map_insert",
     "how long it takes to insert a key into a map on another rank and to remove it",
     "acp_copy of as many bytes to that rank", 8, 4096, false, false, nullptr,
     measure_acp_map_insert},
    {"acp_map_find", "how long it takes to find a key of a map on another rank",
     "acp_copy of as many bytes to that rank", 8, 4096, false, false, nullptr,
     measure_acp_map_find},
    {"acp_channel", "how long a message by a channel takes there and another back",
     "acp_copy of as many bytes to that rank", 8, 4096, false, false, nullptr, measure_acp_channel},
    {"dsm_read_miss", "how long a read takes of a page that another node has written",
     "a bare handler: the page's bytes from the peer, a copy of them, the page mapped", 0, 0, false,
     false, prepare_memory, measure_dsm_read_miss},
    {"dsm_write_miss", "how long a write takes to a page that another node has written",
     "a bare handler: the page's bytes from the peer, a copy of them, the page mapped", 0, 0, false,
     false, prepare_memory, measure_dsm_write_miss},
    {"dsm_busy_home", "how long a read miss takes whose home computes, without a call",
     "a read miss whose home waits for messages", 0, 0, false, false, prepare_memory,
     measure_dsm_busy_home},
    {"dsm_first_write", "how long the first write takes to a page that is readable here",
     "the engine's notice of it, without the shared memory", 0, 0, false, false, prepare_memory,
     measure_dsm_first_write},
    {"dsm_release", "what a release takes for each page that was written, --bytes in all",
     "a bare scan, and a copy of each page; home elsewhere: also one exchange with the peer",
     64 * page_bytes, 16 * mebibyte, false, false, prepare_memory, measure_dsm_release},
    {"dsm_clean_barrier", "how long a barrier takes with --bytes readable and nothing written",
     "flags in lines (udp: raw datagrams)", mebibyte, 1024 * mebibyte, false, false, prepare_memory,
     measure_dsm_clean_barrier},
    {"dsm_ping_pong", "how long one word takes to another node, by barriers",
     "a bare scan, a copy of the page by who writes, flags in lines (udp: raw datagrams)", 0, 0,
     false, false, prepare_memory, measure_dsm_ping_pong},
    {"dsm_false_sharing", "how long a step takes in which both nodes write words of one page",
     "a bare scan, a copy of the page by who writes, flags in lines (udp: raw datagrams)", 0, 0,
     false, false, prepare_memory, measure_dsm_false_sharing},
    {"dsm_lock_handover", "how long a contended lock takes that guards one counter",
     "the release of one page and a read miss, each alone", 0, 0, false, false, prepare_memory,
     measure_dsm_lock_handover},
    {"omp_fork_join", "how long a parallel region with an empty body takes, --bytes tracked",
     "two bare scans of as many pages, one after the other, and a raw round trip", mebibyte,
     64 * mebibyte, false, false, prepare_regions, measure_omp_fork_join},
    {"omp_barrier", "how long omp barrier takes, --bytes tracked",
     "a bare scan of as many pages and a raw round trip", mebibyte, 64 * mebibyte, false, false,
     prepare_regions, measure_omp_barrier},
    {"omp_shared_local", "how long a region takes whose body reads one shared local",
     "a region with an empty body", mebibyte, 64 * mebibyte, false, false, prepare_regions,
     measure_omp_shared_local},
    {"gas_get", "how long a get takes whose metadata is here",
     "a load, or a read of net where nothing is mapped", 8, mebibyte, false, false, prepare_space,
     measure_gas_get},
    {"gas_start_get",
     "what a get of a word takes when 64 are started, over --bytes, and waited for",
     "a load, or a read of net where nothing is mapped, 64 at a time", 4096, mebibyte, false, false,
     prepare_space, measure_gas_start_get},
    {"gas_put", "how long a put takes whose metadata is here",
     "a store, or a write of net where nothing is mapped", 8, mebibyte, false, false, prepare_space,
     measure_gas_put},
    {"gas_get_miss", "how long a get takes that asks the directory node first",
     "a get whose metadata is here and 1.2 times an active message and its answer; one-sided "
     "directory: and two fetch-and-adds of net",
     8, 65536, false, false, prepare_space, measure_gas_get_miss},
    {"gas_own", "how long own() takes of memory that one other node shares",
     "four active messages and answers, and two reads of net; from 1M on: one read of net", 4096,
     64 * mebibyte, false, false, prepare_space, measure_gas_own},
    {"kick_latency", "how long a kick there and one back take",
     "shm: a cache line there and back; udp: raw datagrams", 8, 8, false, false, prepare_kicks,
     measure_kick_latency},
    {"kick_barrier", "how long all nodes take to meet by kicks",
     "shm: flags in lines; udp: raw datagrams", 0, 0, false, false, prepare_kicks,
     measure_kick_barrier},
    {"kick_tree", "how long they take in the tree of arity 8",
     "shm: a cache line there and back for each level; udp: raw datagrams", 0, 0, false, false,
     prepare_kicks, measure_kick_tree},
    {"kick_all_reduce", "how long the sum of a double of each node takes by kicks",
     "shm: values in lines; udp: raw datagrams", 8, 8, false, false, prepare_kicks,
     measure_kick_all_reduce},
    {"kick_sum_float", "the same of a float", "shm: values in lines; udp: raw datagrams", 4, 4,
     false, false, prepare_kicks, measure_kick_sum_float},
    {"kick_sum_ull", "the same of an unsigned long long",
     "shm: values in lines; udp: raw datagrams", 8, 8, false, false, prepare_kicks,
     measure_kick_sum_ull},
    {"kick_sum_unsigned", "the same of an unsigned", "shm: values in lines; udp: raw datagrams", 4,
     4, false, false, prepare_kicks, measure_kick_sum_unsigned},
    {"channel", "what one item of a stream through a ring takes",
     "shm: a cache line one way; udp: a raw datagram one way", 8, 8, false, false, prepare_kicks,
     measure_channel},
    {"kick_store", "what a thread pays for one of many kicks", "a store to memory of its own", 8, 8,
     false, false, prepare_kicks, measure_kick_store},
    {"kick_resolve", "what it takes to prepare kicks to a page whose header is cached no more",
     "to prepare them to one whose header is", 8, 8, false, false, prepare_kicks,
     measure_kick_resolve},
    {"window", "how long a window takes to its receiver and back to be filled again",
     "shm: a cache line there and back; udp: raw datagrams", 464, 1440, false, false, prepare_kicks,
     measure_window},
    {"windows", "what one of many windows takes, eight in turn, one way",
     "shm: memcpy; udp: a raw GSO stream", 464, 1440, false, false, prepare_windows,
     measure_windows},
    {"windows_both", "what it takes when both nodes send and take at once",
     "one way alone. shm: memcpy; udp: a raw GSO stream", 464, 1440, false, false, prepare_windows,
     measure_windows_both},
};

std::string names() {
    std::string all;
    for (const Test& test : tests) all += (all.empty() ? "" : ", ") + std::string(test.name);
    return all;
}

Result<std::uint64_t> bytes_option(const Test& test, const std::string& text) {
    if (text.empty()) return test.bytes;
    if (test.bytes_max == 0) {
        return Error{ErrorKind::usage,
                     fmt::format("--bytes {}: {} has no size. Leave it out", text, test.name)};
    }
    auto bytes = parse_size(text, "--bytes");
    if (!bytes) return bytes;
    const bool is_atomic = test.measure == measure_atomic_latency;
    const bool fits = *bytes >= (is_atomic ? 4u : 8u) && *bytes <= test.bytes_max;
    if (!fits || *bytes % (is_atomic ? 4 : 8) != 0) {
        return Error{ErrorKind::usage,
                     fmt::format("--bytes {}: {} takes a multiple of 8 from 8 to {}{}. Change "
                                 "--bytes",
                                 text, test.name, test.bytes_max, is_atomic ? ", or 4" : "")};
    }
    return bytes;
}

/// Puts the place of `text` among `names` into `choice`; empty: the first.
template <class Choice, std::size_t count>
Result<void> choose(const char* option, const std::string& text, const char* const (&names)[count],
                    Choice& choice) {
    if (text.empty()) return {};
    for (std::size_t i = 0; i < count; ++i) {
        choice = static_cast<Choice>(i);
        if (text == names[i]) return {};
    }
    return Error{ErrorKind::usage, fmt::format("{} {}: must be one of {}. Change {}", option, text,
                                               fmt::join(names, "|"), option)};
}

constexpr const char* change_names[] = {"byte", "page", "doubles"};
constexpr const char* home_names[] = {"here", "elsewhere"};

Result<void> choose_release(const PerfOptions& options, PerfPlan& plan) {
    if (plan.test->measure != measure_dsm_release) {
        const char* const given = !options.change.empty() ? "--change"
                                  : !options.home.empty() ? "--home"
                                                          : nullptr;
        if (given == nullptr) return {};
        return Error{ErrorKind::usage,
                     fmt::format("{}: only dsm_release has one. Leave it out", given)};
    }
    if (auto chosen = choose("--change", options.change, change_names, plan.change); !chosen)
        return chosen;
    return choose("--home", options.home, home_names, plan.home);
}

/// The executors of --executors; several are refused where no request passes through a queue.
Result<std::uint32_t> executors_option(const Test& test, const std::string& text) {
    if (text.empty()) return 1u;
    const auto count = number_option("--executors", text, 1, net::offload::Engine::queues_max);
    if (!count) return count.error();
    if (*count > 1 && !takes_executors(test)) {
        return Error{ErrorKind::usage,
                     fmt::format("--executors {}: nothing that {} measures passes through the "
                                 "command queues. Leave it out",
                                 *count, test.name)};
    }
    const std::string_view offload = setting("HIROBA_OFFLOAD");
    if (*count > 1 && !test.parks_consumer && offload != "always") {
        return Error{ErrorKind::usage,
                     fmt::format("--executors {}: with --offload {} few requests or none pass "
                                 "through the command queues. Add --offload always",
                                 *count, offload)};
    }
    return static_cast<std::uint32_t>(*count);
}

}  // namespace

bool takes_executors(const Test& test) {
    using Measure = Measured (*)(Rig&);
    static constexpr Measure of_requests[] = {
        measure_put_latency,  measure_get_latency,   measure_atomic_latency, measure_enqueue,
        measure_read_latency, measure_read_overhead, measure_read_rate,      measure_stream};
    return std::ranges::find(of_requests, test.measure) != std::end(of_requests);
}

const char* name_of(Change change) { return change_names[static_cast<std::size_t>(change)]; }
const char* name_of(Home home) { return home_names[static_cast<std::size_t>(home)]; }

std::span<const Test> all_tests() { return tests; }

Result<std::uint64_t> number_option(const char* option, const std::string& text, std::uint64_t min,
                                    std::uint64_t max) {
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, value);
    if (parsed.ec != std::errc() || parsed.ptr != end || value < min || value > max) {
        return Error{ErrorKind::usage, fmt::format("{} {}: wanted a whole number from {} to {}. "
                                                   "Change {}",
                                                   option, text, min, max, option)};
    }
    return value;
}

Result<PerfPlan> make_perf_plan(const PerfOptions& options) {
    PerfPlan plan;
    for (const Test& test : tests) {
        if (options.test == test.name) plan.test = &test;
    }
    if (plan.test == nullptr) {
        return Error{ErrorKind::usage,
                     fmt::format("perf {}: no such test; there are all, openmp, {}. See "
                                 "hiroba perf --list",
                                 options.test, names())};
    }
    const std::uint32_t nodes_min = plan.test->nodes_min;
    const std::string wanted = options.nodes.empty() ? std::to_string(nodes_min) : options.nodes;
    const auto nodes = number_option("--nodes", wanted, nodes_min, nodes_max);
    if (!nodes) return nodes.error();
    auto threads = number_option("--threads", options.threads, 1, threads_max);
    if (!threads) return threads.error();
    if (*threads > 1 && !plan.test->takes_threads) {
        return Error{ErrorKind::usage, fmt::format("--threads {}: {} is made by one thread. Leave "
                                                   "it out",
                                                   *threads, plan.test->name)};
    }
    const auto executors = executors_option(*plan.test, options.executors);
    if (!executors) return executors.error();
    auto bytes = bytes_option(*plan.test, options.bytes);
    if (!bytes) return bytes.error();
    if (*threads > 1 && *bytes * *threads > 32 * mebibyte) {
        return Error{ErrorKind::usage, fmt::format("--bytes {} for each of --threads {}: more than "
                                                   "the 32M there are. Change one of them",
                                                   *bytes, *threads)};
    }
    const auto repeat = number_option("--repeat", options.repeat, 1, 1000);
    if (!repeat) return repeat.error();
    const auto milliseconds = number_option("--milliseconds", options.milliseconds, 1, 600'000);
    if (!milliseconds) return milliseconds.error();
    if (auto chosen = choose_release(options, plan); !chosen) return chosen.error();
    plan.nodes = static_cast<std::uint32_t>(*nodes);
    plan.threads = static_cast<std::uint32_t>(*threads);
    plan.executors = *executors;
    plan.bytes = *bytes;
    plan.repeat = static_cast<std::uint32_t>(*repeat);
    plan.run_ns = *milliseconds * 1'000'000;
    return plan;
}

}  // namespace hiroba::tools::perf_parts
