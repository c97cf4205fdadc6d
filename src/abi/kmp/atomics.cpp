// SPDX-License-Identifier: BSD-3-Clause
// Role: __kmpc_atomic_*: atomics as calls, which Intel's compilers make and clang does not.
// Invariant: on 1, 2, 4 and 8 aligned bytes they are those of the processor, and so exclude atomics
// that other code has inline; on anything else one lock excludes these calls from each other. They
// order nothing else.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "abi/atomic/global_atomic.hpp"
#include "abi/kmp/kmp.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using namespace hiroba::abi::kmp;

namespace {

using Cmplx4 = __complex__ float;
using Cmplx8 = __complex__ double;
using Cmplx10 = __complex__ long double;

template <std::size_t bytes>
using Word = std::conditional_t<
    bytes == 1, std::uint8_t,
    std::conditional_t<bytes == 2, std::uint16_t,
                       std::conditional_t<bytes == 4, std::uint32_t, std::uint64_t>>>;
template <class T>
constexpr bool fits_word = sizeof(T) <= 8 && (sizeof(T) & (sizeof(T) - 1)) == 0;

bool is_aligned(const void* at, std::size_t bytes) noexcept { return key_of(at) % bytes == 0; }

struct Lock {
    Lock() noexcept { runtime().lock(hiroba::omp::atomic_key); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock() { runtime().unlock(hiroba::omp::atomic_key); }
};

template <class To, class From>
To bits(From from) noexcept {
    To to;
    static_assert(sizeof to == sizeof from);
    std::memcpy(&to, &from, sizeof to);
    return to;
}

/// Replaces *at by next(*at). @return the value before, or the one behind
template <class T, class Next>
T change(T* at, Next next, bool wants_new = false) noexcept {
    if constexpr (fits_word<T>) {
        if (is_aligned(at, sizeof(T))) {
            using W = Word<sizeof(T)>;
            const W before = atomically<W>(at, __ATOMIC_RELAXED, [&](W* word) {
                return update(word,
                              [&](W seen) { return bits<W>(static_cast<T>(next(bits<T>(seen)))); });
            });
            const T old = bits<T>(before);
            return wants_new ? static_cast<T>(next(old)) : old;
        }
    }
    const Lock held;
    const T before = *at;
    const T behind = static_cast<T>(next(before));
    *at = behind;
    return wants_new ? behind : before;
}

template <class T>
T load(T* at) noexcept {
    return change(at, [](T x) { return x; });
}

/// Stores `wanted` if *at is `expected`. @return the value before
template <class W>
W swap_word(W* at, W expected, W wanted) noexcept {
    return atomically<W>(at, __ATOMIC_RELAXED,
                         [&](W* word) { return swap_if(word, expected, wanted); });
}

using Combine = void (*)(void* result, void* left, void* right);

/// By a function of the program, which runs on its own stack.
template <std::size_t bytes>
void combine(void* at, void* right, Combine function) noexcept {
    struct Value {
        std::byte content[bytes];
    } old, next;
    if constexpr (fits_word<Value>) {
        if (is_aligned(at, bytes)) {
            using W = Word<bytes>;
            W seen = load(static_cast<W*>(at));
            for (;;) {
                old = bits<Value>(seen);
                function(&next, &old, right);
                const W before = swap_word(static_cast<W*>(at), seen, bits<W>(next));
                if (before == seen) return;
                seen = before;
            }
        }
    }
    const Lock held;
    std::memcpy(&old, at, bytes);
    function(&next, &old, right);
    std::memcpy(at, &next, bytes);
}

}  // namespace

// `x` is the variable, `e` the other operand.
// NOLINTBEGIN(bugprone-macro-parentheses): types, and expressions of `x` and `e`, as arguments.
#define HIROBA_PLAIN(name, T, E, value)                         \
    void __kmpc_atomic_##name(Location*, int, T* at, E e) {     \
        change(at, [e](T x) { return static_cast<T>(value); }); \
    }
#define HIROBA_CAPTURE(name, T, value)                                       \
    T __kmpc_atomic_##name(Location*, int, T* at, T e, int wants_new) {      \
        return change(                                                       \
            at, [e](T x) { return static_cast<T>(value); }, wants_new != 0); \
    }
#define HIROBA_BOTH(name, T, value) \
    HIROBA_PLAIN(name, T, T, value) \
    HIROBA_CAPTURE(name##_cpt, T, value)
/// The same with the operands changed over.
#define HIROBA_REVERSED(name, T, value)   \
    HIROBA_PLAIN(name##_rev, T, T, value) \
    HIROBA_CAPTURE(name##_cpt_rev, T, value)
#define HIROBA_MOVES(name, T)                                               \
    T __kmpc_atomic_##name##_rd(Location*, int, T* at) { return load(at); } \
    void __kmpc_atomic_##name##_wr(Location*, int, T* at, T e) {            \
        change(at, [e](T) { return e; });                                   \
    }
#define HIROBA_SWAP(name, T)                                   \
    T __kmpc_atomic_##name##_swp(Location*, int, T* at, T e) { \
        return change(at, [e](T) { return e; });               \
    }
#define HIROBA_FLOATING(name, T)          \
    HIROBA_BOTH(name##_add, T, x + e)     \
    HIROBA_BOTH(name##_sub, T, x - e)     \
    HIROBA_BOTH(name##_mul, T, x* e)      \
    HIROBA_BOTH(name##_div, T, x / e)     \
    HIROBA_REVERSED(name##_sub, T, e - x) \
    HIROBA_REVERSED(name##_div, T, e / x) \
    HIROBA_MOVES(name, T)
#define HIROBA_ORDERED(name, T)                   \
    HIROBA_BOTH(name##_max, T, std::max<T>(x, e)) \
    HIROBA_BOTH(name##_min, T, std::min<T>(x, e))
#define HIROBA_FIXED(name, T, U)                      \
    HIROBA_FLOATING(name, T)                          \
    HIROBA_ORDERED(name, T)                           \
    HIROBA_SWAP(name, T)                              \
    HIROBA_BOTH(name##_andb, T, x& e)                 \
    HIROBA_BOTH(name##_orb, T, x | e)                 \
    HIROBA_BOTH(name##_xor, T, x ^ e)                 \
    HIROBA_BOTH(name##_shl, T, x << e)                \
    HIROBA_BOTH(name##_shr, T, x >> e)                \
    HIROBA_BOTH(name##_andl, T, x&& e)                \
    HIROBA_BOTH(name##_orl, T, x || e)                \
    HIROBA_BOTH(name##_eqv, T, ~(x ^ e))              \
    HIROBA_BOTH(name##_neqv, T, x ^ e)                \
    HIROBA_REVERSED(name##_shl, T, e << x)            \
    HIROBA_REVERSED(name##_shr, T, e >> x)            \
    HIROBA_PLAIN(name##_mul_float8, T, double, x* e)  \
    HIROBA_PLAIN(name##_div_float8, T, double, x / e) \
    HIROBA_BOTH(name##u_div, U, x / e)                \
    HIROBA_BOTH(name##u_shr, U, x >> e)               \
    HIROBA_REVERSED(name##u_div, U, e / x)            \
    HIROBA_REVERSED(name##u_shr, U, e >> x)

extern "C" {

void __kmpc_atomic_start() { runtime().lock(hiroba::omp::atomic_key); }
void __kmpc_atomic_end() { runtime().unlock(hiroba::omp::atomic_key); }

HIROBA_FIXED(fixed1, std::int8_t, std::uint8_t)
HIROBA_FIXED(fixed2, std::int16_t, std::uint16_t)
HIROBA_FIXED(fixed4, std::int32_t, std::uint32_t)
HIROBA_FIXED(fixed8, std::int64_t, std::uint64_t)
HIROBA_FLOATING(float4, float)
HIROBA_FLOATING(float8, double)
HIROBA_FLOATING(float10, long double)
HIROBA_ORDERED(float4, float)
HIROBA_ORDERED(float8, double)
HIROBA_ORDERED(float10, long double)
HIROBA_SWAP(float4, float)
HIROBA_SWAP(float8, double)
HIROBA_SWAP(float10, long double)
HIROBA_PLAIN(float4_add_float8, float, double, x + e)
HIROBA_PLAIN(float4_sub_float8, float, double, x - e)
HIROBA_PLAIN(float4_mul_float8, float, double, x* e)
HIROBA_PLAIN(float4_div_float8, float, double, x / e)
HIROBA_FLOATING(cmplx8, Cmplx8)
HIROBA_FLOATING(cmplx10, Cmplx10)
HIROBA_SWAP(cmplx8, Cmplx8)
HIROBA_SWAP(cmplx10, Cmplx10)

// A captured value of the smallest complex type goes to an address.
#define HIROBA_CAPTURE_AT(name, value)                                                            \
    void __kmpc_atomic_##name(Location*, int, Cmplx4* at, Cmplx4 e, Cmplx4* out, int wants_new) { \
        *out = change(                                                                            \
            at, [e](Cmplx4 x) { return static_cast<Cmplx4>(value); }, wants_new != 0);            \
    }
HIROBA_MOVES(cmplx4, Cmplx4)
HIROBA_PLAIN(cmplx4_add, Cmplx4, Cmplx4, x + e)
HIROBA_PLAIN(cmplx4_sub, Cmplx4, Cmplx4, x - e)
HIROBA_PLAIN(cmplx4_mul, Cmplx4, Cmplx4, x* e)
HIROBA_PLAIN(cmplx4_div, Cmplx4, Cmplx4, x / e)
HIROBA_PLAIN(cmplx4_sub_rev, Cmplx4, Cmplx4, e - x)
HIROBA_PLAIN(cmplx4_div_rev, Cmplx4, Cmplx4, e / x)
HIROBA_PLAIN(cmplx4_add_cmplx8, Cmplx4, Cmplx8, x + e)
HIROBA_PLAIN(cmplx4_sub_cmplx8, Cmplx4, Cmplx8, x - e)
HIROBA_PLAIN(cmplx4_mul_cmplx8, Cmplx4, Cmplx8, x* e)
HIROBA_PLAIN(cmplx4_div_cmplx8, Cmplx4, Cmplx8, x / e)
HIROBA_CAPTURE_AT(cmplx4_add_cpt, x + e)
HIROBA_CAPTURE_AT(cmplx4_sub_cpt, x - e)
HIROBA_CAPTURE_AT(cmplx4_mul_cpt, x* e)
HIROBA_CAPTURE_AT(cmplx4_div_cpt, x / e)
HIROBA_CAPTURE_AT(cmplx4_sub_cpt_rev, e - x)
HIROBA_CAPTURE_AT(cmplx4_div_cpt_rev, e / x)
void __kmpc_atomic_cmplx4_swp(Location*, int, Cmplx4* at, Cmplx4 e, Cmplx4* out) {
    *out = change(at, [e](Cmplx4) { return e; });
}

#define HIROBA_COMBINE(bytes)                                                             \
    void __kmpc_atomic_##bytes(Location*, int, void* at, void* right, Combine function) { \
        combine<bytes>(at, right, function);                                              \
    }
HIROBA_COMBINE(1)
HIROBA_COMBINE(2)
HIROBA_COMBINE(4)
HIROBA_COMBINE(8)
HIROBA_COMBINE(10)
HIROBA_COMBINE(16)
HIROBA_COMBINE(20)
HIROBA_COMBINE(32)

#define HIROBA_COMPARE(bytes, W)                                                                   \
    bool __kmpc_atomic_bool_##bytes##_cas(Location*, int, W* at, W expected, W wanted) {           \
        return swap_word(at, expected, wanted) == expected;                                        \
    }                                                                                              \
    W __kmpc_atomic_val_##bytes##_cas(Location*, int, W* at, W expected, W wanted) {               \
        return swap_word(at, expected, wanted);                                                    \
    }                                                                                              \
    bool __kmpc_atomic_bool_##bytes##_cas_cpt(Location*, int, W* at, W expected, W wanted,         \
                                              W* found) {                                          \
        const W before = swap_word(at, expected, wanted);                                          \
        if (before != expected) *found = before;                                                   \
        return before == expected;                                                                 \
    }                                                                                              \
    W __kmpc_atomic_val_##bytes##_cas_cpt(Location*, int, W* at, W expected, W wanted, W* found) { \
        const W before = swap_word(at, expected, wanted);                                          \
        *found = before == expected ? wanted : before;                                             \
        return before;                                                                             \
    }
// NOLINTEND(bugprone-macro-parentheses)
HIROBA_COMPARE(1, std::uint8_t)
HIROBA_COMPARE(2, std::uint16_t)
HIROBA_COMPARE(4, std::uint32_t)
HIROBA_COMPARE(8, std::uint64_t)

}  // extern "C"
