// SPDX-License-Identifier: BSD-3-Clause
// Role: see time_zone.hpp; interposes the functions by which libc comes to read TZ, but for those
// of memory/static_results.cpp. Invariant: a zone whose name libc finds again keeps the pointer
// that `tzname` has.
#include "abi/libc/process/time_zone.hpp"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include <atomic>
#include <mutex>

#include "abi/libc/calls/kernel_access.hpp"
#include "abi/libc/handles/locale_objects.hpp"
#include "abi/libc/memory/static_results.hpp"
#include "abi/libc/process/process_state.hpp"
#include "abi/libc/real.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"

HIROBA_REAL(tzset);
HIROBA_REAL(ctime_r);
HIROBA_REAL(mktime);
HIROBA_REAL(timelocal);
HIROBA_REAL(strftime);
HIROBA_REAL(strftime_l);
HIROBA_REAL(wcsftime);
HIROBA_REAL(wcsftime_l);

namespace hiroba::abi {
namespace {

constinit Latch naming;  ///< from libc's writing of `tzname` to its repair
constinit Latch changing;
constinit TimeZone here;       ///< under `changing`
constinit TimeZone of_node_0;  ///< another node: as its region began; under `changing`
constinit std::atomic<bool> known{false};

/// libc has read TZ just now. @return whether that is another zone
bool note_read() noexcept {
    const char* const text = getenv("TZ");
    const std::scoped_lock guard{changing};
    const bool is_set = text != nullptr;
    if (here.is_known && here.is_set == is_set && (!is_set || strcmp(text, here.text) == 0))
        return false;
    if (is_set && strlen(text) >= TimeZone::bytes_max) {
        say("TZ is longer than %lu bytes: the other nodes keep the zone they have",
            TimeZone::bytes_max - 1);
        return false;
    }
    here.is_known = true;
    here.is_set = is_set;
    strcpy(here.text, is_set ? text : "");
    known.store(true, std::memory_order_release);
    return true;
}

/// Where node 0 has not read TZ, it would read what that is now.
void note_zone_of_node_0(const TimeZone& zone) noexcept {
    const char* const text = getenv("TZ");
    const std::scoped_lock guard{changing};
    of_node_0 = zone;
    if (zone.is_known || (text != nullptr && strlen(text) >= TimeZone::bytes_max)) return;
    of_node_0.is_set = text != nullptr;
    strcpy(of_node_0.text, text != nullptr ? text : "");
}

/// For a moment TZ is all there is of the environment.
void read_zone(const TimeZone& zone) noexcept {
    static constinit char entry[TimeZone::bytes_max + 3] = "TZ=";
    char* const variables[] = {entry, nullptr};
    char* const none[] = {nullptr};
    strcpy(entry + 3, zone.text);
    char** const former = environ;
    environ = const_cast<char**>(zone.is_set ? variables : none);
    real_tzset();
    environ = former;
}

}  // namespace

ZoneUse::ZoneUse(Reads reads) noexcept
    : reads_(reads), repairs_(spans_nodes() && is_global(tzname)) {
    if (!repairs_) return;
    naming.lock();
    names_[0] = tzname[0];
    names_[1] = tzname[1];
}

ZoneUse::~ZoneUse() {
    if (!spans_nodes()) return;
    for (int i = 0; i < 2 && repairs_; ++i) {
        if (tzname[i] == names_[i]) continue;
        // What localtime_r() comes to know by itself other nodes do, too: node 0's is written.
        const bool stays = reads_ == Reads::if_unknown && world()->job.self.value != 0;
        const bool is_same = names_[i] != nullptr && strcmp(tzname[i], names_[i]) == 0;
        tzname[i] = stays || is_same ? names_[i] : const_cast<char*>(keep_zone(tzname[i]));
    }
    if (repairs_) naming.unlock();
    const bool reads = reads_ == Reads::always || !known.load(std::memory_order_acquire);
    if (reads && note_read()) time_zone_changed();
}

bool is_zone_of_node_0() noexcept {
    const std::scoped_lock guard{changing};
    return here.is_set == of_node_0.is_set && strcmp(here.text, of_node_0.text) == 0;
}

TimeZone time_zone() noexcept {
    const std::scoped_lock guard{changing};
    return here;
}

void become_time_zone(const TimeZone& zone) noexcept {
    note_zone_of_node_0(zone);
    if (!zone.is_known) return;
    const TimeZone now = time_zone();
    if (now.is_known && now.is_set == zone.is_set && strcmp(now.text, zone.text) == 0) return;
    {
        const ZoneUse use{ZoneUse::Reads::if_unknown};
        const char* const text = getenv("TZ");
        if ((text != nullptr) == zone.is_set && (text == nullptr || strcmp(text, zone.text) == 0))
            real_tzset();
        else
            read_zone(zone);
    }
    const std::scoped_lock guard{changing};
    here = zone;
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

void tzset() noexcept {
    const ZoneUse use{ZoneUse::Reads::always};
    real_tzset();
}

char* ctime_r(const time_t* time, char* text) noexcept {
    const ZoneUse use{ZoneUse::Reads::if_unknown};
    return real_ctime_r(time, text);
}

time_t mktime(struct tm* time) noexcept {
    const ZoneUse use{ZoneUse::Reads::always};
    return real_mktime(time);
}

time_t timelocal(struct tm* time) noexcept {
    const ZoneUse use{ZoneUse::Reads::always};
    return real_timelocal(time);
}

size_t strftime(char* text, size_t bytes, const char* format, const struct tm* time) noexcept {
    const ZoneUse use{ZoneUse::Reads::always};
    return real_strftime(text, bytes, format, time);
}

size_t strftime_l(char* text, size_t bytes, const char* format, const struct tm* time,
                  locale_t locale) noexcept {
    const ZoneUse use{ZoneUse::Reads::always};
    return real_strftime_l(text, bytes, format, time, near_locale(locale));
}
/// libc's older name, by which libstdc++ calls it.
[[gnu::alias("strftime_l")]] size_t __strftime_l(char*, size_t, const char*, const struct tm*,
                                                 locale_t) noexcept;

size_t wcsftime(wchar_t* text, size_t count, const wchar_t* format,
                const struct tm* time) noexcept {
    const ZoneUse use{ZoneUse::Reads::always};
    return real_wcsftime(text, count, format, time);
}

size_t wcsftime_l(wchar_t* text, size_t count, const wchar_t* format, const struct tm* time,
                  locale_t locale) noexcept {
    const ZoneUse use{ZoneUse::Reads::always};
    return real_wcsftime_l(text, count, format, time, near_locale(locale));
}
[[gnu::alias("wcsftime_l")]] size_t __wcsftime_l(wchar_t*, size_t, const wchar_t*, const struct tm*,
                                                 locale_t) noexcept;

}  // extern "C"
