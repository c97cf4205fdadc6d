// SPDX-License-Identifier: BSD-3-Clause
// Role: task reductions of clang's code, as descriptors of the runtime (omp/task/reductions.hpp):
// each thread of the team has a copy of every item, initialized by the thread that met the
// construct. Invariant: a descriptor and what the compiler said of its items lie in one block of
// global memory, which ends with the construct. Every copy is initialized before a task of the
// construct is made.
#include <cstring>

#include "abi/kmp/kmp.hpp"
#include "base/program_call.hpp"
#include "omp/task/reductions.hpp"

namespace hiroba::abi::kmp {
namespace {

/// kmp_taskred_input_t, clang 10 and later.
struct Item {
    void* shared;
    void* original;
    std::size_t bytes;
    void (*initialize)(void* copy, void* original);  ///< null: zeros
    void (*finish)(void* copy);
    void (*combine)(void* into, void* from);
    Unsigned flags;
};
/// kmp_task_red_input_t, before.
struct OldItem {
    void* shared;
    std::size_t bytes;
    void (*initialize)(void* copy);
    void (*finish)(void* copy);
    void (*combine)(void* into, void* from);
    Unsigned flags;
};

constexpr std::size_t copy_alignment = 64;
constexpr std::size_t up(std::size_t bytes, std::size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

/// Behind the descriptor's own words.
struct Details {
    std::size_t items = 0;
    Unsigned threads = 1;
    bool has_originals = true;
    Item* list() noexcept { return reinterpret_cast<Item*>(this + 1); }
};
constexpr std::size_t details_at = 3;  ///< a word of the descriptor that the runtime has no use for

Details& details_of(std::uintptr_t* descriptor) noexcept {
    return *reinterpret_cast<Details*>(descriptor[details_at]);
}

std::size_t bytes_of_copy(const Item* items, std::size_t count) noexcept {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) bytes += up(items[i].bytes, alignof(std::max_align_t));
    return up(bytes, copy_alignment);
}

/// Each item is known by two addresses, that of the variable and that of the original one.
std::uintptr_t* describe(const Item* items, std::size_t count, bool has_originals) {
    namespace words = omp::reductions;
    const std::size_t own_bytes =
        (words::item_words_at + 2 * count * words::words_per_item) * sizeof(std::uintptr_t);
    const std::size_t bytes = own_bytes + sizeof(Details) + count * sizeof(Item);
    auto* const descriptor =
        static_cast<std::uintptr_t*>(runtime().allocate_for_task(bytes, copy_alignment));
    std::memset(descriptor, 0, bytes);
    auto* const details =
        new (reinterpret_cast<std::byte*>(descriptor) + own_bytes) Details{count, 1, has_originals};
    details->threads = runtime().place().team_size;
    std::memcpy(details->list(), items, count * sizeof(Item));
    descriptor[words::items_at] = 2 * count;
    descriptor[words::bytes_at] = bytes_of_copy(items, count);
    descriptor[words::copies_at] = copy_alignment;
    descriptor[details_at] = key_of(details);
    std::uintptr_t* word = descriptor + words::item_words_at;
    std::size_t offset = 0;
    for (std::size_t i = 0; i < count; ++i) {
        for (const void* const known : {items[i].shared, items[i].original}) {
            word[0] = key_of(known);
            word[1] = offset;
            word += words::words_per_item;
        }
        offset += up(items[i].bytes, alignof(std::max_align_t));
    }
    return descriptor;
}

/// Calls visit(item, copy) for the copies of one thread.
template <class Visit>
void each_copy(std::uintptr_t* descriptor, Unsigned thread, Visit&& visit) {
    namespace words = omp::reductions;
    Details& details = details_of(descriptor);
    std::uintptr_t copy = descriptor[words::copies_at] + thread * descriptor[words::bytes_at];
    for (std::size_t i = 0; i < details.items; ++i) {
        const Item& item = details.list()[i];
        visit(item, reinterpret_cast<void*>(copy));
        copy += up(item.bytes, alignof(std::max_align_t));
    }
}

void initialize(std::uintptr_t* descriptor) {
    Details& details = details_of(descriptor);
    for (Unsigned thread = 0; thread < details.threads; ++thread)
        each_copy(descriptor, thread, [&](const Item& item, void* copy) {
            if (item.initialize == nullptr) return;  // They are zeroed.
            call_program(item.initialize, copy, details.has_originals ? item.original : nullptr);
        });
}

void combine(std::uintptr_t* descriptor, Unsigned thread) {
    each_copy(descriptor, thread, [](const Item& item, void* copy) {
        if (item.combine != nullptr) call_program(item.combine, item.shared, copy);
        if (item.finish != nullptr) call_program(item.finish, copy);
    });
}

void* start(const Item* items, Int count, bool has_originals) {
    std::uintptr_t* const descriptor =
        describe(items, static_cast<std::size_t>(count), has_originals);
    runtime().register_reductions(descriptor);
    initialize(descriptor);
    return descriptor;
}

/// All threads of a team share the copies.
void* start_shared(const Item* items, Int count, bool has_originals) {
    std::uintptr_t* const descriptor =
        describe(items, static_cast<std::size_t>(count), has_originals);
    runtime().start_shared_reductions(descriptor);
    if (runtime().place().thread == 0) initialize(descriptor);
    runtime().barrier();
    return descriptor;
}

void end_shared() {
    std::uintptr_t* const descriptor = runtime().task_reductions();
    runtime().taskgroup_end();
    runtime().barrier();
    const Unsigned thread = runtime().place().thread;
    combine(descriptor, thread);
    runtime().barrier();
    if (thread == 0) runtime().unregister_reductions(descriptor);
    runtime().free_for_task(descriptor);
}

std::vector<Item> modern(const OldItem* old, Int count) {
    std::vector<Item> items;
    items.reserve(static_cast<std::size_t>(count));
    for (Int i = 0; i < count; ++i)
        items.push_back(
            {old[i].shared, old[i].shared, old[i].bytes,
             reinterpret_cast<void (*)(void*, void*)>(reinterpret_cast<void*>(old[i].initialize)),
             old[i].finish, old[i].combine, old[i].flags});
    return items;
}

}  // namespace
}  // namespace hiroba::abi::kmp

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using namespace hiroba::abi::kmp;

extern "C" {

void* __kmpc_taskred_init(Int, Int count, Item* items) { return start(items, count, true); }
void* __kmpc_task_reduction_init(Int, Int count, OldItem* items) {
    return start(modern(items, count).data(), count, false);
}
void* __kmpc_taskred_modifier_init(Location*, Int, Int, Int count, Item* items) {
    return start_shared(items, count, true);
}
void* __kmpc_task_reduction_modifier_init(Location*, Int, Int, Int count, OldItem* items) {
    return start_shared(modern(items, count).data(), count, false);
}
void __kmpc_task_reduction_modifier_fini(Location*, Int, Int) {
    synchronizes_at(SyncKind::barrier, __builtin_return_address(0));
    end_shared();
}
void* __kmpc_task_reduction_get_th_data(Int, void*, void* item) {
    runtime().remap_reductions({&item, 1}, 0);
    return item;
}

void __kmpc_end_taskgroup(Location*, Int) {
    synchronizes_at(SyncKind::wait, __builtin_return_address(0));
    std::uintptr_t* const descriptor = runtime().group_reductions();
    runtime().taskgroup_end();
    if (descriptor == nullptr) return;
    for (Unsigned thread = 0; thread < details_of(descriptor).threads; ++thread)
        combine(descriptor, thread);
    runtime().unregister_reductions(descriptor);
    runtime().free_for_task(descriptor);
}

}  // extern "C"
