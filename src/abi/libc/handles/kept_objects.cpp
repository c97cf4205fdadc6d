// SPDX-License-Identifier: BSD-3-Clause
// How node 0 comes by the block before its first region: whoever needs it first makes it, main
// always. The other nodes have threads of the program only once they have been told of it.
#include "abi/libc/handles/kept_objects.hpp"

#include <atomic>
#include <mutex>
#include <new>

#include "abi/libc/sync/sync_objects.hpp"
#include "abi/world.hpp"
#include "base/bytes.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"

namespace hiroba::abi {
namespace {

constinit std::atomic<KeptObjects*> kept{nullptr};
constinit Latch making;

}  // namespace

KeptObjects* publish_kept_objects() noexcept {
    KeptObjects* objects = kept.load(std::memory_order_acquire);  // pairs with the store below
    if (objects != nullptr) return objects;
    const std::scoped_lock guard{making};
    objects = kept.load(std::memory_order_relaxed);
    if (objects != nullptr) return objects;
    bool zeroed = false;
    void* const room = world()->heap->allocate(page_bytes, page_bytes, &zeroed);
    if (room == nullptr) {
        die(exit_environment, "no room for %lu bytes of what libc keeps: set HIROBA_HEAP",
            page_bytes);
    }
    objects = new (room) KeptObjects{};
    kept.store(objects, std::memory_order_release);
    return objects;
}

void adopt_kept_objects(KeptObjects* published) noexcept {
    kept.store(published, std::memory_order_release);
}

KeptObjectsGuard::KeptObjectsGuard() noexcept : objects_(publish_kept_objects()) {
    world()->sync->lock_mutex(key_of(objects_), dsm::MutexType::normal, {});
}

KeptObjectsGuard::~KeptObjectsGuard() {
    world()->sync->unlock_mutex(key_of(objects_), dsm::MutexType::normal);
}

}  // namespace hiroba::abi
