// SPDX-License-Identifier: BSD-3-Clause
// Role: locale objects of the program. What libc makes points into files that each node has mapped
// somewhere else; the program's locale_t is a record in global memory, and each node works on a
// twin made from the names of its categories.
// Invariant: a record looks like libc's object as far as the headers' macros look into it: the
// tables of character classes and cases are copied into it, and the names.
#pragma once

#include <locale.h>
#include <wctype.h>

#include "abi/libc/memory/malloc_place.hpp"

namespace hiroba::abi {

/// This node's twin of a record.
locale_t twin_of(locale_t record) noexcept;

/// What libc takes for `locale`: the twin of a record, anything else as it is.
inline locale_t near_locale(locale_t locale) noexcept {
    return is_spread() && locale != LC_GLOBAL_LOCALE && is_program_memory(locale) ? twin_of(locale)
                                                                                  : locale;
}

/// The record whose twin is `twin`; any other as it is.
locale_t record_of(locale_t twin) noexcept;

/// newlocale() and duplocale() for the program; null and errno.
locale_t make_locale(int categories, const char* name, locale_t base) noexcept;
locale_t copy_locale(locale_t locale) noexcept;
void free_locale(locale_t locale) noexcept;

}  // namespace hiroba::abi
