// SPDX-License-Identifier: BSD-3-Clause
// Role: makes records and twins, and interposes what makes, frees and sets locale objects. What
// works with them: locale_calls.cpp.
#include "abi/libc/handles/locale_objects.hpp"

#include <string.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "abi/libc/handles/twins.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/threads/kept_by_threads.hpp"
#include "base/fatal.hpp"

HIROBA_REAL(newlocale);
HIROBA_REAL(duplocale);
HIROBA_REAL(freelocale);
HIROBA_REAL(uselocale);

namespace hiroba::abi {
namespace {

constexpr int categories = 13;
constexpr int first_character = -128;
constexpr std::size_t characters = 384;  // -128 to 255, as in libc's tables

/// In global memory; the names with their zeros follow.
struct Record {
    __locale_struct shown;
    std::uint64_t id;
    unsigned short classes[characters];
    int lower[characters], upper[characters];
};

void free_made(locale_t& made) noexcept { real_freelocale(made); }

using Locales = Twins<Record, locale_t, &free_made>;
constinit Locales locales;

const Record* as_record(locale_t record) noexcept {
    return reinterpret_cast<const Record*>(record);
}

/// libc's object of these names; null and errno.
locale_t build(const char* const* names) noexcept {
    locale_t made = nullptr;
    for (int i = 0; i < categories; ++i) {
        if (i == LC_ALL) continue;
        const locale_t next = real_newlocale(1 << i, names[i], made);
        if (next == nullptr) {
            if (made != nullptr) real_freelocale(made);
            return nullptr;
        }
        made = next;
    }
    return made;
}

/// libc's own object of the locale "C": static, so one for all nodes.
locale_t plain_locale() noexcept {
    static const locale_t plain = real_newlocale(LC_ALL_MASK, "C", nullptr);
    return plain;
}

template <class Element>
const Element* copy_table(Element (&to)[characters], const Element* from) noexcept {
    std::copy_n(from + first_character, characters, to);
    return to - first_character;
}

Record* make_record(const __locale_struct& made) noexcept {
    std::size_t name_bytes = 0;
    for (int i = 0; i < categories; ++i)
        if (i != LC_ALL) name_bytes += strlen(made.__names[i]) + 1;
    auto* const record =
        static_cast<Record*>(allocate_for_program(sizeof(Record) + name_bytes, 64, true));
    if (record == nullptr) return nullptr;
    record->id = Locales::next_id();
    record->shown.__ctype_b = copy_table(record->classes, made.__ctype_b);
    record->shown.__ctype_tolower = copy_table(record->lower, made.__ctype_tolower);
    record->shown.__ctype_toupper = copy_table(record->upper, made.__ctype_toupper);
    char* next = reinterpret_cast<char*>(record + 1);
    for (int i = 0; i < categories; ++i) {
        if (i == LC_ALL) continue;
        record->shown.__names[i] = strcpy(next, made.__names[i]);
        next += strlen(next) + 1;
    }
    return record;
}

/// The program's object for what libc has made, which becomes its twin here. Null and errno.
locale_t hand_over(locale_t made) noexcept {
    if (made == nullptr || made == plain_locale()) return made;
    auto* const twin = Locales::allocate();
    Record* const record = twin != nullptr ? make_record(*made) : nullptr;
    if (record == nullptr) {
        libc_free(twin);
        real_freelocale(made);
        errno = ENOMEM;
        return nullptr;
    }
    twin->made = made;
    locales.keep(twin, record);
    return &record->shown;
}

bool is_record(locale_t locale) noexcept {
    return locale != LC_GLOBAL_LOCALE && is_program_memory(locale);
}

}  // namespace

locale_t twin_of(locale_t locale) noexcept {
    const Record* const record = as_record(locale);
    if (auto* const found = locales.find(record)) return found->made;
    auto* const twin = Locales::allocate();
    if (twin != nullptr) twin->made = build(record->shown.__names);
    if (twin == nullptr || twin->made == nullptr) {
        die(exit_environment,
            "a locale of another node (LC_CTYPE %s, LC_NUMERIC %s) cannot be made here: %s. "
            "Install it on every host",
            record->shown.__names[LC_CTYPE], record->shown.__names[LC_NUMERIC], strerror(errno));
    }
    return locales.keep(twin, record)->made;
}

locale_t record_of(locale_t twin) noexcept {
    if (twin == LC_GLOBAL_LOCALE || twin == plain_locale()) return twin;
    const auto* const found =
        locales.find_any([&](const Locales::Twin& each) { return each.made == twin; });
    return found == nullptr ? twin : const_cast<locale_t>(&found->record->shown);
}

locale_t make_locale(int mask, const char* name, locale_t base) noexcept {
    const bool has_record = base != nullptr && is_record(base);
    const locale_t copy = has_record ? real_duplocale(twin_of(base)) : base;
    const locale_t made = real_newlocale(mask, name, copy);
    if (made == nullptr) {
        const int error = errno;
        if (has_record && copy != nullptr) real_freelocale(copy);
        errno = error;
        return nullptr;
    }
    const locale_t result = hand_over(made);
    if (has_record && result != nullptr) free_locale(base);
    return result;
}

locale_t copy_locale(locale_t locale) noexcept {
    return hand_over(real_duplocale(near_locale(locale)));
}

void free_locale(locale_t locale) noexcept {
    if (!is_record(locale)) return real_freelocale(locale);
    locales.drop(as_record(locale));
    give_back(locale);
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

namespace {

bool serves_program(const void* return_address) noexcept {
    return is_spread() && is_for_program(return_address);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

locale_t newlocale(int mask, const char* name, locale_t base) noexcept {
    return serves_program(__builtin_return_address(0)) ? make_locale(mask, name, base)
                                                       : real_newlocale(mask, name, base);
}
locale_t duplocale(locale_t locale) noexcept {
    return serves_program(__builtin_return_address(0)) ? copy_locale(locale)
                                                       : real_duplocale(near_locale(locale));
}
void freelocale(locale_t locale) noexcept {
    if (is_spread()) return free_locale(locale);
    real_freelocale(locale);
}
locale_t uselocale(locale_t locale) noexcept {
    if (locale != nullptr) note_kept_by_caller(__builtin_return_address(0));
    const locale_t before = real_uselocale(near_locale(locale));
    return is_spread() ? record_of(before) : before;
}

// As libstdc++ calls them.
[[gnu::alias("newlocale")]] locale_t __newlocale(int, const char*, locale_t) noexcept;
[[gnu::alias("duplocale")]] locale_t __duplocale(locale_t) noexcept;
[[gnu::alias("freelocale")]] void __freelocale(locale_t) noexcept;
[[gnu::alias("uselocale")]] locale_t __uselocale(locale_t) noexcept;

}  // extern "C"
