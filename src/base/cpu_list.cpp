// SPDX-License-Identifier: BSD-3-Clause
#include "base/cpu_list.hpp"

#include <charconv>

namespace hiroba {

std::string cpu_list(const cpu_set_t& set) {
    std::string text;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &set)) continue;
        unsigned last = cpu;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set)) ++last;
        if (!text.empty()) text += ',';
        text += std::to_string(cpu);
        if (last > cpu) text += '-' + std::to_string(last);
        cpu = last;
    }
    return text;
}

std::optional<cpu_set_t> parse_cpu_list(std::string_view text) {
    cpu_set_t set;
    CPU_ZERO(&set);
    const char* at = text.data();
    const char* const end = at + text.size();
    const auto number = [&](unsigned& value) {
        const auto parsed = std::from_chars(at, end, value);
        at = parsed.ptr;
        return parsed.ec == std::errc() && value < CPU_SETSIZE;
    };
    while (at < end) {
        unsigned first = 0, last = 0;
        if (!number(first)) return std::nullopt;
        last = first;
        if (at < end && *at == '-' && (++at, !number(last))) return std::nullopt;
        if (last < first) return std::nullopt;
        for (unsigned cpu = first; cpu <= last; ++cpu) CPU_SET(cpu, &set);
        if (at == end) break;
        if (*at++ != ',' || at == end) return std::nullopt;
    }
    return set;
}

cpu_set_t own_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    return set;
}

}  // namespace hiroba
