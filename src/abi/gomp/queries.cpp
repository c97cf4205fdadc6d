// SPDX-License-Identifier: BSD-3-Clause
// Role: the omp_get_* and omp_set_* functions of C.
// Invariant: what is set belongs to the calling task; values out of range are clamped as the
// specification says, or else ignored.
#include "abi/gomp/queries.hpp"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>

#include "abi/gomp/runtime.hpp"
#include "base/clock.hpp"
#include "base/fatal.hpp"

#pragma GCC visibility push(default)

using hiroba::abi::runtime;
using hiroba::omp::Icvs;
using hiroba::omp::Schedule;

namespace {
constexpr unsigned monotonic_bit = 0x80000000u;

/// The value, with nothing beside it in the register: generated code may take these functions for
/// ones of 64 bits (numba's does), and libgomp's leave zeros there.
template <class Value>
int whole(Value value) {
    std::uint64_t word = static_cast<std::uint32_t>(value);
    asm("" : "+r"(word));
    return static_cast<int>(word);
}
}  // namespace

extern "C" {

int omp_get_thread_num() { return whole(runtime().place().thread); }
int omp_get_num_threads() { return whole(runtime().place().team_size); }
int omp_get_level() { return whole(runtime().place().level); }
int omp_get_active_level() { return whole(runtime().place().active_level); }
int omp_in_parallel() { return whole(runtime().place().active_level > 0); }
int omp_get_ancestor_thread_num(int level) { return whole(runtime().ancestor_thread(level)); }
int omp_get_team_size(int level) { return whole(runtime().team_size_at(level)); }

int omp_get_max_threads() { return whole(runtime().icvs().threads); }
void omp_set_num_threads(int threads) {
    runtime().icvs().threads = static_cast<unsigned>(std::max(threads, 1));
}
int omp_get_thread_limit() {
    return whole(std::min(runtime().thread_limit(), static_cast<unsigned>(INT_MAX)));
}
int omp_get_num_procs() { return whole(runtime().processors()); }

int omp_get_dynamic() { return whole(runtime().icvs().dynamic); }
void omp_set_dynamic(int on) { runtime().icvs().dynamic = on != 0; }
int omp_get_max_active_levels() { return whole(runtime().icvs().max_active_levels); }
int omp_get_supported_active_levels() { return whole(hiroba::omp::levels_supported); }
void omp_set_max_active_levels(int levels) {
    if (levels < 0) return;
    runtime().icvs().max_active_levels =
        std::min(static_cast<unsigned>(levels), hiroba::omp::levels_supported);
}
int omp_get_nested() {
    const unsigned levels = runtime().icvs().max_active_levels;
    return whole(levels > 1 && levels > runtime().place().active_level);
}
void omp_set_nested(int on) {
    unsigned& levels = runtime().icvs().max_active_levels;
    if (on != 0 && levels <= 1) levels = hiroba::omp::levels_supported;
    if (on == 0 && levels > 1) levels = 1;
}

void omp_set_schedule(int kind, int chunk) {
    const unsigned number = static_cast<unsigned>(kind) & ~monotonic_bit;
    if (number < 1 || number > 4) return;
    Icvs& icvs = runtime().icvs();
    icvs.schedule = static_cast<Schedule>(number);
    icvs.monotonic = (static_cast<unsigned>(kind) & monotonic_bit) != 0;
    const int chunk_default = icvs.schedule == Schedule::static_chunks ? 0 : 1;
    icvs.chunk = static_cast<unsigned>(chunk < 1 ? chunk_default : chunk);
}
void omp_get_schedule(int* kind, int* chunk) {
    const Icvs& icvs = runtime().icvs();
    *kind = static_cast<int>(static_cast<unsigned>(icvs.schedule) |
                             (icvs.monotonic ? monotonic_bit : 0));
    *chunk = static_cast<int>(icvs.chunk);
}

int omp_get_cancellation() { return whole(runtime().environment().cancellation); }
int omp_get_proc_bind() { return whole(runtime().icvs().bind); }
int omp_get_max_task_priority() { return whole(runtime().environment().task_priority_max); }
int omp_in_final() { return whole(runtime().in_final()); }

int omp_get_num_teams() { return whole(runtime().icvs().league_size); }
int omp_get_team_num() { return whole(runtime().icvs().team_number); }
int omp_get_max_teams() { return whole(runtime().icvs().teams); }
void omp_set_num_teams(int teams) {
    if (teams >= 0) runtime().icvs().teams = teams;
}
int omp_get_teams_thread_limit() { return whole(runtime().icvs().teams_thread_limit); }
void omp_set_teams_thread_limit(int limit) {
    if (limit >= 0) runtime().icvs().teams_thread_limit = limit;
}

// The only device is the host, number 0.
int omp_get_num_devices() { return 0; }
int omp_get_initial_device() { return 0; }
int omp_get_device_num() { return 0; }
int omp_is_initial_device() { return 1; }
int omp_get_default_device() { return whole(runtime().icvs().default_device); }
void omp_set_default_device(int device) { runtime().icvs().default_device = std::max(device, 0); }
// Threads live as long as the job, and their threadprivate variables with them. After a hard pause
// no program may count on these, so that they keep what they hold is as good.
int omp_pause_resource_all(int kind) {
    constexpr int soft = 1, hard = 2;
    return (kind == soft || kind == hard) && runtime().place().level == 0 ? 0 : -1;
}
int omp_pause_resource(int kind, int) { return omp_pause_resource_all(kind); }

double omp_get_wtime() { return static_cast<double>(hiroba::now_ns()) * 1e-9; }
double omp_get_wtick() { return 1e-9; }

void omp_display_env(int verbose) {
    auto& omp = runtime();
    const std::string text = hiroba::omp::display_text(omp.environment(), omp.icvs(), verbose != 0);
    if (write(STDERR_FILENO, text.data(), text.size()) < 0)
        hiroba::say("omp_display_env: stderr takes nothing");
}

}  // extern "C"
