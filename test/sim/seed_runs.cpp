// SPDX-License-Identifier: BSD-3-Clause
#include "sim/seed_runs.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "base/address_hint.hpp"
#include "base/clock.hpp"

namespace hiroba::sim_test {

namespace {

/// What the children tell the parent.
struct Progress {
    std::uint64_t seed = 0;  ///< the next one, or the one being run
    bool running = false;
    SeedRuns runs;
};

using Program = std::function<std::string(net::sim::FiberStacks&, std::uint64_t)>;
using Replay = std::function<std::string(std::uint64_t)>;

void note_failure(Progress& progress, const std::string& what, const Replay& replay) {
    ++progress.runs.failures;
    std::printf("seed %" PRIu64 ": %s\n  replay: %s\n", progress.seed, what.c_str(),
                replay(progress.seed).c_str());
    std::fflush(stdout);
}

/// Ends this process if a program neither ends nor waits: no virtual time will stop that one.
/// 60 s of computing, or 600 s on a machine that is paused or has other work.
void limit_time() {
    const itimerval computing = {.it_interval = {}, .it_value = {.tv_sec = 60, .tv_usec = 0}};
    if (setitimer(ITIMER_PROF, &computing, nullptr) != 0) std::abort();
    alarm(600);
}

[[noreturn]] void run_in_child(const SeedRange& range, const Program& program, const Replay& replay,
                               Progress& progress) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    net::sim::FiberStacks stacks;
    std::uint64_t left = range.programs_per_process;
    for (; progress.seed <= range.last && left > 0; ++progress.seed, --left) {
        progress.running = true;
        limit_time();
        reset_address_hints();
        const std::string fault = program(stacks, progress.seed);
        progress.running = false;
        ++progress.runs.programs;
        if (fault.empty()) continue;
        note_failure(progress, fault, replay);
        if (range.stop_at_first) break;
    }
    std::fflush(nullptr);
    _exit(0);
}

/// Goes on where `progress` stands.
void run_in_children(const SeedRange& range, const Program& program, const Replay& replay,
                     Progress& progress) {
    while (progress.seed <= range.last) {
        std::fflush(nullptr);
        const pid_t child = fork();
        if (child == 0) run_in_child(range, program, replay, progress);
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child) std::abort();
        if (progress.running) {
            progress.running = false;
            ++progress.runs.programs;
            note_failure(progress, "the process ended with status " + std::to_string(status),
                         replay);
            ++progress.seed;
        }
        if (range.stop_at_first && progress.runs.failures > 0) break;
    }
}

}  // namespace

bool parse_seeds(int argc, char** argv, SeedRange& range, std::vector<SeedWord> further) {
    further.push_back(flag_word("first", range.stop_at_first));
    further.push_back(number_word("try=SEED", range.tried_first, 1));
    bool fits = argc >= 3;
    if (fits) {
        range.first = std::strtoull(argv[1], nullptr, 10);
        range.last = std::strtoull(argv[2], nullptr, 10);
        fits = range.first >= 1 && range.last >= range.first;
    }
    for (int i = 3; fits && i < argc; ++i) {
        const std::string_view given = argv[i];
        const std::size_t sign = std::min(given.find('='), given.size());
        const auto meant = std::find_if(further.begin(), further.end(), [&](const SeedWord& word) {
            const std::string_view usage = word.usage;
            return usage.substr(0, usage.find('=')) == given.substr(0, sign) &&
                   (usage.find('=') == std::string_view::npos) == (sign == given.size());
        });
        fits =
            meant != further.end() && meant->take(given.substr(std::min(sign + 1, given.size())));
    }
    if (fits) return true;
    std::fprintf(stderr, "usage: %s FIRST LAST", basename(argv[0]));
    for (const SeedWord& word : further) std::fprintf(stderr, " [%s]", word.usage);
    std::fprintf(stderr, "; seeds from 1\n");
    return false;
}

std::string replay_command(const char* program, std::uint64_t seed) {
    const std::string number = std::to_string(seed);
    return std::string(program) + " " + number + " " + number;
}

SeedRuns run_seeds(const SeedRange& range, const Program& program, const Replay& replay) {
    auto& progress = shared_with_children<Progress>();
    const std::uint64_t start_ns = now_ns();
    if (range.tried_first != 0) {
        SeedRange one = range;
        one.first = one.last = progress.seed = range.tried_first;
        run_in_children(one, program, replay, progress);
    }
    if (!range.stop_at_first || progress.runs.failures == 0) {
        progress.seed = range.first;
        run_in_children(range, program, replay, progress);
    }
    progress.runs.seconds = static_cast<double>(now_ns() - start_ns) * 1e-9;
    return progress.runs;
}

void tell_first_failure(const SeedRange& range, const SeedRuns& runs) {
    if (!range.stop_at_first || runs.failures == 0) return;
    std::printf("first failure after %" PRIu64 " programs, %.2f s\n", runs.programs, runs.seconds);
}

}  // namespace hiroba::sim_test
