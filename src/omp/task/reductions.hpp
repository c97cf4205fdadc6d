// SPDX-License-Identifier: BSD-3-Clause
// Role: task reductions: each thread of the team has a private copy of every list item, where the
// tasks it executes work.
// Invariant: descriptors are the compiler's, in the program's memory, and so are the copies: any
// node reads them, after the acquire that a stolen task comes with. Words of a descriptor: 0 number
// of items, 1 bytes of one thread's copies, 2 their alignment, then where they are, 3 allocator,
// 4 next descriptor, 5 whether it is the first of its construct, 6 end of the copies; from 7 on
// three words an item: address, offset among a thread's copies, and one that is not used.
// Source: what gcc 12 emits (-fdump-tree-ompexp).
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

namespace hiroba::omp::reductions {

inline constexpr std::size_t items_at = 0, bytes_at = 1, copies_at = 2, next_at = 4, first_at = 5,
                             end_at = 6, item_words_at = 7, words_per_item = 3;

/// Makes zeroed copies for each descriptor of `data`'s construct; `outer` comes behind the last.
/// allocate(bytes, alignment) never fails.
template <class Allocate>
void allocate(std::uintptr_t* data, std::uintptr_t* outer, std::uint32_t threads,
              Allocate&& allocate) {
    for (std::uintptr_t* each = data;; each = reinterpret_cast<std::uintptr_t*>(each[next_at])) {
        const std::size_t bytes = each[bytes_at] * threads;
        void* const copies = allocate(bytes, each[copies_at]);
        std::memset(copies, 0, bytes);
        each[copies_at] = reinterpret_cast<std::uintptr_t>(copies);
        each[end_at] = each[copies_at] + bytes;
        each[first_at] = each == data;
        if (each[next_at] != 0) continue;
        each[next_at] = reinterpret_cast<std::uintptr_t>(outer);
        return;
    }
}

/// As allocate(), with the copies that another thread has made for the same construct.
void share(std::uintptr_t* data, std::uintptr_t* outer, const std::uintptr_t* made);

template <class Free>
void free(std::uintptr_t* data, Free&& free) {
    for (std::uintptr_t* each = data; each != nullptr && (each == data || each[first_at] == 0);
         each = reinterpret_cast<std::uintptr_t*>(each[next_at]))
        free(reinterpret_cast<void*>(each[copies_at]));
}

/// Replaces each of `pointers`, the address of an item or of any thread's copy of it, by that of
/// `thread`'s copy. The first `originals` items' own addresses are stored behind the last pointer,
/// where there is room for them. An item without a descriptor is fatal.
void remap(std::uintptr_t* data, std::uint32_t thread, std::span<void*> pointers,
           std::size_t originals);

}  // namespace hiroba::omp::reductions
