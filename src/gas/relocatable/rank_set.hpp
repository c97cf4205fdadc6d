// SPDX-License-Identifier: BSD-3-Clause
// Role: sets of the job's ranks: those that have metadata of a page, that are to be woken, that
// have died.
// Invariant: a set has a bit for each rank there may be; what travels and what directory nodes keep
// has only the words that the job's ranks need (SpaceShape::sharer_words()).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace hiroba::gas {

inline constexpr std::uint32_t space_nodes_max = 1024;  ///< ranks are 10 bits of a page's word
inline constexpr std::uint32_t rank_words_max = space_nodes_max / 64;

constexpr std::uint32_t rank_word(std::uint32_t rank) noexcept { return rank / 64; }
constexpr std::uint64_t rank_bit(std::uint32_t rank) noexcept {
    return std::uint64_t{1} << (rank % 64);
}

/// A value; one thread at a time.
class RankSet {
public:
    constexpr RankSet() noexcept = default;
    static constexpr RankSet of(std::uint32_t rank) noexcept {
        RankSet set;
        set.add(rank);
        return set;
    }
    constexpr void add(std::uint32_t rank) noexcept { words_[rank_word(rank)] |= rank_bit(rank); }
    constexpr bool contains(std::uint32_t rank) const noexcept {
        return (words_[rank_word(rank)] & rank_bit(rank)) != 0;
    }
    constexpr RankSet& operator|=(const RankSet& other) noexcept {
        for (std::uint32_t i = 0; i < rank_words_max; ++i) words_[i] |= other.words_[i];
        return *this;
    }
    /// Ranks 64 * index to 64 * index + 63, by bit.
    constexpr std::uint64_t& word(std::uint32_t index) noexcept { return words_[index]; }
    constexpr std::uint64_t word(std::uint32_t index) const noexcept { return words_[index]; }

private:
    std::array<std::uint64_t, rank_words_max> words_{};
};

/// Ranks that several threads add to and ask for.
class SharedRankSet {
public:
    void add(std::uint32_t rank) noexcept {
        const std::uint64_t bit = rank_bit(rank);
        if ((words_[rank_word(rank)].fetch_or(bit) & bit) == 0) count_.fetch_add(1);
    }
    bool contains(std::uint32_t rank) const noexcept {
        return (words_[rank_word(rank)].load() & rank_bit(rank)) != 0;
    }
    /// How many there are; perhaps not yet one that is being added.
    std::uint32_t count() const noexcept { return count_.load(); }
    /// While no thread adds.
    void clear() noexcept {
        for (std::atomic<std::uint64_t>& word : words_) word.store(0);
        count_.store(0);
    }

private:
    std::array<std::atomic<std::uint64_t>, rank_words_max> words_{};
    std::atomic<std::uint32_t> count_{0};
};

}  // namespace hiroba::gas
