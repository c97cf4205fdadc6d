// SPDX-License-Identifier: BSD-3-Clause
// Role: the merge kernels: byte-wise three-way merge of blocks.
// Invariant: a byte counts as changed iff it differs from the twin; nothing is ever invented.
// All pointers are 64-byte aligned; `bytes` is a multiple of 64. Async-signal-safe.
// Why by byte: docs/decisions/changes-are-bytes.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hiroba::dsm {

/// Lines of a block, one bit each: 64 of equal length, which is a multiple of 64 bytes.
using Lines = std::uint64_t;
inline constexpr std::size_t lines_of_block = 64;
inline constexpr Lines all_lines = ~Lines{0};

/// What a merge saw. `raced_*` describe bytes that both this node and another had changed.
struct MergeOutcome {
    bool changed = false;                ///< some byte of ours differed from the twin
    Lines changed_lines = 0;             ///< in which such bytes lie; of a whole block
    bool foreign = false;                ///< some byte of home differed from the twin
    std::uint32_t raced_bytes = 0;       ///< changed by both, to different values
    std::uint32_t raced_at = 0;          ///< offset of the first of them
    std::uint32_t same_value_bytes = 0;  ///< changed by both to the same value
    std::uint32_t same_value_at = 0;
};

/// merged[i] = ours[i] where ours[i] != twin[i], else home[i]. `merged` may be `home`.
/// Source: the paper's table 1, by byte and masked instead of XOR.
MergeOutcome merge_block(const std::byte* ours, const std::byte* twin, const std::byte* home,
                         std::byte* merged, std::size_t bytes) noexcept;

/// True when any byte differs.
bool differs(const std::byte* a, const std::byte* b, std::size_t bytes) noexcept;

/// Makes `copy` equal to `live`, which the program may be writing: each line of 64 bytes is read
/// once, and stored only where it differs. Returns the lines that differed.
/// @param bytes  of a whole block
/// @param noted  nullptr, or a word for each line, one bit a byte: those of bytes that differed are
///               set, the others stay as they are
Lines copy_changes(std::byte* copy, const std::byte* live, std::size_t bytes,
                   std::uint64_t* noted) noexcept;

/// Sets in `noted`, as copy_changes() does, the bits of the bytes in which the blocks differ.
void note_changes(const std::byte* ours, const std::byte* twin, std::size_t bytes,
                  std::uint64_t* noted) noexcept;

/// Stores into the live copy the bytes that others changed and this node did not:
/// live[i] := home[i] where home[i] != twin[i] and seen[i] == twin[i]. Other bytes, even in the
/// same word, may be written by the program at the same moment and are never stored; aligned words
/// of which every byte is due are stored whole. `seen` is a snapshot of `live`.
void store_foreign(std::byte* live, const std::byte* seen, const std::byte* twin,
                   const std::byte* home, std::size_t bytes) noexcept;

/// Neighbouring bytes that both this node and another had changed.
struct RacedRun {
    std::uint32_t at = 0;
    std::uint32_t bytes = 0;
    bool same_value = false;  ///< to the same values
};

/// Finds the raced runs of a block in ascending order, from offset `from` on. Bytes less than a
/// word of 4 apart are one run, for a number's own bytes need not all differ.
/// @return a run of 0 bytes when there is none
RacedRun next_race(const std::byte* ours, const std::byte* twin, const std::byte* home,
                   std::uint32_t from, std::uint32_t bytes) noexcept;

}  // namespace hiroba::dsm
