// SPDX-License-Identifier: BSD-3-Clause
// Role: functions of libc whose result is memory of libc's own, good until the next such call. That
// memory is private to the node: a pointer to it would show another node its own libc's bytes.
// Invariant: the program gets a copy in global memory, of which each node has one, as a process
// has. Names of time zones are the job's, and stay.
#include "abi/libc/memory/static_results.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>

#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/process/shared_rows.hpp"
#include "abi/libc/process/time_zone.hpp"
#include "abi/libc/real.hpp"
#include "base/latch.hpp"

#pragma GCC visibility push(default)

using namespace hiroba;

HIROBA_REAL(localtime);
HIROBA_REAL(localtime_r);
HIROBA_REAL(gmtime);
HIROBA_REAL(asctime);
HIROBA_REAL(ctime);
HIROBA_REAL(ecvt);
HIROBA_REAL(fcvt);
HIROBA_REAL(l64a);
HIROBA_REAL(tmpnam);
HIROBA_REAL(ptsname);
HIROBA_REAL(ttyname);

#define HIROBA_CALLER __builtin_return_address(0)

namespace {

using BrokenDownTime = struct tm;

/// One function's text. ecvt() and fcvt() print up to some 330 digits.
struct Text {
    static constexpr std::size_t bytes_max = 512;
    char bytes[bytes_max];
};

struct Results {
    BrokenDownTime time;  // of localtime() and gmtime(), which share it in libc too
    Text date;            // of asctime() and ctime(), likewise
    Text digits, base_64, path, terminal;
};

constinit std::atomic<Results*> results{nullptr};
constinit Latch latch;

/// This node's, in global memory. nullptr (ENOMEM) when there is no room.
Results* own_results() noexcept {
    Results* made = results.load(std::memory_order_acquire);  // pairs with the store below
    if (made != nullptr) return made;
    const std::scoped_lock guard{latch};
    made = results.load(std::memory_order_relaxed);
    if (made == nullptr) {
        made = static_cast<Results*>(
            abi::allocate_for_program(sizeof(Results), alignof(Results), true));
        results.store(made, std::memory_order_release);
    }
    return made;
}

bool serves_program(const void* return_address) noexcept {
    return abi::is_spread() && abi::is_for_program(return_address);
}

BrokenDownTime* keep_time(const BrokenDownTime* made, const void* return_address) noexcept {
    Results* const own =
        made != nullptr && serves_program(return_address) ? own_results() : nullptr;
    if (own == nullptr) return const_cast<BrokenDownTime*>(made);
    own->time = *made;
    own->time.tm_zone = abi::keep_zone(made->tm_zone);
    return &own->time;
}

char* keep_text(char* made, Text Results::*where, const void* return_address) noexcept {
    Results* const own =
        made != nullptr && serves_program(return_address) ? own_results() : nullptr;
    if (own == nullptr) return made;
    Text& text = own->*where;
    const std::size_t bytes = std::min(strlen(made), Text::bytes_max - 1);
    memcpy(text.bytes, made, bytes);
    text.bytes[bytes] = '\0';
    return text.bytes;
}

}  // namespace

namespace hiroba::abi {

const char* keep_zone(const char* name) noexcept {
    if (name == nullptr || strlen(name) >= SharedRows::zone_bytes || !spans_nodes()) return name;
    SharedRows& rows = shared_rows();
    // Names stay: what is found needs no lock.
    for (const char(&zone)[SharedRows::zone_bytes] : rows.zones)
        if (strcmp(zone, name) == 0) return zone;
    const RowsAlone alone;
    for (char(&zone)[SharedRows::zone_bytes] : rows.zones) {
        if (zone[0] == '\0') memcpy(zone, name, strlen(name) + 1);
        if (strcmp(zone, name) == 0) return zone;
    }
    return name;
}

}  // namespace hiroba::abi

extern "C" {

struct tm* localtime(const time_t* time) noexcept {
    const abi::ZoneUse use{abi::ZoneUse::Reads::always};
    return keep_time(real_localtime(time), HIROBA_CALLER);
}
struct tm* localtime_r(const time_t* time, struct tm* result) noexcept {
    const abi::ZoneUse use{abi::ZoneUse::Reads::if_unknown};
    BrokenDownTime* const made = real_localtime_r(time, result);
    if (made != nullptr && serves_program(HIROBA_CALLER))
        made->tm_zone = abi::keep_zone(made->tm_zone);
    return made;
}
struct tm* gmtime(const time_t* time) noexcept {
    return keep_time(real_gmtime(time), HIROBA_CALLER);
}
char* asctime(const struct tm* time) noexcept {
    return keep_text(real_asctime(time), &Results::date, HIROBA_CALLER);
}
char* ctime(const time_t* time) noexcept {
    const abi::ZoneUse use{abi::ZoneUse::Reads::always};
    return keep_text(real_ctime(time), &Results::date, HIROBA_CALLER);
}
char* ecvt(double value, int digits, int* point, int* sign) noexcept {
    return keep_text(real_ecvt(value, digits, point, sign), &Results::digits, HIROBA_CALLER);
}
char* fcvt(double value, int digits, int* point, int* sign) noexcept {
    return keep_text(real_fcvt(value, digits, point, sign), &Results::digits, HIROBA_CALLER);
}
char* l64a(long value) noexcept {
    return keep_text(real_l64a(value), &Results::base_64, HIROBA_CALLER);
}
char* tmpnam(char* buffer) noexcept {
    char* const made = real_tmpnam(buffer);
    return buffer != nullptr ? made : keep_text(made, &Results::path, HIROBA_CALLER);
}
char* ptsname(int terminal) noexcept {
    return keep_text(real_ptsname(terminal), &Results::terminal, HIROBA_CALLER);
}
char* ttyname(int terminal) noexcept {
    return keep_text(real_ttyname(terminal), &Results::terminal, HIROBA_CALLER);
}

}  // extern "C"
