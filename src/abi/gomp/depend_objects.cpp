// SPDX-License-Identifier: BSD-3-Clause
// Role: tells gcc's depend objects, each an address and a kind, from clang's, each a pointer behind
// the first of the items that it allocates, which has their number.
// Invariant: what may not be mapped is not read. gcc's second word is a kind; clang's would be the
// next object, which is a pointer, or lies behind the array where there is no other: then the first
// is looked at, which clang's code has allocated by a call of ours.
#include "abi/gomp/depend_objects.hpp"

#include "abi/gomp/marked_blocks.hpp"
#include "abi/gomp/task_clauses.hpp"
#include "abi/kmp/task_block.hpp"

namespace hiroba::abi {

namespace {

constexpr std::size_t words_of_gcc = 2;

/// clang's allocation, of which the object is the second item.
kmp::DependItem* items_of_clang(void* object) noexcept {
    return static_cast<kmp::DependItem*>(object) - 1;
}

}  // namespace

void wait_for_objects(int count, void** objects) noexcept {
    if (count <= 0 || objects == nullptr) return;
    const bool by_clang = has_mark(items_of_clang(objects[0]), BlockMark::by_clangs_code);
    std::vector<omp::Dependence> dependences;
    for (int i = 0; i < count; ++i) {
        if (by_clang) {
            const kmp::DependItem* const items = items_of_clang(objects[i]);
            append(dependences, static_cast<kmp::Int>(items->address), items + 1);
        } else {
            dependences.push_back(
                read_depend_object(objects + static_cast<std::size_t>(i) * words_of_gcc));
        }
    }
    runtime().task_wait_for(std::move(dependences));
}

}  // namespace hiroba::abi
