// SPDX-License-Identifier: BSD-3-Clause
// Role: runs the random programs of a range of seeds and counts the rows of the block protocol they
// take. Usage: sim_random_programs FIRST LAST [nodes=N] [steps=N] [rows=N] [tell] [first]
//   rows=N  fails unless every row was taken N times
//   tell    prints every step   first  stops at the first failure, and says how soon it came
// Programs run in child processes, so that one that ends its process is a failure like any other.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "base/address_hint.hpp"
#include "base/clock.hpp"
#include "sim/dsm/random_program.hpp"

namespace hiroba::sim_test {
namespace {

struct Arguments {
    std::uint64_t first = 1, last = 1, rows_min = 0;
    ProgramShape shape;
    bool stop_at_first = false;
};

/// What the children tell the parent.
struct Tally {
    std::uint64_t seed = 0;  ///< being run
    bool running = false;
    std::uint64_t programs = 0, failures = 0, first_failure = 0, events = 0, virtual_ns = 0;
    dsm::Node::RowCounts rows{};
};

void note_failure(const Arguments& arguments, Tally& tally, const std::string& what) {
    ++tally.failures;
    if (tally.first_failure == 0) tally.first_failure = tally.seed;
    std::printf("seed %" PRIu64 ": %s\n  replay: sim_random_programs %" PRIu64 " %" PRIu64
                " nodes=%u steps=%u tell\n",
                tally.seed, what.c_str(), tally.seed, tally.seed, arguments.shape.nodes,
                arguments.shape.steps);
    std::fflush(stdout);
}

[[noreturn]] void run_seeds(const Arguments& arguments, Tally& tally) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    net::sim::FiberStacks stacks;
    for (; tally.seed <= arguments.last; ++tally.seed) {
        tally.running = true;
        // A program that neither ends nor waits: no virtual time will stop it.
        alarm(60);
        reset_address_hints();
        const ProgramOutcome outcome = run_random_program(stacks, tally.seed, arguments.shape);
        tally.running = false;
        ++tally.programs;
        tally.events += outcome.events;
        tally.virtual_ns += outcome.virtual_ns;
        for (unsigned state = 0; state < dsm::block_states; ++state) {
            for (unsigned event = 0; event < dsm::block_events; ++event) {
                tally.rows[state][event] += outcome.rows[state][event];
            }
        }
        if (outcome.failure.empty()) continue;
        note_failure(arguments, tally, outcome.failure);
        if (arguments.stop_at_first) _exit(0);
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

/// Prints the rows; returns how often the rarest was taken.
std::uint64_t print_rows(const Tally& tally) {
    std::uint64_t least = ~std::uint64_t{0};
    for (unsigned state = 0; state < dsm::block_states; ++state) {
        for (unsigned event = 0; event < dsm::block_events; ++event) {
            const auto from = static_cast<dsm::BlockState>(state);
            if (!dsm::find_step(from, static_cast<dsm::BlockEvent>(event))) continue;
            std::printf("  %-15s %-14s %12" PRIu64 "\n", dsm::name_of(from),
                        dsm::name_of(static_cast<dsm::BlockEvent>(event)),
                        tally.rows[state][event]);
            least = std::min(least, tally.rows[state][event]);
        }
    }
    return least;
}

bool parse(int argc, char** argv, Arguments& arguments) {
    if (argc < 3) return false;
    arguments.first = std::strtoull(argv[1], nullptr, 10);
    arguments.last = std::strtoull(argv[2], nullptr, 10);
    for (int i = 3; i < argc; ++i) {
        const std::string_view word = argv[i];
        const auto number = [&] {
            return std::strtoull(argv[i] + word.find('=') + 1, nullptr, 10);
        };
        if (word.starts_with("nodes=")) {
            arguments.shape.nodes = static_cast<std::uint32_t>(number());
        } else if (word.starts_with("steps=")) {
            arguments.shape.steps = static_cast<std::uint32_t>(number());
        } else if (word.starts_with("rows=")) {
            arguments.rows_min = number();
        } else if (word == "tell") {
            arguments.shape.tell = true;
        } else if (word == "first") {
            arguments.stop_at_first = true;
        } else {
            return false;
        }
    }
    return arguments.first >= 1 && arguments.last >= arguments.first && arguments.shape.nodes >= 1;
}

int run(int argc, char** argv) {
    Arguments arguments;
    if (!parse(argc, argv, arguments)) {
        std::fprintf(stderr,
                     "usage: sim_random_programs FIRST LAST [nodes=N] [steps=N] [rows=N] [tell] "
                     "[first]; seeds from 1\n");
        return 64;
    }
    void* const shared =
        mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 78;
    auto& tally = *new (shared) Tally;
    const std::uint64_t start_ns = now_ns();
    run_all(arguments, tally);
    const double seconds = static_cast<double>(now_ns() - start_ns) * 1e-9;
    const std::uint64_t least = print_rows(tally);
    std::printf("%" PRIu64 " programs, %" PRIu64 " failed; %.1f s, %.0f programs/s, %" PRIu64
                " events, %.3f s of virtual time; rarest row %" PRIu64 "\n",
                tally.programs, tally.failures, seconds,
                static_cast<double>(tally.programs) / seconds, tally.events,
                static_cast<double>(tally.virtual_ns) * 1e-9, least);
    if (arguments.stop_at_first && tally.failures > 0) {
        std::printf("first failure after %" PRIu64 " programs, %.2f s\n", tally.programs, seconds);
    }
    return tally.failures > 0 || least < arguments.rows_min ? 1 : 0;
}

}  // namespace
}  // namespace hiroba::sim_test

int main(int argc, char** argv) { return hiroba::sim_test::run(argc, argv); }
