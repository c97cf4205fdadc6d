// SPDX-License-Identifier: BSD-3-Clause
// Role: __atomic_load, store, exchange and compare_exchange for objects of any size.
// Invariant: an object is guarded by the job's lock of its address; lock and unlock acquire and
// release, which is at least what any order asks for. The object is never lock-free.
#include <cstring>

#include "abi/world.hpp"
#include "base/latch.hpp"
#include "base/thread_context.hpp"

using hiroba::Latch;
using hiroba::abi::world;

namespace {

/// Guards objects while the process is alone; by address.
constinit Latch alone[64];

template <class Body>
void guarded(const volatile void* object, Body body) noexcept {
    const auto key = reinterpret_cast<std::uintptr_t>(object);
    hiroba::abi::World* const node = world();
    if (node != nullptr && node->locks != nullptr &&
        node->memory->contains(const_cast<void*>(object))) {
        node->locks->lock(key);
        body();
        node->locks->unlock(key);
        return;
    }
    Latch& latch = alone[key / 64 % 64];
    latch.lock();
    body();
    latch.unlock();
}

}  // namespace

#define ENTRY(result, name, ...)                                     \
    extern "C" __attribute__((visibility("default")))                \
    result hiroba_atomic_##name(__VA_ARGS__) asm("__atomic_" #name); \
    extern "C" result hiroba_atomic_##name(__VA_ARGS__)

ENTRY(void, load, std::size_t bytes, const void* object, void* result, int) {
    guarded(object, [=] { std::memcpy(result, object, bytes); });
}

ENTRY(void, store, std::size_t bytes, void* object, const void* value, int) {
    guarded(object, [=] { std::memcpy(object, value, bytes); });
}

ENTRY(void, exchange, std::size_t bytes, void* object, const void* value, void* result, int) {
    guarded(object, [=] {
        // `result` may be `value`.
        auto* const at = static_cast<unsigned char*>(object);
        const auto* const from = static_cast<const unsigned char*>(value);
        auto* const to = static_cast<unsigned char*>(result);
        for (std::size_t i = 0; i < bytes; ++i) {
            const unsigned char old = at[i];
            at[i] = from[i];
            to[i] = old;
        }
    });
}

ENTRY(bool, compare_exchange, std::size_t bytes, void* object, void* expected, const void* desired,
      int, int) {
    bool equal = false;
    guarded(object, [=, &equal] {
        equal = std::memcmp(object, expected, bytes) == 0;
        if (equal) {
            std::memcpy(object, desired, bytes);
        } else {
            std::memcpy(expected, object, bytes);
        }
    });
    return equal;
}
