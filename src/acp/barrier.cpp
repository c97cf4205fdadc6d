// SPDX-License-Identifier: BSD-3-Clause
#include "acp/barrier.hpp"

namespace hiroba::acp {

void Barrier::wait(gas::Delegate& delegate) {
    const std::scoped_lock guard{one_at_a_time_};
    const std::uint64_t wanted = ++barriers_;
    const std::uint32_t nodes = endpoint_.nodes();
    std::uint32_t round = 0;
    for (std::uint64_t distance = 1; distance < nodes; distance *= 2, ++round) {
        const std::uint64_t ahead = (endpoint_.self().value + distance) % nodes;
        delegate.signal(NodeId{static_cast<std::uint32_t>(ahead)}, round);
        delegate.batcher().flush(gas::CommandBatcher::When::now);
        // Acquire, pairs with signalled(): what its sender wrote into this node before is seen.
        endpoint_.wait_until(
            [&] { return arrived_[round].load(std::memory_order_acquire) >= wanted; });
    }
}

bool Barrier::signalled(std::uint64_t round) noexcept {
    if (round >= rounds_max) return false;
    arrived_[round].fetch_add(1, std::memory_order_release);  // pairs with wait()
    return true;
}

}  // namespace hiroba::acp
