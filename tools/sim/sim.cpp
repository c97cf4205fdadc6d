// SPDX-License-Identifier: BSD-3-Clause
// Role: see sim.hpp.
#include "tools/sim/sim.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <utility>

#include "base/fatal.hpp"
#include "tools/become.hpp"
#include "tools/line.hpp"
#include "tools/run/plan.hpp"
#include "tools/run/program.hpp"

namespace hiroba::tools {
namespace {

/// Each node is a stack and a card: more than these are no longer looked at by a person.
constexpr std::uint64_t simulated_nodes_max = 1024;
constexpr std::uint64_t anything = ~std::uint64_t{0};

struct SimPlan {
    std::uint64_t nodes = 0, seed = 0, seeds = 0, loss = 0, duplicate = 0, reorder = 0, limit = 0,
                  busy = 0;
    std::string program, library;
};

Result<std::uint64_t> number(const char* name, const std::string& text, std::uint64_t least,
                             std::uint64_t most) {
    std::uint64_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc() || end != text.data() + text.size() || value < least || value > most)
        return Error{ErrorKind::usage,
                     most == anything
                         ? fmt::format("{} {}: a number from {}", name, text, least)
                         : fmt::format("{} {}: a number from {} to {}", name, text, least, most)};
    return value;
}

/// The library that is preloaded lies beside the runtime.
Result<std::string> find_simulator() {
    auto runtime = find_library();
    if (!runtime) return runtime;
    const std::string path = runtime->substr(0, runtime->rfind('/') + 1) + "libhiroba_net_sim.so";
    if (::access(path.c_str(), R_OK) == 0) return path;
    return Error{ErrorKind::environment,
                 "the simulator " + path + " is missing or cannot be read. Install all of hiroba"};
}

Result<SimPlan> plan_of(const SimOptions& options) {
    SimPlan plan;
    const std::tuple<const char*, const std::string*, std::uint64_t, std::uint64_t, std::uint64_t*>
        numbers[] = {{"--nodes", &options.nodes, 1, simulated_nodes_max, &plan.nodes},
                     {"--seed", &options.seed, 0, anything, &plan.seed},
                     {"--seeds", &options.seeds, 1, anything, &plan.seeds},
                     {"--loss", &options.loss, 0, 90, &plan.loss},
                     {"--duplicate", &options.duplicate, 0, 90, &plan.duplicate},
                     {"--reorder", &options.reorder, 0, 100, &plan.reorder},
                     {"--limit", &options.limit, 1, 1'000'000'000, &plan.limit},
                     {"--busy", &options.busy, 1, 1'000'000'000, &plan.busy}};
    for (const auto& [name, text, least, most, to] : numbers) {
        const auto value = number(name, *text, least, most);
        if (!value) return value.error();
        *to = *value;
    }
    if (options.command.empty())
        return Error{ErrorKind::usage, "no program: hiroba sim -n N [--] PROGRAM ..."};
    auto program = find_program(options.command[0]);
    if (!program) return program.error();
    plan.program = *program;
    if (spmd_library_of(plan.program) != "libhiroba_net.so")
        return Error{ErrorKind::environment,
                     plan.program +
                         " is not linked with libhiroba_net.so: simulated are programs on "
                         "hiroba/net.hpp and hiroba/kick.hpp. Others: hiroba run"};
    auto simulator = find_simulator();
    if (!simulator) return simulator.error();
    plan.library = *simulator;
    return plan;
}

[[noreturn]] void become_program(const SimOptions& options, const SimPlan& plan,
                                 std::uint64_t seed) {
    const char* const preloaded = ::getenv("LD_PRELOAD");
    if (preloaded != nullptr) ::setenv("HIROBA_JOB_SAVED_LD_PRELOAD", preloaded, 1);
    const std::string all =
        preloaded == nullptr || *preloaded == '\0' ? plan.library : plan.library + ":" + preloaded;
    const std::string words = fmt::format("{} {} {} {} {} {} {}", plan.nodes, seed, plan.loss,
                                          plan.duplicate, plan.reorder, plan.limit, plan.busy);
    ::setenv("LD_PRELOAD", all.c_str(), 1);
    ::setenv("HIROBA_JOB_SIMULATION", words.c_str(), 1);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Equal addresses in equal runs: programs may sort by them, or hash them.
    ::personality(ADDR_NO_RANDOMIZE);
    const std::vector<char*> pointers = pointers_to(options.command);
    ::execv(plan.program.c_str(), pointers.data());
    say_line(fmt::format("{} cannot be executed: {}", plan.program, ::strerror(errno)));
    ::_exit(exit_environment);
}

/// Its exit status, as a shell gives it.
int run_once(const SimOptions& options, const SimPlan& plan, std::uint64_t seed) {
    const pid_t child = ::fork();
    if (child == 0) become_program(options, plan, seed);
    if (child < 0) {
        say_line(fmt::format("no process for the simulation: {}. See ulimit -u", strerror(errno)));
        return exit_environment;
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// The command that repeats the run of `seed`.
std::string command_of(const SimOptions& options, const SimPlan& plan, std::uint64_t seed) {
    std::string words = fmt::format("hiroba sim -n {} --seed {}", plan.nodes, seed);
    const std::pair<const char*, std::uint64_t> shares[] = {
        {"--loss", plan.loss}, {"--duplicate", plan.duplicate}, {"--reorder", plan.reorder}};
    for (const auto& [name, share] : shares)
        if (share != 0) words += fmt::format(" {} {}", name, share);
    for (const std::string& word : options.command) words += " " + word;
    return words;
}

}  // namespace

CommandWords sim_words(SimOptions& options) {
    CommandWords words("sim",
                       "Run a program on hiroba/net.hpp or kick.hpp on simulated nodes: hiroba sim "
                       "-n N [--seed S] [--] PROGRAM ...");
    words.add_option("-n,--nodes", options.nodes, "number of simulated nodes, 1 to 1024");
    words.add_option(
        "--seed", options.seed,
        "decides what the wire does and whose turn it is: equal seeds, equal runs (1)");
    words.add_option("--seeds", options.seeds,
                     "run so many times, each with the next seed, until one fails (1)");
    words.add_option("--loss", options.loss, "percent of packets that are lost and sent again (0)");
    words.add_option("--duplicate", options.duplicate, "percent that arrive twice (0)");
    words.add_option("--reorder", options.reorder, "percent that are held back (0)");
    words.add_option("--limit", options.limit,
                     "seconds of virtual time after which the run is given up (1000)");
    words.add_option("--busy", options.busy,
                     "seconds of processor time that a thread may compute in one turn (60)");
    words.footer(
        "All nodes are in one process, and their threads take turns in virtual time: a hang is "
        "found in moments, and what failed once fails again. The first word that is no option "
        "names the program; all that follow are its arguments.");
    words.take_program();
    words.check_with([&options] { return options.nodes.empty() ? "--nodes is required" : ""; });
    return words;
}

int sim(const SimOptions& options) {
    const auto plan = plan_of(options);
    if (!plan) return report(plan.error());
    for (std::uint64_t done = 0; done < plan->seeds; ++done) {
        const std::uint64_t seed = plan->seed + done;
        const int status = run_once(options, *plan, seed);
        if (status == 0) continue;
        say_line(fmt::format("seed {}: status {}. Again: {}", seed, status,
                             command_of(options, *plan, seed)));
        return status;
    }
    if (plan->seeds > 1)
        say_line(fmt::format("seeds {} to {}: every run ended with status 0", plan->seed,
                             plan->seed + plan->seeds - 1));
    return 0;
}

}  // namespace hiroba::tools
