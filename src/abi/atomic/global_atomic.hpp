// SPDX-License-Identifier: BSD-3-Clause
// Role: one atomic operation on a word of the program, wherever it lies, in the memory order asked
// for: what the __atomic_* entry points are made of (programs built with -fno-inline-atomics).
// Invariant: on global memory the operation runs inside the block's critical section; elsewhere it
// is the processor's own. An order that releases flushes before, one that acquires flushes after.
#pragma once

#include <cstdint>
#include <type_traits>

#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "base/thread_context.hpp"

namespace hiroba::abi {

using Word16 = unsigned __int128;

inline bool releases(int order) noexcept {
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}
inline bool acquires(int order) noexcept {
    return order == __ATOMIC_CONSUME || order == __ATOMIC_ACQUIRE || order == __ATOMIC_ACQ_REL ||
           order == __ATOMIC_SEQ_CST;
}

/// Stores `desired` if `*word` is `expected`; returns the value before.
template <class Value>
Value swap_if(Value* word, Value expected, Value desired) noexcept {
    if constexpr (sizeof(Value) == 16) {
        // The builtin of this size is a call to the function that is being defined here.
        auto low = static_cast<std::uint64_t>(expected);
        auto high = static_cast<std::uint64_t>(expected >> 64);
        asm volatile("lock cmpxchg16b %[word]"
                     : [word] "+m"(*word), "+a"(low), "+d"(high)
                     : "b"(static_cast<std::uint64_t>(desired)),
                       "c"(static_cast<std::uint64_t>(desired >> 64))
                     : "cc", "memory");
        return Value{high} << 64 | low;
    } else {
        __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
        return expected;
    }
}

template <class Value>
Value read(Value* word) noexcept {
    if constexpr (sizeof(Value) == 16) {
        return swap_if(word, Value{0}, Value{0});
    } else {
        return __atomic_load_n(word, __ATOMIC_SEQ_CST);
    }
}

/// Replaces `*word` by `next(*word)`; returns the value before.
template <class Value, class Next>
Value update(Value* word, Next next) noexcept {
    Value seen = read(word);
    for (;;) {
        const Value before = swap_if(word, seen, static_cast<Value>(next(seen)));
        if (before == seen) return before;
        seen = before;
    }
}

/// Runs `operation(word)` as one atomic operation on [address, + sizeof(Value)).
template <class Value, class Operation>
auto atomically(const volatile void* address, int order, Operation operation) noexcept {
    auto* word = static_cast<Value*>(const_cast<void*>(address));
    World* const node = world();
    if (node == nullptr || node->memory == nullptr || !node->memory->contains(word)) {
        return operation(word);
    }
    dsm::SharedMemory& memory = *node->memory;
    const auto at = reinterpret_cast<std::uintptr_t>(word);
    if (sizeof(Value) == 16 && at % sizeof(Value) != 0)
        die(exit_environment, "an atomic on 16 bytes at %p: align the variable to its size",
            static_cast<void*>(word));
    std::invoke_result_t<Operation, Value*> result{};
    const std::size_t block_bytes = memory.map().shape().block_bytes;
    if (at / block_bytes != (at + sizeof(Value) - 1) / block_bytes) {
        node->locks->lock(at);
        result = operation(word);
        node->locks->unlock(at);
        return result;
    }
    on_runtime_stack([&] {
        if (releases(order)) memory.flush();
        const bool entered = memory.enter_atomic(word, sizeof(Value));
        result = operation(word);
        if (entered) memory.leave_atomic(word, sizeof(Value));
        if (acquires(order)) memory.flush();
    });
    return result;
}

}  // namespace hiroba::abi
