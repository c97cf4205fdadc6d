// SPDX-License-Identifier: BSD-3-Clause
// Role: code that runs as an initial thread of its own: target regions and the teams of a league.
// Invariant: a league's teams run one after the other on the thread that met it; which one it is
// belongs to the task, so that the threads of its regions know it.
#include "base/program_call.hpp"
#include "omp/runtime_core.hpp"

namespace hiroba::omp {

namespace {
/// As many teams as gcc's runtime makes when neither program nor user says how many.
constexpr std::uint32_t teams_by_default = 3;
}  // namespace

void RuntimeCore::run_apart(OutlinedFunction function, void* data,
                            std::uint32_t thread_limit) noexcept {
    ThreadState& thread = self();
    Frame frame;
    frame.parent = thread.frame;
    frame.binding = thread.frame->binding;
    frame.icvs = environment_.initial;  // An initial task's, not the task's around it.
    if (thread_limit != 0) frame.icvs.thread_limit = thread_limit;
    thread.frame = &frame;
    call_program(function, data);
    barrier();
    release_implicit(frame);
    thread.frame = frame.parent;
}

void RuntimeCore::league(OutlinedFunction function, void* data, std::uint32_t teams,
                         std::uint32_t thread_limit) noexcept {
    Icvs& own = icvs();
    const Icvs before = own;
    if (teams == 0)
        teams = own.teams != 0 ? static_cast<std::uint32_t>(own.teams) : teams_by_default;
    if (thread_limit == 0) thread_limit = static_cast<std::uint32_t>(own.teams_thread_limit);
    if (thread_limit != 0) own.thread_limit = thread_limit;
    own.league_size = teams;
    for (own.team_number = 0; own.team_number < teams; ++own.team_number)
        call_program(function, data);
    own.league_size = before.league_size;
    own.team_number = before.team_number;
    own.thread_limit = before.thread_limit;
}

bool RuntimeCore::next_team(std::uint32_t teams, std::uint32_t thread_limit, bool first) noexcept {
    Icvs& own = icvs();
    if (!first) {
        if (own.team_number + 1 >= own.league_size) return false;
        ++own.team_number;
        return true;
    }
    if (thread_limit != 0) own.thread_limit = thread_limit;
    own.league_size = teams == 0 ? 1 : teams;
    own.team_number = 0;
    return true;
}

}  // namespace hiroba::omp
