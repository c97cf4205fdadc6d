// SPDX-License-Identifier: BSD-3-Clause
#include "abi/space_shape.hpp"

#include <atomic>

#include "base/bytes.hpp"
#include "base/settings.hpp"
#include "omp/process/stack_sizes.hpp"

namespace hiroba::abi {

namespace {
/// A multiple of every block size: addresses before the engine is chosen are those after it.
constexpr std::size_t part_bytes = std::size_t{2} << 20;
}  // namespace

Result<dsm::SpaceShape> space_shape(std::uint32_t nodes, std::uint32_t threads_per_node) {
    const auto stacks = omp::stack_sizes(threads_per_node);
    if (!stacks) return stacks.error();
    // What the launcher has chosen is taken out of the program's environment behind the first call.
    static constinit std::atomic<std::uint64_t> heap_bytes{0};
    if (heap_bytes.load(std::memory_order_relaxed) == 0) {
        const auto heap = setting_number("HIROBA_HEAP");
        if (!heap) return heap.error();
        heap_bytes.store(*heap, std::memory_order_relaxed);
    }

    dsm::SpaceShape shape;
    shape.nodes = nodes;
    shape.threads_per_node = stacks->per_node;
    shape.stack_bytes = stacks->bytes;
    shape.heap_bytes = round_up(heap_bytes.load(std::memory_order_relaxed), part_bytes);
    return shape;
}

}  // namespace hiroba::abi
