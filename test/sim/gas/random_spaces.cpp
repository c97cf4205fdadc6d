// SPDX-License-Identifier: BSD-3-Clause
// Role: runs the random programs of a range of seeds on relocatable spaces of simulated nodes.
// Usage: sim_random_spaces FIRST LAST [steps=N] [crash] [tell] [first]
//   crash  one node dies on the way   first  stops at the first failure, and says how soon it came
// A program that ends its process is a failure like any other; it runs in a child.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "sim/gas/random_space.hpp"

namespace hiroba::sim_test {
namespace {

/// What the children tell the parent.
struct Tally {
    std::uint64_t seed = 0;  ///< being run
    bool running = false;
    std::uint64_t programs = 0, failures = 0;
    std::uint64_t accesses = 0, relocations = 0, misses = 0, lost = 0;
};

struct Arguments {
    std::uint64_t first = 1, last = 1;
    RandomSpace shape;
    bool stop_at_first = false;
};

void note_failure(const Arguments& arguments, Tally& tally, const std::string& what) {
    ++tally.failures;
    std::printf("seed %lu: %s\n  replay: sim_random_spaces %lu %lu steps=%u%s tell\n", tally.seed,
                what.c_str(), tally.seed, tally.seed, arguments.shape.steps,
                arguments.shape.crash ? " crash" : "");
    std::fflush(stdout);
}

/// A program in which a node dies leaves half a MiB behind, which ends with its process.
constexpr std::uint64_t programs_per_process = 5000;

[[noreturn]] void run_seeds(const Arguments& arguments, Tally& tally) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    net::sim::FiberStacks stacks;
    std::uint64_t left = programs_per_process;
    for (; tally.seed <= arguments.last && left > 0; ++tally.seed, --left) {
        tally.running = true;
        alarm(60);  // a program that neither ends nor waits: no virtual time will stop it
        RandomSpace shape = arguments.shape;
        shape.seed = tally.seed;
        const RandomSpaceRun run = run_random_space(stacks, shape);
        tally.running = false;
        ++tally.programs;
        tally.accesses += run.accesses;
        tally.relocations += run.relocations;
        tally.misses += run.misses;
        tally.lost += run.lost;
        if (run.fault.empty()) continue;
        note_failure(arguments, tally, run.fault);
        if (arguments.stop_at_first) break;
    }
    std::fflush(nullptr);
    _exit(0);
}

void run_all(const Arguments& arguments, Tally& tally) {
    tally.seed = arguments.first;
    while (tally.seed <= arguments.last) {
        std::fflush(nullptr);
        const pid_t child = fork();
        if (child == 0) run_seeds(arguments, tally);
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child) std::abort();
        if (tally.running) {
            tally.running = false;
            ++tally.programs;
            note_failure(arguments, tally,
                         "the process ended with status " + std::to_string(status));
            ++tally.seed;
        }
        if (arguments.stop_at_first && tally.failures > 0) return;
    }
}

bool parse(int argc, char** argv, Arguments& arguments) {
    if (argc < 3) return false;
    arguments.first = std::strtoull(argv[1], nullptr, 10);
    arguments.last = std::strtoull(argv[2], nullptr, 10);
    for (int i = 3; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word.starts_with("steps=")) {
            arguments.shape.steps =
                static_cast<std::uint32_t>(std::strtoul(argv[i] + 6, nullptr, 10));
        } else if (word == "crash") {
            arguments.shape.crash = true;
        } else if (word == "tell") {
            arguments.shape.tell = true;
        } else if (word == "first") {
            arguments.stop_at_first = true;
        } else {
            return false;
        }
    }
    return arguments.first >= 1 && arguments.last >= arguments.first;
}

int run(int argc, char** argv) {
    Arguments arguments;
    if (!parse(argc, argv, arguments)) {
        std::fprintf(stderr,
                     "usage: sim_random_spaces FIRST LAST [steps=N] [crash] [tell] [first]; seeds "
                     "from 1\n");
        return 64;
    }
    void* const shared =
        mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 78;
    auto& tally = *new (shared) Tally;
    const std::uint64_t start_ns = now_ns();
    run_all(arguments, tally);
    const double seconds = static_cast<double>(now_ns() - start_ns) * 1e-9;
    std::printf(
        "%lu programs, %lu failed; %.1f s, %lu accesses, %lu relocations, %lu misses, %lu "
        "ended by a crash\n",
        tally.programs, tally.failures, seconds, tally.accesses, tally.relocations, tally.misses,
        tally.lost);
    if (arguments.stop_at_first && tally.failures > 0) {
        std::printf("first failure after %lu programs, %.2f s\n", tally.programs, seconds);
    }
    return tally.failures > 0 ? 1 : 0;
}

}  // namespace
}  // namespace hiroba::sim_test

int main(int argc, char** argv) { return hiroba::sim_test::run(argc, argv); }
