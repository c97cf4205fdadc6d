// SPDX-License-Identifier: BSD-3-Clause
// Role: a set of small numbers that gives its smallest member in a few instructions.
// Invariant: a bit of a level says whether the 64-bit word below it is non-zero; level 0 holds the
// members. Memory for the whole universe is reserved, touched only where members are.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "base/sparse_array.hpp"

namespace hiroba::dsm {

/// Thread: one at a time.
class IndexSet {
public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    /// A set over the numbers below `universe`.
    static Result<IndexSet> create(std::uint32_t universe) {
        IndexSet set;
        std::size_t words = 0;
        std::size_t count = universe;
        do {
            count = (count + 63) / 64;
            set.level_start_[set.levels_++] = static_cast<std::uint32_t>(words);
            words += count;
        } while (count > 1);
        auto bits = SparseArray<std::uint64_t>::reserve(words);
        if (!bits) return bits.error();
        set.bits_ = std::move(*bits);
        return set;
    }

    void insert(std::uint32_t member) noexcept {
        for (std::uint32_t level = 0; level < levels_; ++level, member /= 64) {
            std::uint64_t& word = bits_[level_start_[level] + member / 64];
            const bool was_empty = word == 0;
            word |= std::uint64_t{1} << member % 64;
            if (!was_empty) return;
        }
    }
    void erase(std::uint32_t member) noexcept {
        for (std::uint32_t level = 0; level < levels_; ++level, member /= 64) {
            std::uint64_t& word = bits_[level_start_[level] + member / 64];
            word &= ~(std::uint64_t{1} << member % 64);
            if (word != 0) return;
        }
    }
    /// The smallest member, or `none`.
    std::uint32_t first() const noexcept {
        std::uint32_t member = 0;
        for (std::uint32_t level = levels_; level-- > 0;) {
            const std::uint64_t word = bits_[level_start_[level] + member];
            if (word == 0) return none;
            member = member * 64 + static_cast<std::uint32_t>(std::countr_zero(word));
        }
        return member;
    }

private:
    std::array<std::uint32_t, 6> level_start_{};
    std::uint32_t levels_ = 0;
    SparseArray<std::uint64_t> bits_;
};

}  // namespace hiroba::dsm
