// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes what works with a locale object: each call goes to libc with this node's twin.
// Invariant: every function of libc with a locale_t is here, under both of its names, or in
// locale_objects.cpp. Kinds of characters are numbers that mean the same on all nodes.
// The headers' inline versions would stand in the way of these definitions.
#ifndef __NO_INLINE__
#define __NO_INLINE__ 1
#endif
#include <ctype.h>
#include <langinfo.h>
#include <monetary.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>
#include <wctype.h>

#include <cstddef>

#include "abi/libc/handles/locale_objects.hpp"
#include "abi/libc/real.hpp"

using hiroba::abi::near_locale;

#pragma GCC visibility push(default)
extern "C" {

#define HIROBA_IN_LOCALE(result, name, parameters, arguments) \
    HIROBA_REAL(name);                                        \
    result(name) parameters noexcept { return real_##name arguments; }
/// The same with libc's older name, by which libstdc++ calls it.
#define HIROBA_IN_LOCALE_TWICE(result, name, parameters, arguments) \
    HIROBA_IN_LOCALE(result, name, parameters, arguments)           \
    result __##name parameters noexcept { return real_##name arguments; }

#define HIROBA_CHARACTER(result, type, name) \
    HIROBA_IN_LOCALE_TWICE(result, name, (type c, locale_t l), (c, near_locale(l)))
#define HIROBA_CLASS(name)                   \
    HIROBA_CHARACTER(int, int, is##name##_l) \
    HIROBA_CHARACTER(int, wint_t, isw##name##_l)
HIROBA_CLASS(alnum)
HIROBA_CLASS(alpha)
HIROBA_CLASS(blank)
HIROBA_CLASS(cntrl)
HIROBA_CLASS(digit)
HIROBA_CLASS(graph)
HIROBA_CLASS(lower)
HIROBA_CLASS(print)
HIROBA_CLASS(punct)
HIROBA_CLASS(space)
HIROBA_CLASS(upper)
HIROBA_CLASS(xdigit)
HIROBA_CHARACTER(int, int, tolower_l)
HIROBA_CHARACTER(int, int, toupper_l)
HIROBA_CHARACTER(wint_t, wint_t, towlower_l)
HIROBA_CHARACTER(wint_t, wint_t, towupper_l)

#define HIROBA_REAL_NUMBER(define, type, suffix)                                          \
    define(type, strto##suffix##_l, (const char* text, char** end, locale_t l),           \
           (text, end, near_locale(l)))                                                   \
        define(type, wcsto##suffix##_l, (const wchar_t* text, wchar_t** end, locale_t l), \
               (text, end, near_locale(l)))
HIROBA_REAL_NUMBER(HIROBA_IN_LOCALE_TWICE, float, f)
HIROBA_REAL_NUMBER(HIROBA_IN_LOCALE_TWICE, double, d)
HIROBA_REAL_NUMBER(HIROBA_IN_LOCALE_TWICE, long double, ld)
HIROBA_REAL_NUMBER(HIROBA_IN_LOCALE, _Float32, f32)
HIROBA_REAL_NUMBER(HIROBA_IN_LOCALE, _Float64, f64)
HIROBA_REAL_NUMBER(HIROBA_IN_LOCALE, _Float32x, f32x)
HIROBA_REAL_NUMBER(HIROBA_IN_LOCALE, _Float64x, f64x)
#if __HAVE_FLOAT128
HIROBA_REAL_NUMBER(HIROBA_IN_LOCALE, _Float128, f128)
#endif

#define HIROBA_WHOLE_NUMBER_OF(define, type, name, character)                          \
    define(type, name, (const character* text, character** end, int base, locale_t l), \
           (text, end, base, near_locale(l)))
#define HIROBA_WHOLE_NUMBER(type, suffix)                                               \
    HIROBA_WHOLE_NUMBER_OF(HIROBA_IN_LOCALE_TWICE, type, strto##suffix##_l, char)       \
    HIROBA_WHOLE_NUMBER_OF(HIROBA_IN_LOCALE_TWICE, type, wcsto##suffix##_l, wchar_t)    \
    /* As code built with glibc 2.38 and later calls them. */                           \
    type __isoc23_strto##suffix##_l(const char*, char**, int, locale_t) noexcept;       \
    type __isoc23_wcsto##suffix##_l(const wchar_t*, wchar_t**, int, locale_t) noexcept; \
    HIROBA_WHOLE_NUMBER_OF(HIROBA_IN_LOCALE, type, __isoc23_strto##suffix##_l, char)    \
    HIROBA_WHOLE_NUMBER_OF(HIROBA_IN_LOCALE, type, __isoc23_wcsto##suffix##_l, wchar_t)
HIROBA_WHOLE_NUMBER(long, l)
HIROBA_WHOLE_NUMBER(long long, ll)
HIROBA_WHOLE_NUMBER(unsigned long, ul)
HIROBA_WHOLE_NUMBER(unsigned long long, ull)

#define HIROBA_ORDER(name, character)                                                       \
    HIROBA_IN_LOCALE_TWICE(int, name, (const character* a, const character* b, locale_t l), \
                           (a, b, near_locale(l)))
HIROBA_ORDER(strcoll_l, char)
HIROBA_ORDER(wcscoll_l, wchar_t)
HIROBA_ORDER(strcasecmp_l, char)
HIROBA_ORDER(wcscasecmp_l, wchar_t)
#define HIROBA_ORDER_OF_FIRST(name, character)                                             \
    HIROBA_IN_LOCALE_TWICE(int, name,                                                      \
                           (const character* a, const character* b, size_t n, locale_t l), \
                           (a, b, n, near_locale(l)))
HIROBA_ORDER_OF_FIRST(strncasecmp_l, char)
HIROBA_ORDER_OF_FIRST(wcsncasecmp_l, wchar_t)
#define HIROBA_KEY(name, character)                                                       \
    HIROBA_IN_LOCALE_TWICE(size_t, name,                                                  \
                           (character * to, const character* from, size_t n, locale_t l), \
                           (to, from, n, near_locale(l)))
HIROBA_KEY(strxfrm_l, char)
HIROBA_KEY(wcsxfrm_l, wchar_t)

HIROBA_IN_LOCALE(char*, strptime_l,
                 (const char* text, const char* format, struct tm* time, locale_t l),
                 (text, format, time, near_locale(l)))

}  // extern "C"
