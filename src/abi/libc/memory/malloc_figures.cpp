// SPDX-License-Identifier: BSD-3-Clause
// Role: mallinfo() and its kin: what the program has in use, over all nodes. libc would tell of its
// own heap, where the program has nothing.
// Invariant: whole pages in use; what a node keeps ready in them for reuse counts as used.
#include "abi/libc/memory/malloc_figures.hpp"

#include <malloc.h>

#include <algorithm>
#include <cstddef>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/files/remote_files.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"
#include "abi/world.hpp"

HIROBA_REAL_OF_LIBC(mallinfo2);

namespace hiroba::abi {

std::int64_t bytes_used_here() noexcept {
    const World& node = *world();
    const std::uint64_t arena = node.map->shape().heap_bytes;
    return static_cast<std::int64_t>(arena -
                                     std::min<std::uint64_t>(arena, node.heap->bytes_free()));
}

namespace {

struct mallinfo2 figures() noexcept {
    const World& node = *world();
    std::int64_t used = bytes_used_here();
    for (std::uint32_t rank = 0; rank < node.job.nodes; ++rank) {
        if (rank == node.job.self.value) continue;
        used += node.files->call(NodeId{rank}, static_cast<std::int64_t>(HeapCall::bytes_used), {},
                                 -1, {}, {});
    }
    struct mallinfo2 figures {};
    figures.arena = static_cast<std::size_t>(used);
    figures.uordblks = static_cast<std::size_t>(used);
    return figures;
}

struct mallinfo2 figures_for(const void* return_address) noexcept {
    return spans_nodes() && is_for_program(return_address) ? figures() : real_mallinfo2();
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

struct mallinfo2 mallinfo2() noexcept {
    return figures_for(__builtin_return_address(0));
}

/// The figures in numbers too small for what there is, as libc has them.
struct mallinfo mallinfo() noexcept {
    const struct mallinfo2 wide = figures_for(__builtin_return_address(0));
    struct mallinfo narrow {};
    narrow.arena = static_cast<int>(wide.arena);
    narrow.ordblks = static_cast<int>(wide.ordblks);
    narrow.hblks = static_cast<int>(wide.hblks);
    narrow.hblkhd = static_cast<int>(wide.hblkhd);
    narrow.fsmblks = static_cast<int>(wide.fsmblks);
    narrow.uordblks = static_cast<int>(wide.uordblks);
    narrow.fordblks = static_cast<int>(wide.fordblks);
    narrow.keepcost = static_cast<int>(wide.keepcost);
    return narrow;
}

}  // extern "C"
