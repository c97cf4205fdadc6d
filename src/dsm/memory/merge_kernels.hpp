// SPDX-License-Identifier: BSD-3-Clause
// Role: the versions of the merge kernels and the choice between them, for merge.cpp and its tests.
// Invariant: all versions give the same bytes and the same outcome.
#pragma once

#include <bit>

#include "dsm/memory/merge.hpp"

namespace hiroba::dsm {

/// One version of everything merge.hpp promises.
struct MergeKernels {
    const char* name;
    decltype(&merge_block) merge;
    decltype(&dsm::differs) differs;
    decltype(&dsm::copy_changes) copy_changes;
    decltype(&dsm::store_foreign) store_foreign;
    decltype(&dsm::note_changes) note_changes;
};

extern const MergeKernels portable_kernels;
extern const MergeKernels avx2_kernels;  ///< callable only where the CPU has AVX2

/// The fastest version this CPU runs. Async-signal-safe.
const MergeKernels& best_kernels() noexcept;

inline constexpr std::size_t block_bytes_min = lines_of_block * 64;

/// The line in which the byte at `at` lies.
/// @param bytes  of the block: a power of two, block_bytes_min or more
constexpr Lines line_at(std::size_t at, std::size_t bytes) noexcept {
    return Lines{1} << (at >> std::countr_zero(bytes / lines_of_block));
}

/// Bytes changed by both sides in one line of 64, from masks with one bit for each byte.
/// `differing`: those where the two new values differ.
void note_double_changes(MergeOutcome& outcome, std::size_t line_offset, std::uint64_t both,
                         std::uint64_t differing) noexcept;

/// Stores the bytes of `from` whose bit in `mask` is set to `to`, and no other byte. Aligned
/// groups of 8, 4 or 2 whose bits are all set go as one store, so that a racing reader of such a
/// word sees it whole.
void store_masked_line(std::byte* to, const std::byte* from, std::uint64_t mask) noexcept;

}  // namespace hiroba::dsm
