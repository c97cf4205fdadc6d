// SPDX-License-Identifier: BSD-3-Clause
// Role: see beside.hpp. UCX is measured by its own ucx_perftest, an MPI library by our program
// hiroba-perf-mpi (peers/mpi.c), which is built where there is one. By turns, since all then meet
// the same other work.
#include "tools/perf/beside.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>

#include "base/settings.hpp"
#include "tools/become.hpp"
#include "tools/json.hpp"
#include "tools/line.hpp"
#include "tools/perf/child.hpp"
#include "tools/perf/table.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr std::uint32_t run_seconds_max = 120;
constexpr int tries_to_reach_server = 50;

/// What a peer has that is equal to a test.
struct Equal {
    const char* test;
    const char* name;   ///< of the peer's test
    double factor = 1;  ///< the peer's nanoseconds to the test's: 2 for half a round trip
    std::uint64_t count = 20'000;
    const char* provider = nullptr;  ///< alone over this one
    bool any_threads = false;        ///< a stream: its one thread beside our several
};
constexpr Equal ucx_equals[] = {
    {"put_latency", "ucp_put_lat"},
    {"get_latency", "ucp_get", 1, 3'000},
    {"atomic_latency", "ucp_fadd"},
    {"am_latency", "ucp_am_lat", 2},
    {"message_rate", "ucp_put_bw", 1, 200'000, nullptr, true},
    {"bandwidth", "ucp_put_bw", 1, 2'000, nullptr, true},
    {"read_latency", "ucp_get", 1, 3'000},
    {"gas_get", "ucp_get", 1, 3'000},
    {"acp_add8", "ucp_fadd"},
};
constexpr Equal mpi_equals[] = {
    // Over sockets a rank that only looks at its memory makes no progress: the put and its flush.
    {"put_latency", "put", 1, 0, "udp"},
    {"put_latency", "put_seen", 0.5},
    {"get_latency", "get"},
    {"atomic_latency", "fetch_and_op"},
    {"am_latency", "send_recv"},
    {"message_rate", "puts"},
    {"bandwidth", "puts"},
    {"read_latency", "get"},
    {"read_rate", "gets"},
    {"barrier", "barrier"},
    {"kick_barrier", "barrier"},
    {"kick_tree", "barrier"},
    {"all_reduce", "allreduce"},
    {"kick_all_reduce", "allreduce"},
    {"all_gather", "allgather"},
    {"gas_get", "get"},
    {"gas_put", "put"},
    {"gas_start_get", "gets"},
    {"acp_copy", "put"},
    {"acp_add8", "fetch_and_op"},
    {"acp_sync", "barrier"},
    {"acp_copies", "puts"},
};

/// The transport of peers that is like ours.
struct Transport {
    std::string ucx_tls;
    std::vector<std::string> mpi_words;
};
std::optional<Transport> transport_like(std::string_view provider) {
    const std::vector<std::string> own = {"--mca", "pml", "ob1"};
    if (provider == "shm" || provider == "auto") {
        Transport shm{"posix,sysv,cma,self", own};
        shm.mpi_words.insert(shm.mpi_words.end(), {"--mca", "btl", "self,vader"});
        return shm;
    }
    if (provider == "udp") {
        Transport tcp{"tcp,self", own};
        tcp.mpi_words.insert(tcp.mpi_words.end(),
                             {"--mca", "btl", "self,tcp", "--mca", "osc", "pt2pt"});
        return tcp;
    }
    if (provider == "ucx") {
        // On one host, tcp alone of UCX's wires tells of a peer's death, which our provider asks
        // for.
        const char* const chosen = ::getenv("UCX_TLS");
        return Transport{chosen != nullptr ? chosen : "tcp,self", {"--mca", "pml", "ucx"}};
    }
    return std::nullopt;
}

/// One side of the comparison, and what its runs took.
struct Side {
    std::string name;
    const Equal* equal = nullptr;  ///< nullptr: hiroba itself
    std::vector<double> ns;

    double median() const { return quantile(ns, 0.5); }
};

std::string last_line(const std::string& text) {
    std::istringstream lines(text);
    std::string last;
    for (std::string line; std::getline(lines, line);) {
        if (!line.empty()) last = line;
    }
    return last;
}

Error failed(const std::string& what, int status, const std::string& output) {
    return {ErrorKind::environment,
            fmt::format("{} ended with status {}: {}", what, status, last_line(output))};
}

std::uint16_t free_port() {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    if (::bind(fd, name, length) != 0 || ::getsockname(fd, name, &length) != 0)
        address.sin_port = 0;  // the peer then says that it cannot listen
    ::close(fd);
    return ntohs(address.sin_port);
}

/// The number behind `name` in a line of JSON.
std::optional<double> member(const std::string& text, const std::string& name) {
    const std::size_t at = text.find("\"" + name + "\":");
    if (at == text.npos) return std::nullopt;
    return std::strtod(text.c_str() + at + name.size() + 3, nullptr);
}

Result<double> run_ours(const std::vector<std::string>& words, std::uint32_t seconds,
                        double& floor_ns) {
    Child run(words, {}, true);
    std::string output;
    const int status = run.finish(seconds, output);
    const auto ns = member(output, "median_ns"), floor = member(output, "floor_ns");
    if (status != 0 || !ns || !floor) return failed("hiroba perf", status, output);
    floor_ns = *floor;
    return *ns;
}

/// ucx_perftest's last line: iterations, then median, average and overall time in microseconds. The
/// median, as of our own; streams have none.
std::optional<double> microseconds_of_ucx(const std::string& output) {
    std::istringstream lines(output);
    std::optional<double> found;
    for (std::string line; std::getline(lines, line);) {
        const std::size_t at = line.find("Final:");
        double iterations = 0, median = 0, average = 0, overall = 0;
        const char* const numbers = line.c_str() + (at == line.npos ? 0 : at + 6);
        if (std::sscanf(numbers, "%lf %lf %lf %lf", &iterations, &median, &average, &overall) ==
            4) {
            found = median > 0 ? median : overall;
        }
    }
    return found;
}

Result<double> run_ucx(const PerfPlan& plan, const Equal& equal, const Transport& transport) {
    const std::string port = std::to_string(free_port());
    const Child::Settings settings = {{"UCX_TLS", transport.ucx_tls}, {"UCX_LOG_LEVEL", "error"}};
    std::vector<std::string> words = {"ucx_perftest",
                                      "127.0.0.1",
                                      "-p",
                                      port,
                                      "-f",
                                      "-t",
                                      equal.name,
                                      "-s",
                                      std::to_string(plan.bytes),
                                      "-n",
                                      std::to_string(equal.count)};
    if (std::string_view(equal.name) == "ucp_get" || std::string_view(equal.name) == "ucp_fadd") {
        words.insert(words.end(), {"-O", "1"});  // one at a time
    }
    // A core each where there are two, as our nodes have.
    std::vector<std::string> served = {"ucx_perftest", "-p", port};
    if (std::thread::hardware_concurrency() > 1) {
        words.insert(words.end(), {"-c", "0"});
        served.insert(served.end(), {"-c", "1"});
    }
    const Child server(served, settings, false);
    std::string output;
    int status = 0;
    for (int i = 0; i < tries_to_reach_server; ++i) {
        ::usleep(100'000);  // nothing tells when it listens
        output.clear();
        Child client(words, settings, true);
        status = client.finish(run_seconds_max, output);
        if (status == 0) break;
    }
    const auto us = microseconds_of_ucx(output);
    if (status != 0 || !us) return failed("ucx_perftest", status, output);
    return *us * 1000 * equal.factor;
}

Result<double> run_mpi(const PerfPlan& plan, const Equal& equal, const Transport& transport) {
    std::vector<std::string> words = {"mpirun", "--oversubscribe", "-n",
                                      std::to_string(plan.nodes)};
    if (::geteuid() == 0) words.emplace_back("--allow-run-as-root");
    words.insert(words.end(), transport.mpi_words.begin(), transport.mpi_words.end());
    words.insert(words.end(), {beside_this_program("hiroba-perf-mpi"), equal.name,
                               std::to_string(std::max<std::uint64_t>(plan.bytes, 8)),
                               std::to_string(plan.run_ns / 1'000'000)});
    Child run(words, {}, true);
    std::string output;
    const int status = run.finish(run_seconds_max, output);
    const auto ns = member(output, "ns");
    if (status != 0 || !ns) return failed("mpirun", status, output);
    return *ns * equal.factor;
}

template <std::size_t count>
const Equal* equal_of(const Equal (&equals)[count], std::string_view test,
                      std::string_view provider) {
    for (const Equal& equal : equals) {
        const bool is_over = equal.provider == nullptr || provider == equal.provider;
        if (test == equal.test && is_over) return &equal;
    }
    return nullptr;
}

const Equal* peer_of(std::string_view peer, std::string_view test, std::string_view provider) {
    return peer == "ucx" ? equal_of(ucx_equals, test, provider)
                         : equal_of(mpi_equals, test, provider);
}

/// The peers that `--beside` names; the first that cannot be had is an error.
Result<std::vector<Side>> sides_of(const PerfPlan& plan, std::string_view provider,
                                   const std::string& peers) {
    std::vector<Side> sides(1);
    sides[0].name = "hiroba";
    std::istringstream names(peers);
    for (std::string name; std::getline(names, name, ',');) {
        const bool is_ucx = name == "ucx";
        if (!is_ucx && name != "mpi") {
            return Error{ErrorKind::usage,
                         fmt::format("--beside {}: there are ucx and mpi. Change --beside", name)};
        }
        const Equal* const equal = peer_of(name, plan.test->name, provider);
        if (equal == nullptr || (is_ucx && plan.nodes != 2)) {
            return Error{ErrorKind::usage,
                         fmt::format("--beside {}: it has no equal of {} between {} "
                                     "nodes. Leave it out",
                                     name, plan.test->name, plan.nodes)};
        }
        if (plan.threads != 1 && !equal->any_threads) {
            return Error{
                ErrorKind::usage,
                fmt::format("--beside {} --threads {}: its {} has one thread. Leave one of "
                            "them out",
                            name, plan.threads, equal->name)};
        }
        const std::string program = is_ucx ? "ucx_perftest" : "mpirun";
        const std::string ours = is_ucx ? program : beside_this_program("hiroba-perf-mpi");
        if (!is_program(program) || !is_program(ours)) {
            return Error{ErrorKind::environment,
                         fmt::format("--beside {}: there is no {}. {}", name,
                                     is_program(program) ? ours : program,
                                     is_ucx ? "Install ucx-utils"
                                            : "Install an MPI library with mpicc, configure anew "
                                              "and build hiroba_perf_mpi")};
        }
        sides.push_back({name, equal, {}});
    }
    return sides;
}

void print(const PerfPlan& plan, std::string_view provider, const std::vector<Side>& sides,
           double floor_ns, bool json) {
    const double ours = sides[0].median();
    if (json) {
        Json all = Json::array();
        for (const Side& side : sides) {
            all.push_back(
                Json::object({{"name", side.name},
                              {"test", side.equal != nullptr ? side.equal->name : plan.test->name},
                              {"median_ns", side.median()},
                              {"low_ns", quantile(side.ns, 0)},
                              {"high_ns", quantile(side.ns, 1)}}));
        }
        fmt::print("{}\n", Json::object({{"test", plan.test->name},
                                         {"provider", provider},
                                         {"nodes", plan.nodes},
                                         {"bytes", plan.bytes},
                                         {"rounds", plan.repeat},
                                         {"floor_ns", floor_ns},
                                         {"sides", all}})
                               .dump());
        return;
    }
    fmt::print("{} over {}: {} nodes, {} bytes, {} round{} by turns\n", plan.test->name, provider,
               plan.nodes, plan.bytes, plan.repeat, plan.repeat == 1 ? "" : "s");
    fmt::print("  {:<24}{:>12}{:>24}{:>8}{:>8}\n", "", "median ns", "lowest to highest", "ratio",
               "rate");
    for (const Side& side : sides) {
        const std::string name =
            side.equal != nullptr ? fmt::format("{}: {}", side.name, side.equal->name) : side.name;
        const std::string spread =
            fmt::format("{:.1f} to {:.1f}", quantile(side.ns, 0), quantile(side.ns, 1));
        fmt::print("  {:<24}{:>12.1f}{:>24}{:>8.2f}{:>8.2f}\n", name, side.median(), spread,
                   ours / side.median(), side.median() / ours);
    }
    fmt::print("  {:<24}{:>12.1f}{:>24}{:>8.2f}{:>8.2f}\n", "floor", floor_ns, "", ours / floor_ns,
               floor_ns / ours);
}

/// One line of a table: ours, and of each peer its time, ours in times of it, and our rate in
/// times of its rate.
void print_row(const PerfPlan& plan, const std::vector<Side>& sides) {
    const double ours = sides[0].median();
    fmt::print("{:<18}{:>9}{:>4}{:>4}{:>13.1f}", plan.test->name, plan.bytes, plan.nodes,
               plan.threads, ours);
    for (std::size_t i = 1; i < sides.size(); ++i) {
        const double theirs = sides[i].median();
        fmt::print("{:>14}{:>13.1f}{:>7.2f}{:>7.2f}", sides[i].equal->name, theirs, ours / theirs,
                   theirs / ours);
    }
    fmt::print("\n");
}

void print_head(const std::vector<Side>& sides, std::string_view provider, std::uint32_t rounds) {
    const char* const tls = ::getenv("UCX_TLS");
    const bool is_ucx = provider.find("ucx") != provider.npos;
    fmt::print("over {}{}{}: {} round{} by turns; ns, ratio of times, ratio of rates\n", provider,
               is_ucx ? ", UCX_TLS=" : "", is_ucx ? tls : "", rounds, rounds == 1 ? "" : "s");
    fmt::print("{:<18}{:>9}{:>4}{:>4}{:>13}", "test", "bytes", "n", "t", "hiroba");
    for (std::size_t i = 1; i < sides.size(); ++i)
        fmt::print("{:>14}{:>13}{:>7}{:>7}", "", sides[i].name, "time", "rate");
    fmt::print("\n");
}

/// Measures the test and its peers by turns.
Result<double> take_turns(const PerfPlan& plan, const PerfOptions& options,
                          const Transport& transport, std::vector<Side>& sides) {
    PerfOptions one_run = options;
    one_run.repeat = "1";
    const std::vector<std::string> ours = words_of(one_run);
    std::vector<double> floors;
    for (std::uint32_t round = 0; round < plan.repeat; ++round) {
        for (Side& side : sides) {
            double floor_ns = 0;
            const auto ns = side.equal == nullptr ? run_ours(ours, seconds_max(one_run), floor_ns)
                            : side.name == "ucx"  ? run_ucx(plan, *side.equal, transport)
                                                  : run_mpi(plan, *side.equal, transport);
            if (!ns) return ns.error();
            side.ns.push_back(*ns);
            if (side.equal == nullptr) floors.push_back(floor_ns);
        }
    }
    return quantile(floors, 0.5);
}

}  // namespace

bool has_equal(const Test& test, const PerfOptions& options) {
    std::istringstream names(options.beside);
    for (std::string name; std::getline(names, name, ',');) {
        if (name != "ucx" && name != "mpi") continue;  // refused where its figures would be
        const Equal* const equal = peer_of(name, test.name, setting("HIROBA_PROVIDER"));
        const bool has_threads = test.takes_threads && options.threads != "1";
        if (equal == nullptr || (has_threads && !equal->any_threads)) return false;
    }
    return true;
}

int measure_beside(const std::vector<PerfOptions>& rows) {
    const std::string_view provider = setting("HIROBA_PROVIDER");
    const auto transport = transport_like(provider);
    if (!transport) {
        return report(
            {ErrorKind::usage,
             fmt::format("--beside: peers have an equal of providers shm, udp and ucx, not "
                         "of {}. Change --provider",
                         provider)});
    }
    // Both sides of the comparison take the same wire.
    ::setenv("UCX_TLS", transport->ucx_tls.c_str(), 1);
    int first_failure = 0;
    bool has_head = false;
    for (const PerfOptions& row : rows) {
        const auto plan = make_perf_plan(row);
        if (!plan) return report(plan.error());
        auto sides = sides_of(*plan, provider, row.beside);
        if (!sides) return report(sides.error());
        const bool is_only = rows.size() == 1 || row.json;
        if (!is_only && !has_head) print_head(*sides, provider, plan->repeat);
        has_head = true;
        const auto floor_ns = take_turns(*plan, row, *transport, *sides);
        if (!floor_ns) {
            const int status = report(floor_ns.error());
            if (first_failure == 0) first_failure = status;
        } else if (is_only) {
            print(*plan, provider, *sides, *floor_ns, row.json);
        } else {
            print_row(*plan, *sides);
        }
        if (std::fflush(stdout) != 0) return 1;
    }
    return first_failure;
}

}  // namespace hiroba::tools::perf_parts
