// SPDX-License-Identifier: BSD-3-Clause
// Role: runs the simulated program of each seed of a range, in child processes: one that ends its
// process is a failure like any other, and the next seed goes on in a new child.
#pragma once

#include <sys/mman.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "net/provider/sim/fiber.hpp"

namespace hiroba::sim_test {

struct SeedRange {
    std::uint64_t first = 1, last = 1;
    bool stop_at_first = false;     ///< failure; and say how soon it came
    std::uint64_t tried_first = 0;  ///< a seed run before the others; 0: none
    /// After so many a new child takes over: what programs leave behind ends with their process.
    std::uint64_t programs_per_process = ~std::uint64_t{0};
};

struct SeedRuns {
    std::uint64_t programs = 0, failures = 0;
    double seconds = 0;
};

/// Memory that children and parent share, with a `T` in it; for the whole life of the process.
template <class T>
T& shared_with_children() {
    void* const at =
        ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) std::abort();
    return *new (at) T;
}

/// One further word of such a command line.
struct SeedWord {
    const char* usage;  ///< "steps=N" or "tell"; what stands before the "=" is the word
    /// Takes what stands behind the "=", nothing where the word has none; false: not understood.
    std::function<bool(std::string_view value)> take;
};

/// A word "steps=N" that sets `number`, to `least` or more.
template <class Number>
SeedWord number_word(const char* usage, Number& number, std::uint64_t least = 0) {
    return {usage, [&number, least](std::string_view value) {
                std::uint64_t given = 0;
                const auto [end, error] =
                    std::from_chars(value.data(), value.data() + value.size(), given);
                number = static_cast<Number>(given);
                return error == std::errc{} && end == value.data() + value.size() && given >= least;
            }};
}

/// A word "tell" that sets `flag`.
inline SeedWord flag_word(const char* usage, bool& flag) {
    return {usage, [&flag](std::string_view value) {
                flag = true;
                return value.empty();
            }};
}

/// Reads "FIRST LAST [first] [try=SEED] [further words]"; where that is not what was given it
/// prints what is, and returns false.
bool parse_seeds(int argc, char** argv, SeedRange& range, std::vector<SeedWord> further);

/// The begin of the command that has the program of this seed again: "PROGRAM SEED SEED".
std::string replay_command(const char* program, std::uint64_t seed);

/// Runs `program(stacks, seed)`, which returns what went wrong (empty: nothing), for each seed.
/// Prints each failure, with `replay(seed)`: the command that has it again.
SeedRuns run_seeds(
    const SeedRange& range,
    const std::function<std::string(net::sim::FiberStacks& stacks, std::uint64_t seed)>& program,
    const std::function<std::string(std::uint64_t seed)>& replay);

/// Where the range was to stop at the first failure and there was one, says how soon.
void tell_first_failure(const SeedRange& range, const SeedRuns& runs);

}  // namespace hiroba::sim_test
