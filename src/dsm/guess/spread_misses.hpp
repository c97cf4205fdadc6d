// SPDX-License-Identifier: BSD-3-Clause
// Role: where misses lie about in no order, as of lookups in a table: once so many of a part's
// blocks were missed one by one, its others are brought with the next
// (docs/decisions/spread-misses.md). How many is learned: a sample is left out of each part that is
// brought. If it is missed, too, the others were worth it; if others write the part before, not.
// Invariant: only a guess, as ReadAhead; threads of a node share it and may spoil each other's.
// Nothing allocates.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "dsm/protocol/signature.hpp"

namespace hiroba::dsm {

/// Thread: any; async-signal-safe.
class SpreadMisses {
public:
    static constexpr std::uint32_t part_blocks = 64;
    static constexpr std::uint32_t wanted_min = 4;   ///< misses of a part before it is brought
    static constexpr std::uint32_t wanted_max = 32;  ///< where most samples were not
    static constexpr int score_max = 16;

    static constexpr BlockId begin_of(BlockId block) { return block - block % part_blocks; }
    /// The block of the part that is left out of what is brought along with `block`.
    static constexpr BlockId sample_with(BlockId block) {
        return begin_of(block) + (block * 0x9E37'79B1u >> 26);
    }

    /// Notes a miss that no other came right before. True: the rest of its part is to come.
    bool missed(BlockId block) noexcept {
        std::atomic<std::uint64_t>& place = place_of(block);
        Part part = Part::decode(place.load(std::memory_order_relaxed));
        if (part.number != block / part_blocks) part = {block / part_blocks, 0, no_sample};
        if (part.sample == block % part_blocks) {
            part.sample = no_sample;
            note_use(true);
        } else {
            ++part.missed;
        }
        const bool comes = part.missed >= wanted();
        if (comes) part.missed = 0;
        place.store(part.encode(), std::memory_order_relaxed);
        return comes;
    }
    /// The miss of `block` was the first of a row.
    void in_a_row(BlockId block) noexcept {
        std::atomic<std::uint64_t>& place = place_of(block);
        Part part = Part::decode(place.load(std::memory_order_relaxed));
        if (part.number != block / part_blocks || part.missed == 0) return;
        --part.missed;
        place.store(part.encode(), std::memory_order_relaxed);
    }
    /// The sample was not here, and has been left out. Behind missed() of its part.
    void left_out(BlockId sample) noexcept {
        place_of(sample).store(Part{sample / part_blocks, 0, sample % part_blocks}.encode(),
                               std::memory_order_relaxed);
    }
    /// Another node has written the block: what is missed from now on is another phase's.
    void stale(BlockId block) noexcept {
        std::atomic<std::uint64_t>& place = place_of(block);
        Part part = Part::decode(place.load(std::memory_order_relaxed));
        if (part.number != block / part_blocks || (part.missed == 0 && part.sample == no_sample))
            return;
        if (part.sample != no_sample) note_use(false);
        place.store(Part{part.number, 0, no_sample}.encode(), std::memory_order_relaxed);
    }
    std::uint32_t wanted() const noexcept { return wanted_.load(std::memory_order_relaxed); }

private:
    static constexpr std::uint32_t no_sample = part_blocks;
    /// What is known of one part, all 0 at first; parts that share a place forget each other.
    struct Part {
        std::uint32_t number;
        std::uint32_t missed;  ///< of its blocks, one by one, since some were brought
        std::uint32_t sample;  ///< its number in the part
        static constexpr Part decode(std::uint64_t raw) {
            return {static_cast<std::uint32_t>(raw), static_cast<std::uint32_t>(raw >> 32 & 0xff),
                    static_cast<std::uint32_t>(raw >> 40) ^ no_sample};
        }
        constexpr std::uint64_t encode() const {
            return std::uint64_t{sample ^ no_sample} << 40 | std::uint64_t{missed} << 32 | number;
        }
    };
    void note_use(bool used) noexcept {
        const int score = score_.fetch_add(used ? 1 : -1, std::memory_order_relaxed);
        if (-score_max < score && score < score_max) return;
        score_.store(0, std::memory_order_relaxed);
        wanted_.store(
            score < 0 ? std::min(2 * wanted(), wanted_max) : std::max(wanted() / 2, wanted_min),
            std::memory_order_relaxed);
    }
    static constexpr unsigned places_bits = 12;
    std::atomic<std::uint64_t>& place_of(BlockId block) noexcept {
        return places_[block / part_blocks * 0x9E37'79B1u >> (32 - places_bits)];
    }

    std::array<std::atomic<std::uint64_t>, 1 << places_bits> places_{};
    std::atomic<std::uint32_t> wanted_{wanted_min};
    std::atomic<int> score_{0};  ///< samples that were missed, less those that were not
};

}  // namespace hiroba::dsm
