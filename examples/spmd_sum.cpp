// SPDX-License-Identifier: BSD-3-Clause
// One program on every node, on the C++ face of the shared memory.
// Run: hiroba run --spmd -n 4 build/examples/spmd_sum
// Each node fills its part of a shared array; after a barrier each sums all of it, and all add what
// they found to one shared word, and once more by a reduction.
#include <cstdio>
#include <functional>
#include <string>

#include "hiroba/dsm.hpp"

int main() {
    constexpr std::size_t per_node = 100'000;
    std::string why;
    const auto memory = hiroba::SharedMemory::open(&why);
    if (memory == nullptr) {
        std::fprintf(stderr, "%s\n", why.c_str());
        return 78;
    }
    const std::size_t count = per_node * memory->nodes();

    // count numbers and one word more
    auto* const array = memory->allocate_together<std::uint64_t>(count + 1);
    if (array == nullptr) return 1;

    const std::size_t first = per_node * memory->node();
    for (std::size_t i = first; i < first + per_node; ++i) array[i] = i;
    memory->barrier();

    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += array[i];
    hiroba::AtomicWord{*memory, array + count}.fetch_add(sum);
    const std::uint64_t reduced = memory->all_reduce(sum, std::plus<>{});

    const std::uint64_t right = memory->nodes() * (count * (count - 1) / 2);
    const bool successful = array[count] == right && reduced == right;
    if (memory->node() == 0) {
        std::printf("spmd_sum: %u nodes, total %lu: VERIFICATION %s\n", memory->nodes(),
                    array[count], successful ? "SUCCESSFUL" : "FAILED");
    }
    memory->barrier();
    return successful ? 0 : 1;
}
