// SPDX-License-Identifier: BSD-3-Clause
// Role: wctype() and wctrans() for the program. libc hands out addresses in a file of the locale's,
// which each node has mapped somewhere else; the program gets a number, and each node asks libc for
// the address anew.
// Invariant: a number names one of the kinds that every locale has, from 1 on; no address of libc's
// is so small. Kinds that a locale has beyond them stay addresses, good on their node alone.
#include <string.h>
#include <wctype.h>

#include <cstddef>
#include <iterator>

#include "abi/libc/handles/locale_objects.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"

HIROBA_REAL(wctype);
HIROBA_REAL(wctype_l);
HIROBA_REAL(iswctype);
HIROBA_REAL(iswctype_l);
HIROBA_REAL(wctrans);
HIROBA_REAL(wctrans_l);
HIROBA_REAL(towctrans);
HIROBA_REAL(towctrans_l);

using namespace hiroba::abi;

namespace {

constexpr const char* kinds[] = {"alnum", "alpha", "blank", "cntrl", "digit", "graph",
                                 "lower", "print", "punct", "space", "upper", "xdigit"};
constexpr const char* cases[] = {"tolower", "toupper"};

/// From 1 on; 0: none of them.
template <std::size_t count>
std::size_t number_of(const char* const (&names)[count], const char* name,
                      const void* return_address) noexcept {
    if (!is_spread() || !is_for_program(return_address)) return 0;
    for (std::size_t i = 0; i < count; ++i)
        if (strcmp(names[i], name) == 0) return i + 1;
    return 0;
}

bool is_kind(wctype_t kind) noexcept { return kind - 1 < std::size(kinds); }

const char* case_name(wctrans_t which) noexcept {
    const auto number = reinterpret_cast<std::uintptr_t>(which);
    return number - 1 < std::size(cases) ? cases[number - 1] : nullptr;
}

wctrans_t as_case(std::size_t number) noexcept { return reinterpret_cast<wctrans_t>(number); }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

wctype_t wctype(const char* name) noexcept {
    const wctype_t number = number_of(kinds, name, __builtin_return_address(0));
    return number != 0 ? number : real_wctype(name);
}
wctype_t wctype_l(const char* name, locale_t locale) noexcept {
    const wctype_t number = number_of(kinds, name, __builtin_return_address(0));
    return number != 0 ? number : real_wctype_l(name, near_locale(locale));
}
int iswctype(wint_t character, wctype_t kind) noexcept {
    return real_iswctype(character, is_kind(kind) ? real_wctype(kinds[kind - 1]) : kind);
}
int iswctype_l(wint_t character, wctype_t kind, locale_t locale) noexcept {
    const locale_t here = near_locale(locale);
    return real_iswctype_l(character, is_kind(kind) ? real_wctype_l(kinds[kind - 1], here) : kind,
                           here);
}

wctrans_t wctrans(const char* name) noexcept {
    const std::size_t number = number_of(cases, name, __builtin_return_address(0));
    return number != 0 ? as_case(number) : real_wctrans(name);
}
wctrans_t wctrans_l(const char* name, locale_t locale) noexcept {
    const std::size_t number = number_of(cases, name, __builtin_return_address(0));
    return number != 0 ? as_case(number) : real_wctrans_l(name, near_locale(locale));
}
wint_t towctrans(wint_t character, wctrans_t which) noexcept {
    const char* const name = case_name(which);
    return real_towctrans(character, name != nullptr ? real_wctrans(name) : which);
}
wint_t towctrans_l(wint_t character, wctrans_t which, locale_t locale) noexcept {
    const locale_t here = near_locale(locale);
    const char* const name = case_name(which);
    return real_towctrans_l(character, name != nullptr ? real_wctrans_l(name, here) : which, here);
}

// As libstdc++ calls them.
[[gnu::alias("wctype_l")]] wctype_t __wctype_l(const char*, locale_t) noexcept;
[[gnu::alias("iswctype_l")]] int __iswctype_l(wint_t, wctype_t, locale_t) noexcept;
[[gnu::alias("wctrans_l")]] wctrans_t __wctrans_l(const char*, locale_t) noexcept;
[[gnu::alias("towctrans_l")]] wint_t __towctrans_l(wint_t, wctrans_t, locale_t) noexcept;

}  // extern "C"
