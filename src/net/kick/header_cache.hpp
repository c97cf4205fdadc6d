// SPDX-License-Identifier: BSD-3-Clause
// Role: ready-made headers of the targets used lately, so that resolving a kick does not go to the
// table each time. Source: Tanabe et al., DIMMnet-1, header TLB: 4-way set associative, 1024
// entries of 32 bytes. Invariant: a set holds a target at most once; the way not used for longest
// gives place.
#pragma once

#include <array>
#include <cstdint>

#include "net/kick/seed_table.hpp"

namespace hiroba::net::kick {

/// A seed, resolved.
struct Header {
    std::byte* page = nullptr;  ///< mapped; nullptr where the provider maps nothing
    std::uint32_t target = ~0u;
    std::uint32_t rank = 0;
    std::uint32_t region = 0;
    std::uint32_t bytes = 0;  ///< of the page that belong to the region
    std::uint64_t page_offset = 0;
};
static_assert(sizeof(Header) == 32);

/// Owned by one thread at a time.
class HeaderCache {
public:
    static constexpr std::uint32_t ways = 4, entries = 1024, sets = entries / ways;

    struct Counts {
        std::uint64_t hits = 0, misses = 0, evictions = 0;
    };

    /// The header of `target`; `refill()` makes it on a miss.
    template <class Refill>
    const Header& find(Target target, Refill&& refill) {
        const std::uint32_t first = target.number() % sets * ways;
        std::uint32_t oldest = first;
        for (std::uint32_t i = first; i < first + ways; ++i) {
            if (headers_[i].target == target.number()) {
                ++counts_.hits;
                used_at_[i] = ++now_;
                return headers_[i];
            }
            if (used_at_[i] < used_at_[oldest]) oldest = i;
        }
        ++counts_.misses;
        if (used_at_[oldest] != 0) ++counts_.evictions;
        headers_[oldest] = refill();
        used_at_[oldest] = ++now_;
        return headers_[oldest];
    }

    const Counts& counts() const noexcept { return counts_; }

private:
    std::array<Header, entries> headers_{};
    std::array<std::uint64_t, entries> used_at_{};  ///< 0: never filled
    std::uint64_t now_ = 0;
    Counts counts_;
};

}  // namespace hiroba::net::kick
