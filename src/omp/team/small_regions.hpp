// SPDX-License-Identifier: BSD-3-Clause
// Role: decides for each region of the program whether its team is spread over the nodes or stays
// on the leader's: a region that is over sooner than nodes tell each other of it is best run on one
// (docs/decisions/small-regions-stay.md). Whether all of them stay: regions_together.hpp.
// Invariant: a team has as many threads here as there. Who decides has taken the spread team.
#pragma once

#include <array>
#include <cstdint>

namespace hiroba::omp {

/// Thread: one at a time.
class SmallRegions {
public:
    enum class Where : std::uint8_t { spread, here };
    using enum Where;

    /// A region begins, at `now_ns`. What a function leaves elsewhere others fetch, so the time up
    /// to its next region counts beside its own.
    /// @param code  the region's function
    /// @param size  of the team
    Where choose(const void* code, std::uint32_t size, std::uint64_t now_ns) noexcept;
    /// A region has run elsewhere than choose() would have said: what passes says nothing.
    void pass_over() noexcept { ++passed_over_; }
    /// A team that ran where choose() has said has taken so long.
    void note(const void* code, std::uint32_t size, std::uint64_t took_ns) noexcept;

    /// A region that takes longer when it is spread is not tried elsewhere.
    static constexpr std::uint64_t small_ns = 2'000'000;
    /// Each way is tried so often in a row; the last five count.
    static constexpr std::uint32_t tried = 8;
    /// After the first comparison the other way is tried again behind so many, then ever less
    /// often.
    static constexpr std::uint32_t settled_first = 256, settled_max = 1u << 16;

private:
    static constexpr std::uint32_t samples = 5;
    struct Site {
        const void* code = nullptr;
        std::uint32_t size = 0;
        Where best = Where::spread;
        bool tries_other = false;
        std::uint32_t count = 0, stretch = tried;  ///< in this way, and until when
        std::array<std::uint64_t, samples> took{};
        std::array<std::uint64_t, samples> rounds{};  ///< from one begin to the next; 0: unknown
        std::uint64_t began_ns = 0, passed_over = 0;
        std::array<std::uint64_t, 2> usual_ns{}, round_ns{};  ///< by way

        Where where() const noexcept {
            return tries_other == (best == Where::spread) ? Where::here : Where::spread;
        }
    };
    Site& site_of(const void* code, std::uint32_t size) noexcept;
    static std::uint64_t median(std::array<std::uint64_t, samples> took) noexcept;
    static void compare(Site& site) noexcept;
    static bool others_gain(const Site& site, std::size_t way, std::size_t other) noexcept;

    std::uint64_t passed_over_ = 0;
    std::array<Site, 256> sites_{};  ///< the last one that came to its place
};

}  // namespace hiroba::omp
