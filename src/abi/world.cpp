// SPDX-License-Identifier: BSD-3-Clause
#include "abi/world.hpp"

#include <atomic>

namespace hiroba::abi {

namespace {
constinit std::atomic<World*> current{nullptr};
}

World* world() noexcept {
    return current.load(std::memory_order_acquire);  // pairs with set_world()
}

void set_world(World* node) noexcept {
    // Release: pairs with the acquire in world(); a signal handler or thread sees a whole node.
    current.store(node, std::memory_order_release);
}

}  // namespace hiroba::abi
