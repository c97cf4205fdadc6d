// SPDX-License-Identifier: BSD-3-Clause
// Role: what OMP_DISPLAY_ENV and omp_display_env() print.
// Invariant: line for line what gcc's runtime prints, so that scripts that read it go on working.
#include <string>

#include "omp/icv/icv.hpp"

namespace hiroba::omp {

namespace {

std::string schedule_text(const Icvs& icvs) {
    std::string text =
        icvs.monotonic && icvs.schedule != Schedule::static_chunks ? "MONOTONIC:" : "";
    switch (icvs.schedule) {
        case Schedule::static_chunks:
            text += "STATIC";
            if (icvs.chunk != 0) text += "," + std::to_string(icvs.chunk);
            return text;
        case Schedule::guided: text += "GUIDED"; break;
        case Schedule::automatic: return text + "AUTO";
        default: text += "DYNAMIC";
    }
    if (icvs.chunk != 1) text += "," + std::to_string(icvs.chunk);
    return text;
}

std::string threads_text(const Environment& environment, const Icvs& icvs) {
    std::string text = std::to_string(icvs.threads);
    for (std::uint32_t level = 1; level < environment.levels; ++level)
        text += "," + std::to_string(environment.threads_by_level[level]);
    return text;
}

std::string bind_text(const Environment& environment, const Icvs& icvs) {
    constexpr const char* names[] = {"FALSE", "TRUE", "PRIMARY", "CLOSE", "SPREAD"};
    std::string text = names[static_cast<int>(icvs.bind)];
    for (std::size_t level = 1; level < environment.bind_by_level.size(); ++level)
        text += std::string(",") + names[static_cast<int>(environment.bind_by_level[level])];
    return text;
}

/// "{0},{1:3}", runs of processors as first and length.
std::string places_text(const Environment& environment) {
    std::string text;
    for (const Processors& place : environment.places) {
        text += text.empty() ? "{" : ",{";
        for (std::size_t at = 0; at < place.size();) {
            std::size_t end = at + 1;
            while (end < place.size() && place[end] == place[end - 1] + 1) ++end;
            text += (at != 0 ? "," : "") + std::to_string(place[at]);
            if (end - at > 1) text += ":" + std::to_string(end - at);
            at = end;
        }
        text += "}";
    }
    return text;
}

const char* truth(bool value) { return value ? "TRUE" : "FALSE"; }

}  // namespace

std::string display_text(const Environment& environment, const Icvs& icvs, bool verbose) {
    std::string text = "\nOPENMP DISPLAY ENVIRONMENT BEGIN\n  _OPENMP = '201511'\n";
    const auto line = [&text](const char* name, const std::string& value) {
        text += std::string("  ") + name + " = '" + value + "'\n";
    };
    line("OMP_DYNAMIC", truth(icvs.dynamic));
    line("OMP_NESTED", truth(icvs.max_active_levels > 1));
    line("OMP_NUM_THREADS", threads_text(environment, icvs));
    line("OMP_SCHEDULE", schedule_text(icvs));
    line("OMP_PROC_BIND", bind_text(environment, icvs));
    line("OMP_PLACES", places_text(environment));
    line("OMP_STACKSIZE", std::to_string(environment.stack_bytes));
    line("OMP_WAIT_POLICY", environment.wait_policy == WaitPolicy::active ? "ACTIVE" : "PASSIVE");
    line("OMP_THREAD_LIMIT", std::to_string(environment.thread_limit));
    line("OMP_MAX_ACTIVE_LEVELS", std::to_string(icvs.max_active_levels));
    line("OMP_NUM_TEAMS", std::to_string(icvs.teams));
    line("OMP_TEAMS_THREAD_LIMIT", std::to_string(icvs.teams_thread_limit));
    line("OMP_CANCELLATION", truth(environment.cancellation));
    line("OMP_DEFAULT_DEVICE", std::to_string(icvs.default_device));
    line("OMP_MAX_TASK_PRIORITY", std::to_string(environment.task_priority_max));
    line("OMP_DISPLAY_AFFINITY", truth(environment.display_affinity));
    line("OMP_AFFINITY_FORMAT", environment.affinity_format.empty()
                                    ? "level %L thread %i affinity %A"
                                    : environment.affinity_format);
    line("OMP_ALLOCATOR", allocator_names[environment.initial.default_allocator - 1]);
    line("OMP_TARGET_OFFLOAD", "DEFAULT");
    if (verbose) {
        line("GOMP_CPU_AFFINITY", environment.affinity_text);
        line("GOMP_STACKSIZE", std::to_string(environment.stack_bytes));
    }
    return text + "OPENMP DISPLAY ENVIRONMENT END\n";
}

}  // namespace hiroba::omp
