// SPDX-License-Identifier: BSD-3-Clause
// Role: keeps them, and interposes the functions that hand out one text and nothing else.
#include "abi/libc/memory/kept_texts.hpp"

#include <langinfo.h>
#include <libintl.h>
#include <locale.h>
#include <netdb.h>
#include <string.h>
#include <wchar.h>

#include <algorithm>
#include <cstddef>
#include <mutex>

#include "abi/libc/handles/locale_objects.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"
#include "base/latch.hpp"

// The headers' macros would stand in the way of these definitions.
#undef gettext
#undef dgettext
#undef dcgettext
#undef ngettext
#undef dngettext
#undef dcngettext

HIROBA_REAL(nl_langinfo);
HIROBA_REAL(nl_langinfo_l);
HIROBA_REAL(strerror);
HIROBA_REAL(strerror_l);
HIROBA_REAL(strerror_r);
HIROBA_REAL(strsignal);
HIROBA_REAL(hstrerror);
HIROBA_REAL(gai_strerror);
HIROBA_REAL(dcgettext);
HIROBA_REAL(dcngettext);

namespace hiroba::abi {
namespace {

/// In global memory; the text with its zero follows.
struct Kept {
    Kept* next;
    std::size_t bytes;
    char* text() noexcept { return reinterpret_cast<char*>(this + 1); }
};

constexpr std::size_t rows = 256;
constinit Kept* kept[rows];  ///< by what the text is; under the latch
constinit Latch latch;

std::size_t row_of(const char* text, std::size_t bytes) noexcept {
    std::size_t hash = 5381;
    for (std::size_t i = 0; i < bytes; ++i) hash = hash * 33 + static_cast<unsigned char>(text[i]);
    return hash % rows;
}

Kept* find(std::size_t row, const char* text, std::size_t bytes) noexcept {
    for (Kept* each = kept[row]; each != nullptr; each = each->next)
        if (each->bytes == bytes && memcmp(each->text(), text, bytes) == 0) return each;
    return nullptr;
}

/// The copy; `text` itself where there is no room.
const char* keep_bytes(const char* text, std::size_t bytes) noexcept {
    const std::size_t row = row_of(text, bytes);
    {
        const std::scoped_lock guard{latch};
        if (Kept* const found = find(row, text, bytes)) return found->text();
    }
    auto* const made = static_cast<Kept*>(allocate_for_program(sizeof(Kept) + bytes, 16, false));
    if (made == nullptr) return text;
    made->bytes = bytes;
    memcpy(made->text(), text, bytes);
    const std::scoped_lock guard{latch};
    made->next = kept[row];  // twice where two threads were at it: both stay
    kept[row] = made;
    return made->text();
}

struct Items {
    nl_item first, last;
    bool contain(nl_item item) const noexcept { return item >= first && item <= last; }
};
/// The words of a locale. Other items, for which libstdc++ asks, are tables, and numbers where
/// others have an address.
constexpr Items texts[] = {{CODESET, CODESET},
                           {RADIXCHAR, THOUSEP},
                           {__INT_CURR_SYMBOL, __NEGATIVE_SIGN},
                           {CRNCYSTR, CRNCYSTR},
                           {YESEXPR, NOSTR},
                           {ABDAY_1, ERA_T_FMT},
                           {_NL_TIME_CODESET, ALTMON_12},
                           {_NL_ABALTMON_1, _NL_ABALTMON_12}};
constexpr Items wide_texts[] = {{_NL_WABDAY_1, _NL_WERA_T_FMT},
                                {_NL_W_DATE_FMT, _NL_W_DATE_FMT},
                                {_NL_WALTMON_1, _NL_WALTMON_12},
                                {_NL_WABALTMON_1, _NL_WABALTMON_12}};

char* kept_word(nl_item item, char* made, const void* return_address) noexcept {
    if (!is_spread() || !is_for_program(return_address)) return made;
    const auto has_item = [item](const Items& items) { return items.contain(item); };
    if (std::ranges::any_of(texts, has_item)) return const_cast<char*>(keep_text(made));
    if (!std::ranges::any_of(wide_texts, has_item)) return made;
    const auto* const wide = reinterpret_cast<const wchar_t*>(made);
    return const_cast<char*>(keep_bytes(made, (wcslen(wide) + 1) * sizeof(wchar_t)));
}

}  // namespace

const char* keep_text(const char* text) noexcept {
    if (text == nullptr || is_program_memory(text)) return text;
    return keep_bytes(text, strlen(text) + 1);
}

char* kept_for(char* text, const void* return_address) noexcept {
    if (!is_spread() || !is_for_program(return_address)) return text;
    return const_cast<char*>(keep_text(text));
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#define HIROBA_CALLER __builtin_return_address(0)

namespace {

/// A translation, or one of the program's own texts, which it gets back as they are.
char* translated(char* made, const char* one, const char* many,
                 const void* return_address) noexcept {
    return made == one || made == many ? made : kept_for(made, return_address);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

char* nl_langinfo(nl_item item) noexcept {
    return kept_word(item, real_nl_langinfo(item), HIROBA_CALLER);
}
char* nl_langinfo_l(nl_item item, locale_t locale) {
    return kept_word(item, real_nl_langinfo_l(item, near_locale(locale)), HIROBA_CALLER);
}
[[gnu::alias("nl_langinfo_l")]] char* __nl_langinfo_l(nl_item, locale_t) noexcept;
char* strerror(int error) noexcept { return kept_for(real_strerror(error), HIROBA_CALLER); }
char* strerror_l(int error, locale_t locale) noexcept {
    return kept_for(real_strerror_l(error, near_locale(locale)), HIROBA_CALLER);
}
char* strerror_r(int error, char* room, size_t bytes) noexcept {
    char* const text = real_strerror_r(error, room, bytes);
    return text == room ? text : kept_for(text, HIROBA_CALLER);
}
const char* hstrerror(int error) noexcept {
    return kept_for(const_cast<char*>(real_hstrerror(error)), HIROBA_CALLER);
}
const char* gai_strerror(int error) noexcept {
    return kept_for(const_cast<char*>(real_gai_strerror(error)), HIROBA_CALLER);
}
char* strsignal(int number) noexcept { return kept_for(real_strsignal(number), HIROBA_CALLER); }

char* dcgettext(const char* domain, const char* text, int category) noexcept {
    return translated(real_dcgettext(domain, text, category), text, nullptr, HIROBA_CALLER);
}
char* dgettext(const char* domain, const char* text) noexcept {
    return translated(real_dcgettext(domain, text, LC_MESSAGES), text, nullptr, HIROBA_CALLER);
}
char* gettext(const char* text) noexcept {
    return translated(real_dcgettext(static_cast<const char*>(nullptr), text, LC_MESSAGES), text,
                      nullptr, HIROBA_CALLER);
}
char* dcngettext(const char* domain, const char* one, const char* many, unsigned long count,
                 int category) noexcept {
    return translated(real_dcngettext(domain, one, many, count, category), one, many,
                      HIROBA_CALLER);
}
char* dngettext(const char* domain, const char* one, const char* many,
                unsigned long count) noexcept {
    return translated(real_dcngettext(domain, one, many, count, LC_MESSAGES), one, many,
                      HIROBA_CALLER);
}
char* ngettext(const char* one, const char* many, unsigned long count) noexcept {
    return translated(
        real_dcngettext(static_cast<const char*>(nullptr), one, many, count, LC_MESSAGES), one,
        many, HIROBA_CALLER);
}

}  // extern "C"
