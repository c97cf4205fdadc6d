// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/stop.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace hiroba::tasks {
namespace {

unsigned rank_of_lines = 0;

void say_list(const char* format, va_list values) noexcept {
    char line[1024];
    int used = std::snprintf(line, sizeof line, "hiroba[%u]: tasks: ", rank_of_lines);
    const int more = std::vsnprintf(line + used, sizeof line - used - 1, format, values);
    used = std::min<int>(used + std::max(more, 0), sizeof line - 2);
    line[used++] = '\n';
    [[maybe_unused]] const auto written = ::write(2, line, static_cast<std::size_t>(used));
}

}  // namespace

void set_rank(unsigned rank) noexcept { rank_of_lines = rank; }

void say(const char* format, ...) noexcept {
    va_list values;
    va_start(values, format);
    say_list(format, values);
    va_end(values);
}

void stop(const char* format, ...) noexcept {
    va_list values;
    va_start(values, format);
    say_list(format, values);
    va_end(values);
    std::abort();
}

}  // namespace hiroba::tasks
