// SPDX-License-Identifier: BSD-3-Clause
// Role: reads the OMP_* variables.
// Invariant: a value is taken as a whole or not at all; what is refused leaves the default.
#include "omp/icv/icv.hpp"

#include <strings.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/fatal.hpp"

namespace hiroba::omp {

namespace {

std::string_view trim(std::string_view text) {
    while (!text.empty() && std::strchr(" \t\n\r\v\f", text.front())) text.remove_prefix(1);
    while (!text.empty() && std::strchr(" \t\n\r\v\f", text.back())) text.remove_suffix(1);
    return text;
}

bool same_word(std::string_view text, std::string_view word) {
    return text.size() == word.size() && strncasecmp(text.data(), word.data(), word.size()) == 0;
}

std::optional<std::uint64_t> number(std::string_view text) {
    text = trim(text);
    if (text.empty()) return {};
    std::uint64_t value = 0;
    for (const char c : text) {
        if (c < '0' || c > '9' || value > (UINT64_MAX - 9) / 10) return {};
        value = value * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return value;
}

std::optional<std::uint64_t> number_in(std::string_view text, std::uint64_t low,
                                       std::uint64_t high) {
    const auto value = number(text);
    return value && *value >= low && *value <= high ? value : std::nullopt;
}

std::optional<bool> truth(std::string_view text) {
    text = trim(text);
    if (same_word(text, "true") || text == "1") return true;
    if (same_word(text, "false") || text == "0") return false;
    return {};
}

bool set_threads(std::string_view text, Environment& to) {
    std::array<std::uint32_t, 32> list{};
    std::uint32_t levels = 0;
    for (;;) {
        const std::size_t comma = text.find(',');
        const auto threads = number_in(text.substr(0, comma), 1, INT_MAX);
        if (!threads || levels == list.size()) return false;
        list[levels++] = static_cast<std::uint32_t>(*threads);
        if (comma == std::string_view::npos) break;
        text.remove_prefix(comma + 1);
    }
    to.threads_by_level = list;
    to.levels = levels;
    to.initial.threads = list[0];
    // A list asks for regions inside regions, unless something else says how many.
    if (levels > 1 && !to.levels_are_set) to.initial.max_active_levels = levels_supported;
    return true;
}

bool set_schedule(std::string_view text, Environment& to) {
    struct Name {
        const char* word;
        Schedule schedule;
    };
    constexpr Name names[] = {{"static", Schedule::static_chunks},
                              {"dynamic", Schedule::dynamic},
                              {"guided", Schedule::guided},
                              {"auto", Schedule::automatic}};
    Icvs icvs = to.initial;
    const std::size_t colon = text.find(':');
    bool nonmonotonic = false;
    if (colon != std::string_view::npos) {
        const std::string_view modifier = trim(text.substr(0, colon));
        icvs.monotonic = same_word(modifier, "monotonic");
        nonmonotonic = same_word(modifier, "nonmonotonic");
        if (!icvs.monotonic && !nonmonotonic) return false;
        text.remove_prefix(colon + 1);
    }
    const std::size_t comma = text.find(',');
    const std::string_view kind = trim(text.substr(0, comma));
    const Name* found = nullptr;
    for (const Name& name : names)
        if (same_word(kind, name.word)) found = &name;
    if (found == nullptr) return false;
    icvs.schedule = found->schedule;
    icvs.chunk = icvs.schedule == Schedule::static_chunks ? 0 : 1;
    if (comma != std::string_view::npos) {
        const auto chunk = number_in(text.substr(comma + 1), 0, INT_MAX);
        if (!chunk) return false;
        if (*chunk != 0) icvs.chunk = *chunk;
    }
    to.initial = icvs;
    return true;
}

/// @param shift  of the unit that a value without one is in: KiB, but for LLVM's own variable
std::optional<std::uint64_t> stack_size_in(std::string_view text, int shift = 10) {
    text = trim(text);
    if (text.empty()) return {};
    const char unit = text.back();
    if (unit < '0' || unit > '9') {
        const char* const units = "bkmg";
        const char* const at = std::strchr(units, unit | 0x20);
        if (at == nullptr || *at == 0) return {};
        shift = static_cast<int>(at - units) * 10;
        text.remove_suffix(1);
    }
    const auto value = number_in(text, 0, UINT64_MAX >> shift);
    if (!value) return {};
    return *value << shift;
}

bool set_stack(std::string_view text, Environment& to) {
    const auto bytes = stack_size_in(text);
    if (bytes) to.stack_bytes = *bytes;
    return bytes.has_value();
}

/// gcc's own name, for which the standard's comes first.
bool set_gnu_stack(std::string_view text, Environment& to) {
    const char* const standard = std::getenv("OMP_STACKSIZE");
    if (standard != nullptr && stack_size_in(standard)) return true;
    return set_stack(text, to);
}

/// LLVM's, in bytes, for which both come first.
bool set_llvm_stack(std::string_view text, Environment& to) {
    const auto bytes = stack_size_in(text, 0);
    if (bytes && to.stack_bytes == 0) to.stack_bytes = *bytes;
    return bytes.has_value();
}

bool set_truth(std::string_view text, bool* to) {
    const auto value = truth(text);
    if (value) *to = *value;
    return value.has_value();
}

template <class Number>
bool set_number(std::string_view text, std::uint64_t low, std::uint64_t high, Number* to) {
    const auto value = number_in(text, low, high);
    if (value) *to = static_cast<Number>(*value);
    return value.has_value();
}

bool set_wait_policy(std::string_view text, Environment& to) {
    text = trim(text);
    if (!same_word(text, "active") && !same_word(text, "passive")) return false;
    to.wait_policy = same_word(text, "active") ? WaitPolicy::active : WaitPolicy::passive;
    return true;
}

bool set_display(std::string_view text, Environment& to) {
    bool on = false;
    if (same_word(trim(text), "verbose")) {
        to.display = Environment::Display::verbose;
        return true;
    }
    if (!set_truth(text, &on)) return false;
    to.display = on ? Environment::Display::on : Environment::Display::off;
    return true;
}

bool set_allocator(std::string_view text, Environment& to) {
    text = trim(text);
    for (std::size_t i = 0; i < std::size(allocator_names); ++i) {
        if (!same_word(text, allocator_names[i])) continue;
        to.initial.default_allocator = i + 1;
        return true;
    }
    return false;
}

bool set_nested(std::string_view text, Environment& to) {
    bool nested = false;
    if (!set_truth(text, &nested)) return false;
    to.initial.max_active_levels = nested ? levels_supported : 1;
    to.levels_are_set = true;
    return true;
}

bool set_active_levels(std::string_view text, Environment& to) {
    std::uint32_t levels = 0;
    if (!set_number(text, 0, INT_MAX, &levels)) return false;
    to.initial.max_active_levels = levels < levels_supported ? levels : levels_supported;
    to.levels_are_set = true;
    return true;
}

// Called before the variables that name places are read: those mean nothing where threads are not
// to be bound.
bool set_proc_bind(std::string_view text, Environment& to) {
    if (!read_proc_bind(text, to.bind_by_level)) return false;
    to.initial.bind = to.bind_by_level[0];
    if (to.bind_by_level.size() > 1 && !to.levels_are_set)
        to.initial.max_active_levels = levels_supported;
    return true;
}

bool bind_at_all(const Environment& environment) {
    return environment.bind_by_level.empty() || environment.bind_by_level[0] != ProcBind::none;
}

bool set_places(std::string_view text, Environment& to) {
    std::vector<Processors> places;
    if (!read_places(trim(text), own_processors(), places)) return false;
    if (!bind_at_all(to)) return true;
    to.places = places;
    to.places_text = trim(text);
    return true;
}

bool set_cpu_affinity(std::string_view text, Environment& to) {
    std::vector<Processors> places;
    if (!read_cpu_affinity(text, own_processors(), places)) return false;
    to.affinity_text = trim(text);
    if (bind_at_all(to) && to.places.empty()) to.places = places;
    return true;
}

/// Sets what OMP_PLACES and OMP_PROC_BIND imply for each other.
void complete_binding(Environment& to) {
    if (!to.places.empty() && to.initial.bind == ProcBind::none) to.initial.bind = ProcBind::any;
    if (to.places.empty() && to.initial.bind != ProcBind::none)
        to.places = group_processors(PlaceKind::threads, own_processors());
}

struct Variable {
    const char* name;
    bool (*set)(std::string_view, Environment&);
};

constexpr Variable variables[] = {
    {"OMP_NESTED", set_nested},
    {"OMP_MAX_ACTIVE_LEVELS", set_active_levels},
    {"OMP_NUM_THREADS", set_threads},
    {"OMP_PROC_BIND", set_proc_bind},
    {"OMP_PLACES", set_places},
    {"GOMP_CPU_AFFINITY", set_cpu_affinity},
    {"OMP_SCHEDULE", set_schedule},
    {"OMP_DYNAMIC",
     [](std::string_view t, Environment& e) { return set_truth(t, &e.initial.dynamic); }},
    {"OMP_THREAD_LIMIT",
     [](std::string_view t, Environment& e) { return set_number(t, 1, INT_MAX, &e.thread_limit); }},
    {"OMP_STACKSIZE", set_stack},
    {"GOMP_STACKSIZE", set_gnu_stack},
    {"KMP_STACKSIZE", set_llvm_stack},
    {"OMP_WAIT_POLICY", set_wait_policy},
    {"OMP_CANCELLATION",
     [](std::string_view t, Environment& e) { return set_truth(t, &e.cancellation); }},
    {"OMP_MAX_TASK_PRIORITY",
     [](std::string_view t, Environment& e) {
         return set_number(t, 0, INT_MAX, &e.task_priority_max);
     }},
    {"OMP_DEFAULT_DEVICE",
     [](std::string_view t, Environment& e) {
         return set_number(t, 0, INT_MAX, &e.initial.default_device);
     }},
    {"OMP_NUM_TEAMS", [](std::string_view t,
                         Environment& e) { return set_number(t, 1, INT_MAX, &e.initial.teams); }},
    {"OMP_TEAMS_THREAD_LIMIT",
     [](std::string_view t, Environment& e) {
         return set_number(t, 1, INT_MAX, &e.initial.teams_thread_limit);
     }},
    {"OMP_DISPLAY_AFFINITY",
     [](std::string_view t, Environment& e) { return set_truth(t, &e.display_affinity); }},
    {"OMP_DISPLAY_ENV", set_display},
    {"OMP_ALLOCATOR", set_allocator},
};

}  // namespace

std::uint64_t stack_bytes_from_environment() noexcept {
    for (const char* const name : {"OMP_STACKSIZE", "GOMP_STACKSIZE"}) {
        const char* const text = std::getenv(name);
        if (text == nullptr) continue;
        if (const auto bytes = stack_size_in(text)) return *bytes;
    }
    const char* const text = std::getenv("KMP_STACKSIZE");
    if (text != nullptr)
        if (const auto bytes = stack_size_in(text, 0)) return *bytes;
    return 0;
}

Environment read_environment(bool complain) {
    Environment environment;
    for (const Variable& variable : variables) {
        const char* const value = std::getenv(variable.name);
        if (value == nullptr || variable.set(value, environment) || !complain) continue;
        say("%s=%s is no value this variable takes; its default is used", variable.name, value);
    }
    if (const char* const format = std::getenv("OMP_AFFINITY_FORMAT"))
        environment.affinity_format = format;
    complete_binding(environment);
    return environment;
}

}  // namespace hiroba::omp
