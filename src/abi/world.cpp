// SPDX-License-Identifier: BSD-3-Clause
#include "abi/world.hpp"

#include <atomic>

#include "abi/libc/real.hpp"

namespace hiroba::abi {

namespace detail {
constinit std::atomic<World*> world_now{nullptr};
constinit std::atomic<bool> has_several_nodes{false};
}  // namespace detail

void set_world(World* node) noexcept {
    // Release: pairs with the acquire in world(); a signal handler or thread sees a whole node.
    detail::world_now.store(node, std::memory_order_release);
    detail::has_several_nodes.store(node->memory != nullptr, std::memory_order_release);
}

}  // namespace hiroba::abi
