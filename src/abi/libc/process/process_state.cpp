// SPDX-License-Identifier: BSD-3-Clause
// Role: keeps, publishes and applies the state of the process, and interposes the calls that change
// working directory, umask and locale. Environment: variables.cpp; signals: signals.cpp.
// Invariant: the published bytes are one block of global memory that node 0 alone writes, between
// regions; the region's own synchronization carries them.
#include "abi/libc/process/process_state.hpp"

#include <limits.h>
#include <locale.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>

#include "abi/libc/calls/kernel_access.hpp"
#include "abi/libc/files/standard_streams.hpp"
#include "abi/libc/handles/kept_objects.hpp"
#include "abi/libc/memory/kept_texts.hpp"
#include "abi/libc/memory/malloc_callers.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/memory/protections.hpp"
#include "abi/libc/memory/shared_files.hpp"
#include "abi/libc/process/attributes.hpp"
#include "abi/libc/process/cxx_handlers.hpp"
#include "abi/libc/process/fortran_start.hpp"
#include "abi/libc/process/later_libraries.hpp"
#include "abi/libc/process/registrations.hpp"
#include "abi/libc/process/resource_limits.hpp"
#include "abi/libc/process/shared_rows.hpp"
#include "abi/libc/process/signals.hpp"
#include "abi/libc/process/time_zone.hpp"
#include "abi/libc/process/user_ids.hpp"
#include "abi/libc/process/variables.hpp"
#include "abi/libc/real.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"

HIROBA_REAL(chdir);
HIROBA_REAL(fchdir);
HIROBA_REAL(umask);
HIROBA_REAL(setlocale);
HIROBA_REAL(setitimer);

namespace hiroba::abi {
namespace {

using Action = struct sigaction;

/// What a process is made with, and may change.
struct Attributes {
    TimeZone zone;
    SharedRows* rows = nullptr;
    FortranStart fortran;
    ResourceLimits limits;
    std::array<timeval, 3> interval{};  ///< of setitimer(), by its first argument
    int perturb = 0;
    ProcessSettings settings;
};

/// As node 0 publishes it, and as each node last knew it.
struct State {
    bool has_directory = false, has_umask = false, has_locale = false;
    mode_t umask = 0;
    char** environment = nullptr;
    std::uint64_t environment_version = 0;
    char directory[PATH_MAX] = {};
    char locale[PATH_MAX] = {};
    bool has_ids = false;
    UserIds ids;
    std::array<bool, _NSIG> has_action{};
    std::array<Action, _NSIG> action{};
    const LibraryRecord* libraries = nullptr;
    const Registration* registrations = nullptr;
    StandardOwners* standard = nullptr;
    KeptObjects* kept = nullptr;
    CxxHandlers handlers = {};
    const ProtectionList* protections = nullptr;
    std::uint64_t file_views = 0;  ///< which of node 0's have to be looked at
    Attributes attributes;
    unsigned units = 0;  ///< bits: units of Fortran's that are not what they were at the start
    char affinity_format[256] = {};  ///< of OpenMP; empty: none was set
};

/// This thread makes its node be as node 0: what that calls is not the program's.
constinit thread_local bool is_becoming = false;
constinit State own;       ///< private to the node; under `changing`
constinit Latch changing;  ///< a program's threads may change two things at once
constinit std::uint64_t version = 0;
constinit std::atomic<bool> changed{false};
constinit std::atomic<bool> said{false};
constinit State* published = nullptr;  ///< in global memory; node 0 made it

/// Not by all their bytes: there is padding.
bool are_equal(const Action& a, const Action& b) noexcept {
    return a.sa_sigaction == b.sa_sigaction && a.sa_flags == b.sa_flags &&
           memcmp(&a.sa_mask, &b.sa_mask, sizeof a.sa_mask) == 0;
}

bool is_worker() noexcept { return world()->job.self.value != 0; }

/// Asks libc and the kernel for all they can tell, when the state is published: calls inside libc
/// change it too.
void look_at_process() noexcept {
    own.environment = environ;
    own.environment_version = variables_version();
    own.libraries = opened_libraries();
    own.registrations = registrations();
    own.standard = publish_standard_owners();
    own.kept = publish_kept_objects();
    own.protections = publish_protections();
    own.file_views = version_of_file_views();
    if (own.has_ids) own.ids = current_ids();
    const std::string& format = world()->omp->environment().affinity_format;
    if (format.size() >= sizeof own.affinity_format)
        say("the affinity format is longer than %lu bytes: the other nodes have its beginning",
            sizeof own.affinity_format - 1);
    own.affinity_format[format.copy(own.affinity_format, sizeof own.affinity_format - 1)] = 0;
    own.handlers = cxx_handlers();
    own.attributes.zone = time_zone();
    own.attributes.rows = &shared_rows();
    own.attributes.fortran = fortran_start();
    own.attributes.limits = resource_limits();
    own.attributes.perturb = perturb_byte();
    own.attributes.settings = process_settings();
    if (own.has_directory && getcwd(own.directory, sizeof own.directory) == nullptr) {
        say("the working directory has no name (%s): the other nodes keep theirs. Use a directory "
            "that exists",
            strerror(errno));
        own.has_directory = false;
    }
    if (!own.has_locale) return;
    const char* const name = real_setlocale(LC_ALL, nullptr);
    own.has_locale = name != nullptr && strlen(name) < sizeof own.locale;
    if (own.has_locale) {
        strcpy(own.locale, name);
    } else {
        say("the locale's name is longer than %lu bytes: the other nodes keep theirs",
            sizeof own.locale);
    }
}

State* room_for_published() noexcept {
    bool zeroed = false;
    auto* const room = static_cast<State*>(world()->heap->allocate(sizeof(State), 64, &zeroed));
    if (room == nullptr) {
        die(exit_environment, "no room for %lu bytes of the process's state: set HIROBA_HEAP",
            sizeof(State));
    }
    return room;
}

/// After the actions: it may send its signal at once.
void start_timer_as(const State& next, int timer) noexcept {
    const timeval& wanted = next.attributes.interval[static_cast<std::size_t>(timer)];
    if (memcmp(&wanted, &own.attributes.interval[static_cast<std::size_t>(timer)], sizeof wanted) ==
        0)
        return;
    const itimerval value{wanted, wanted};
    real_setitimer(static_cast<__itimer_which_t>(timer), &value, nullptr);
}

void become(const State& next) noexcept {
    adopt_standard_owners(next.standard);
    adopt_kept_objects(next.kept);
    set_cxx_handlers(next.handlers);
    adopt_file_views(next.file_views);
    adopt_protections(next.protections);
    use_shared_rows(*next.attributes.rows);
    adopt_variables(next.environment, next.environment_version);
    start_fortran_as(next.attributes.fortran);
    take_resource_limits(next.attributes.limits);
    set_perturb_byte(next.attributes.perturb);
    take_process_settings(next.attributes.settings);
    become_time_zone(next.attributes.zone);
    world()->omp->environment().affinity_format = next.affinity_format;
    if (next.has_umask) real_umask(next.umask);
    if (next.has_directory && strcmp(own.directory, next.directory) != 0 &&
        real_chdir(next.directory) != 0) {
        die(exit_environment,
            "chdir to %s, where node 0 is, failed: %s. Use a directory that every node has",
            next.directory, strerror(errno));
    }
    if (next.has_locale && real_setlocale(LC_ALL, next.locale) == nullptr) {
        die(exit_environment,
            "node 0 has set the locale %s, which this node lacks. Install it on every host",
            next.locale);
    }
    for (int number = 1; number < _NSIG; ++number) {
        const auto i = static_cast<std::size_t>(number);
        if (!next.has_action[i]) continue;
        if (own.has_action[i] && are_equal(own.action[i], next.action[i])) continue;
        set_program_signal(number, next.action[i]);
    }
    for (const int timer : {ITIMER_VIRTUAL, ITIMER_PROF}) start_timer_as(next, timer);
    open_as_on_node_0(next.libraries);
    repeat_registrations(next.registrations);
    // Last: what comes before may need the rights that are given up.
    if (next.has_ids && !are_equal(current_ids(), next.ids)) become_user(next.ids);
}

}  // namespace

omp::ProcessState publish_process_state() noexcept {
    const std::scoped_lock guard{changing};
    follow_variables();
    // Some of it changes without a call of ours: the program may store in `environ`.
    if (!changed.exchange(false) && version != 0 && own.environment == environ &&
        own.environment_version == variables_version() && own.handlers == cxx_handlers())
        return {version, published};
    if (published == nullptr) published = room_for_published();
    look_at_process();
    memcpy(static_cast<void*>(published), &own, sizeof own);
    return {++version, published};
}

void apply_process_state(const omp::ProcessState& state) noexcept {
    if (state.version == version) return;
    // A copy: system calls cannot fault global memory in.
    static constinit State next;
    memcpy(static_cast<void*>(&next), state.bytes, sizeof next);
    is_becoming = true;
    become(next);
    is_becoming = false;
    own = next;
    version = state.version;
}

void process_state_changed(const char* call) noexcept {
    if (is_becoming) return;
    if (!is_worker()) {
        changed.store(true);
    } else if (!said.exchange(true)) {
        say("%s in a parallel region on this node changes the process of this node alone. Call it "
            "outside parallel regions",
            call);
    }
}

void interval_timer_changed(int which, const timeval& interval) noexcept {
    if (which != ITIMER_VIRTUAL && which != ITIMER_PROF) return;
    {
        const std::scoped_lock guard{changing};
        own.attributes.interval[static_cast<std::size_t>(which)] = interval;
    }
    process_state_changed("setitimer() of processor time");
}

void time_zone_changed() noexcept {
    // The environment is everybody's; what libc of the others has read of it is not.
    if (!is_worker() || !is_zone_of_node_0()) process_state_changed("tzset()");
}

void standard_unit_changed(int unit, const char* statement) noexcept {
    {
        const std::scoped_lock guard{changing};
        own.units |= 1u << unit;
    }
    process_state_changed(statement);
}

bool is_unit_of_node_0(int unit) noexcept { return is_worker() && (own.units >> unit & 1) != 0; }

void user_ids_changed(const char* call) noexcept {
    {
        const std::scoped_lock guard{changing};
        own.has_ids = true;
    }
    process_state_changed(call);
}

void signal_action_changed(int number, const Action& action) noexcept {
    const auto i = static_cast<std::size_t>(number);
    {
        const std::scoped_lock guard{changing};
        own.has_action[i] = true;
        own.action[i] = action;
    }
    process_state_changed("sigaction()");
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int chdir(const char* path) noexcept {
    let_kernel_read_text(path);
    const int result = real_chdir(path);
    if (result == 0 && HIROBA_CALL_OF_PROGRAM()) {
        own.has_directory = true;
        process_state_changed("chdir()");
    }
    return result;
}

int fchdir(int fd) noexcept {
    const int result = real_fchdir(fd);
    if (result == 0 && HIROBA_CALL_OF_PROGRAM()) {
        own.has_directory = true;
        process_state_changed("fchdir()");
    }
    return result;
}

mode_t umask(mode_t mask) noexcept {
    const mode_t former = real_umask(mask);
    // libgfortran's is for one file alone.
    const bool is_of_program =
        HIROBA_CALL_OF_PROGRAM() && caller_of(__builtin_return_address(0)) == Caller::program;
    if (is_of_program && (former & 0777) != (mask & 0777)) {
        own.has_umask = true;
        own.umask = mask;
        process_state_changed("umask()");
    }
    return former;
}

char* setlocale(int category, const char* locale) noexcept {
    char* const result = real_setlocale(category, locale);
    if (locale != nullptr && result != nullptr && HIROBA_CALL_OF_PROGRAM()) {
        own.has_locale = true;
        process_state_changed("setlocale()");
    }
    return kept_for(result, __builtin_return_address(0));
}

}  // extern "C"
