// SPDX-License-Identifier: BSD-3-Clause
// Role: __atomic_*_N for 1, 2, 4, 8 and 16 bytes, with libatomic's signatures.
// Invariant: each entry point is one call of atomically(). The assembly names keep the compiler
// from taking the definitions for its builtins of the same names.
#include "abi/atomic/global_atomic.hpp"

using hiroba::abi::atomically;
using hiroba::abi::read;
using hiroba::abi::swap_if;
using hiroba::abi::update;
using hiroba::abi::Word16;

// NOLINTBEGIN(bugprone-macro-parentheses): types and expressions with names of their own as
// arguments.
#define ENTRY(result, name, bytes, ...)                                            \
    extern "C" __attribute__((visibility("default")))                              \
    result hiroba_##name##_##bytes(__VA_ARGS__) asm("__atomic_" #name "_" #bytes); \
    extern "C" result hiroba_##name##_##bytes(__VA_ARGS__)

#define FETCH(Value, bytes, name, expression)                                                      \
    ENTRY(Value, fetch_##name, bytes, volatile void* at, Value value, int order) {                 \
        return atomically<Value>(at, order, [=](Value* word) {                                     \
            return update(word, [=](Value old) -> Value { return Value(expression); });            \
        });                                                                                        \
    }                                                                                              \
    ENTRY(Value, name##_fetch, bytes, volatile void* at, Value value, int order) {                 \
        return atomically<Value>(at, order, [=](Value* word) {                                     \
            const Value old = update(word, [=](Value old) -> Value { return Value(expression); }); \
            return Value(expression);                                                              \
        });                                                                                        \
    }

#define WORD(Value, bytes)                                                                       \
    ENTRY(Value, load, bytes, const volatile void* at, int order) {                              \
        return atomically<Value>(at, order, [](Value* word) { return read(word); });             \
    }                                                                                            \
    ENTRY(Value, exchange, bytes, volatile void* at, Value value, int order) {                   \
        return atomically<Value>(                                                                \
            at, order, [=](Value* word) { return update(word, [=](Value) { return value; }); }); \
    }                                                                                            \
    ENTRY(void, store, bytes, volatile void* at, Value value, int order) {                       \
        hiroba_exchange_##bytes(at, value, order);                                               \
    }                                                                                            \
    ENTRY(bool, compare_exchange, bytes, volatile void* at, void* expected, Value desired,       \
          int success, int) {                                                                    \
        auto* const wanted = static_cast<Value*>(expected);                                      \
        const Value old = *wanted;                                                               \
        const Value before = atomically<Value>(                                                  \
            at, success, [=](Value* word) { return swap_if(word, old, desired); });              \
        if (before == old) return true;                                                          \
        *wanted = before;                                                                        \
        return false;                                                                            \
    }                                                                                            \
    FETCH(Value, bytes, add, old + value)                                                        \
    FETCH(Value, bytes, sub, old - value)                                                        \
    FETCH(Value, bytes, and, old& value)                                                         \
    FETCH(Value, bytes, or, old | value)                                                         \
    FETCH(Value, bytes, xor, old ^ value)                                                        \
    FETCH(Value, bytes, nand, ~(old & value))
// NOLINTEND(bugprone-macro-parentheses)

WORD(std::uint8_t, 1)
WORD(std::uint16_t, 2)
WORD(std::uint32_t, 4)
WORD(std::uint64_t, 8)
WORD(Word16, 16)
