// SPDX-License-Identifier: BSD-3-Clause
// Role: the merge kernels for CPUs with AVX2: 64-byte lines as two vectors.
// Invariant: no other file is compiled for AVX2; merge.cpp calls these only where they run.
// AVX-512 was measured too and gains nothing here: hot blocks are bound by the load ports of
// 256-bit machines and cold ones by memory.
#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "dsm/memory/merge_kernels.hpp"

#define HIROBA_AVX2 __attribute__((target("avx2")))

namespace hiroba::dsm {
namespace {

constexpr std::size_t line_bytes = 64;

/// One line of 64 bytes.
struct Line {
    __m256i low, high;
};

HIROBA_AVX2 inline Line load(const std::byte* from) noexcept {
    const auto* vectors = reinterpret_cast<const __m256i*>(from);
    return {_mm256_load_si256(vectors), _mm256_load_si256(vectors + 1)};
}

/// 0xff in each byte that is equal.
HIROBA_AVX2 inline Line equal(const Line& a, const Line& b) noexcept {
    return {_mm256_cmpeq_epi8(a.low, b.low), _mm256_cmpeq_epi8(a.high, b.high)};
}

HIROBA_AVX2 inline std::uint64_t bits(const Line& line) noexcept {
    const auto low = static_cast<std::uint32_t>(_mm256_movemask_epi8(line.low));
    const auto high = static_cast<std::uint32_t>(_mm256_movemask_epi8(line.high));
    return low | static_cast<std::uint64_t>(high) << 32;
}

HIROBA_AVX2 MergeOutcome merge_avx2(const std::byte* ours, const std::byte* twin,
                                    const std::byte* home, std::byte* merged,
                                    std::size_t bytes) noexcept {
    MergeOutcome outcome;
    std::uint64_t foreign = 0;
    const std::size_t block = std::max(bytes, block_bytes_min);
    for (std::size_t i = 0; i < bytes; i += line_bytes) {
        const Line d = load(ours + i);
        const Line t = load(twin + i);
        const Line h = load(home + i);
        const Line kept = equal(d, t);
        const std::uint64_t here = ~bits(kept);
        const std::uint64_t there = ~bits(equal(h, t));
        if (here != 0) outcome.changed_lines |= line_at(i, block);
        foreign |= there;
        if ((here & there) != 0) [[unlikely]]
            note_double_changes(outcome, i, here & there, ~bits(equal(d, h)));

        auto* to = reinterpret_cast<__m256i*>(merged + i);
        _mm256_store_si256(to, _mm256_blendv_epi8(d.low, h.low, kept.low));
        _mm256_store_si256(to + 1, _mm256_blendv_epi8(d.high, h.high, kept.high));
    }
    outcome.changed = outcome.changed_lines != 0;
    outcome.foreign = foreign != 0;
    return outcome;
}

HIROBA_AVX2 bool differs_avx2(const std::byte* a, const std::byte* b, std::size_t bytes) noexcept {
    for (std::size_t i = 0; i < bytes; i += line_bytes) {
        const Line same = equal(load(a + i), load(b + i));
        if (_mm256_movemask_epi8(_mm256_and_si256(same.low, same.high)) != -1) return true;
    }
    return false;
}

HIROBA_AVX2 Lines copy_changes_avx2(std::byte* copy, const std::byte* live, std::size_t bytes,
                                    std::uint64_t* noted) noexcept {
    Lines lines = 0;
    const std::size_t block = std::max(bytes, block_bytes_min);
    for (std::size_t i = 0; i < bytes; i += line_bytes) {
        const Line now = load(live + i);
        const Line same = equal(now, load(copy + i));
        if (_mm256_movemask_epi8(_mm256_and_si256(same.low, same.high)) == -1) continue;
        if (noted != nullptr) noted[i / line_bytes] |= ~bits(same);
        auto* to = reinterpret_cast<__m256i*>(copy + i);
        _mm256_store_si256(to, now.low);
        _mm256_store_si256(to + 1, now.high);
        lines |= line_at(i, block);
    }
    return lines;
}

HIROBA_AVX2 void store_foreign_avx2(std::byte* live, const std::byte* seen, const std::byte* twin,
                                    const std::byte* home, std::size_t bytes) noexcept {
    for (std::size_t i = 0; i < bytes; i += line_bytes) {
        const Line t = load(twin + i);
        const std::uint64_t there = ~bits(equal(load(home + i), t));
        if (there == 0) continue;
        const std::uint64_t foreign = there & bits(equal(load(seen + i), t));
        if (foreign != 0) store_masked_line(live + i, home + i, foreign);
    }
}

HIROBA_AVX2 void note_changes_avx2(const std::byte* ours, const std::byte* twin, std::size_t bytes,
                                   std::uint64_t* noted) noexcept {
    for (std::size_t i = 0; i < bytes; i += line_bytes) {
        const std::uint64_t changed = ~bits(equal(load(ours + i), load(twin + i)));
        if (changed != 0) noted[i / line_bytes] |= changed;
    }
}

}  // namespace

constinit const MergeKernels avx2_kernels{
    "avx2", merge_avx2, differs_avx2, copy_changes_avx2, store_foreign_avx2, note_changes_avx2};

}  // namespace hiroba::dsm
