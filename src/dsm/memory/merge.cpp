// SPDX-License-Identifier: BSD-3-Clause
// Role: the portable merge kernels, eight bytes at a time, and the choice of a version.
// Invariant: the choice is a constant of the machine; it is kept in one relaxed atomic because a
// fault handler may be the first to need it.
// How: a difference of two words is turned into one bit for each byte that differs, so that lines
// of 64 bytes become masks of 64 bits and every rule of merge.hpp one line of mask arithmetic.
#include "dsm/memory/merge.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "dsm/memory/merge_kernels.hpp"

namespace hiroba::dsm {
namespace {

constexpr std::size_t line_bytes = 64;
constexpr std::uint64_t low_seven = 0x7f7f'7f7f'7f7f'7f7f;

std::uint64_t word_at(const std::byte* from) noexcept {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof word);
    return word;
}

/// 0x80 in each byte of `word` that is not zero.
constexpr std::uint64_t nonzero_bytes(std::uint64_t word) noexcept {
    return (((word & low_seven) + low_seven) | word) & ~low_seven;
}

/// Each 0x80 widened to 0xff.
constexpr std::uint64_t widened(std::uint64_t tops) noexcept { return (tops >> 7) * 0xff; }

/// Each 0x80 gathered to one bit, lowest byte first.
constexpr std::uint64_t gathered(std::uint64_t tops) noexcept {
    return ((tops >> 7) * 0x0102'0408'1020'4080) >> 56;
}

MergeOutcome merge_portable(const std::byte* ours, const std::byte* twin, const std::byte* home,
                            std::byte* merged, std::size_t bytes) noexcept {
    MergeOutcome outcome;
    for (std::size_t line = 0; line < bytes; line += line_bytes) {
        std::uint64_t both = 0;
        std::uint64_t differing = 0;
        bool changed = false;
        for (std::size_t i = 0; i < line_bytes; i += 8) {
            const std::uint64_t our_word = word_at(ours + line + i);
            const std::uint64_t twin_word = word_at(twin + line + i);
            const std::uint64_t home_word = word_at(home + line + i);

            const std::uint64_t here = nonzero_bytes(our_word ^ twin_word);
            const std::uint64_t there = nonzero_bytes(home_word ^ twin_word);
            changed |= here != 0;
            outcome.foreign |= there != 0;
            both |= gathered(here & there) << i;
            differing |= gathered(nonzero_bytes(our_word ^ home_word)) << i;

            const std::uint64_t mask = widened(here);
            const std::uint64_t result = (our_word & mask) | (home_word & ~mask);
            std::memcpy(merged + line + i, &result, sizeof result);
        }
        if (both != 0) [[unlikely]]
            note_double_changes(outcome, line, both, differing);
        if (changed) outcome.changed_lines |= line_at(line, std::max(bytes, block_bytes_min));
    }
    outcome.changed = outcome.changed_lines != 0;
    return outcome;
}

bool differs_portable(const std::byte* a, const std::byte* b, std::size_t bytes) noexcept {
    return std::memcmp(a, b, bytes) != 0;
}

Lines copy_changes_portable(std::byte* copy, const std::byte* live, std::size_t bytes,
                            std::uint64_t* noted) noexcept {
    Lines lines = 0;
    for (std::size_t i = 0; i < bytes; i += 8) {
        // Relaxed: only that it is one load, so that what is compared is what is stored.
        const std::uint64_t word =
            __atomic_load_n(reinterpret_cast<const std::uint64_t*>(live + i), __ATOMIC_RELAXED);
        const std::uint64_t changed = nonzero_bytes(word ^ word_at(copy + i));
        if (changed == 0) continue;
        if (noted != nullptr) noted[i / line_bytes] |= gathered(changed) << (i % line_bytes);
        std::memcpy(copy + i, &word, sizeof word);
        lines |= line_at(i, std::max(bytes, block_bytes_min));
    }
    return lines;
}

void note_changes_portable(const std::byte* ours, const std::byte* twin, std::size_t bytes,
                           std::uint64_t* noted) noexcept {
    for (std::size_t i = 0; i < bytes; i += 8) {
        const std::uint64_t changed = nonzero_bytes(word_at(ours + i) ^ word_at(twin + i));
        if (changed != 0) noted[i / line_bytes] |= gathered(changed) << (i % line_bytes);
    }
}

void store_foreign_portable(std::byte* live, const std::byte* seen, const std::byte* twin,
                            const std::byte* home, std::size_t bytes) noexcept {
    for (std::size_t line = 0; line < bytes; line += line_bytes) {
        std::uint64_t foreign = 0;
        for (std::size_t i = 0; i < line_bytes; i += 8) {
            const std::uint64_t twin_word = word_at(twin + line + i);
            const std::uint64_t there = nonzero_bytes(word_at(home + line + i) ^ twin_word);
            const std::uint64_t here = nonzero_bytes(word_at(seen + line + i) ^ twin_word);
            foreign |= gathered(there & ~here) << i;
        }
        if (foreign != 0) store_masked_line(live + line, home + line, foreign);
    }
}

template <class Unit>
void store_unit(std::byte* to, const std::byte* from) noexcept {
    Unit unit;
    std::memcpy(&unit, from, sizeof unit);
    // Relaxed: the program's own synchronization orders it; atomic so that it stays one store.
    __atomic_store_n(reinterpret_cast<Unit*>(to), unit, __ATOMIC_RELAXED);
}

void store_masked_word(std::byte* to, const std::byte* from, unsigned mask) noexcept {
    if (mask == 0xff) return store_unit<std::uint64_t>(to, from);
    for (unsigned i = 0; i < 8; i += 4, mask >>= 4) {
        if ((mask & 0xf) == 0xf) {
            store_unit<std::uint32_t>(to + i, from + i);
            continue;
        }
        for (unsigned j = i, pair = mask & 0xf; j < i + 4; j += 2, pair >>= 2) {
            if ((pair & 3) == 3) store_unit<std::uint16_t>(to + j, from + j);
            if ((pair & 3) == 1) store_unit<std::uint8_t>(to + j, from + j);
            if ((pair & 3) == 2) store_unit<std::uint8_t>(to + j + 1, from + j + 1);
        }
    }
}

constinit std::atomic<const MergeKernels*> chosen{nullptr};

}  // namespace

constinit const MergeKernels portable_kernels{"portable",
                                              merge_portable,
                                              differs_portable,
                                              copy_changes_portable,
                                              store_foreign_portable,
                                              note_changes_portable};

void note_double_changes(MergeOutcome& outcome, std::size_t line_offset, std::uint64_t both,
                         std::uint64_t differing) noexcept {
    const auto first = [line_offset](std::uint64_t mask) {
        return static_cast<std::uint32_t>(line_offset) +
               static_cast<std::uint32_t>(std::countr_zero(mask));
    };
    const std::uint64_t raced = both & differing;
    const std::uint64_t same = both & ~differing;
    if (raced != 0 && outcome.raced_bytes == 0) outcome.raced_at = first(raced);
    if (same != 0 && outcome.same_value_bytes == 0) outcome.same_value_at = first(same);
    outcome.raced_bytes += static_cast<std::uint32_t>(std::popcount(raced));
    outcome.same_value_bytes += static_cast<std::uint32_t>(std::popcount(same));
}

void store_masked_line(std::byte* to, const std::byte* from, std::uint64_t mask) noexcept {
    for (; mask != 0; mask >>= 8, to += 8, from += 8)
        if ((mask & 0xff) != 0) store_masked_word(to, from, static_cast<unsigned>(mask & 0xff));
}

const MergeKernels& best_kernels() noexcept {
    // Relaxed: both tables are constants; threads that meet here choose alike.
    const MergeKernels* kernels = chosen.load(std::memory_order_relaxed);
    if (kernels == nullptr) [[unlikely]] {
        __builtin_cpu_init();
        kernels = __builtin_cpu_supports("avx2") ? &avx2_kernels : &portable_kernels;
        chosen.store(kernels, std::memory_order_relaxed);
    }
    return *kernels;
}

MergeOutcome merge_block(const std::byte* ours, const std::byte* twin, const std::byte* home,
                         std::byte* merged, std::size_t bytes) noexcept {
    return best_kernels().merge(ours, twin, home, merged, bytes);
}

Lines copy_changes(std::byte* copy, const std::byte* live, std::size_t bytes,
                   std::uint64_t* noted) noexcept {
    return best_kernels().copy_changes(copy, live, bytes, noted);
}

void note_changes(const std::byte* ours, const std::byte* twin, std::size_t bytes,
                  std::uint64_t* noted) noexcept {
    best_kernels().note_changes(ours, twin, bytes, noted);
}

bool differs(const std::byte* a, const std::byte* b, std::size_t bytes) noexcept {
    return best_kernels().differs(a, b, bytes);
}

void store_foreign(std::byte* live, const std::byte* seen, const std::byte* twin,
                   const std::byte* home, std::size_t bytes) noexcept {
    best_kernels().store_foreign(live, seen, twin, home, bytes);
}

RacedRun next_race(const std::byte* ours, const std::byte* twin, const std::byte* home,
                   std::uint32_t from, std::uint32_t bytes) noexcept {
    constexpr std::uint32_t gap_max = 4;
    const auto raced = [&](std::uint32_t i) { return ours[i] != twin[i] && home[i] != twin[i]; };
    std::uint32_t at = from;
    while (at < bytes && !raced(at)) ++at;
    if (at == bytes) return {};
    RacedRun run{at, 1, ours[at] == home[at]};
    for (std::uint32_t i = at + 1; i < bytes && i < run.at + run.bytes + gap_max; ++i) {
        if (!raced(i)) continue;
        run.bytes = i + 1 - at;
        run.same_value &= ours[i] == home[i];
    }
    return run;
}

}  // namespace hiroba::dsm
