// SPDX-License-Identifier: BSD-3-Clause
// Role: decides by the clock whether all regions of the program are spread over the nodes or stay
// on the leader's. A region alone leaves what it has used where it ran, for the next one to fetch;
// so each may be fastest spread although all together are fastest on one node
// (docs/decisions/small-regions-stay.md).
// Invariant: what trials in vain cost is a small share of the time between them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hiroba::omp {

/// Thread: one at a time.
class RegionsTogether {
public:
    /// A region of `size` threads with this function begins, at `now_ns`. What passes up to the
    /// next one is its time: the serial part behind it fetches what it has left elsewhere.
    /// @return whether all regions stay; otherwise each goes where it is best alone
    bool begin(const void* code, std::uint32_t size, std::uint64_t now_ns) noexcept;

    /// Before anything else is tried, so that a start says nothing.
    static constexpr std::uint64_t first_ns = 20'000'000;
    /// While a region takes longer, no trial of staying begins: it could not be ended.
    static constexpr std::uint64_t long_ns = 1'000'000'000;
    /// Times as long as a trial took is what is between it and the next: at first, at most.
    static constexpr std::uint64_t rest_first = 32, rest_max = 1024;
    /// A function that no trial has seen calls for one sooner.
    static constexpr std::uint64_t rest_of_unknown = 16;

private:
    static constexpr std::uint32_t samples = 5;  ///< the last ones, whose median counts
    /// Occurrences that say something; at the first, data move.
    static constexpr std::uint32_t wanted = 3;
    /// A trial lasts at most as long as so many times the wanted occurrences of all functions.
    static constexpr std::uint64_t most_times = 8;
    /// What a function took, one way, since the last decision.
    struct Way {
        std::array<std::uint64_t, samples> took{};
        std::uint32_t count = 0;
        std::uint64_t total_ns = 0;
        void note(std::uint64_t ns) noexcept;
        bool is_known() const noexcept { return count >= wanted; }
        std::uint64_t usual_ns() const noexcept;
    };
    struct Site {
        const void* code = nullptr;
        std::uint32_t size = 0;
        bool compared = false;      ///< some trial has seen it
        std::array<Way, 2> ways{};  ///< spread; here
    };

    std::size_t site_of(const void* code, std::uint32_t size) noexcept;
    void end_period(std::uint64_t now_ns) noexcept;
    void begin_trial(std::uint64_t now_ns) noexcept;
    void note_settled(Site& site, std::uint64_t took_ns) noexcept;
    void note_trial(Site& site, std::uint64_t took_ns) noexcept;
    bool is_trial_due(std::uint64_t now_ns) const noexcept;
    bool is_trial_over(std::uint64_t now_ns) const noexcept;
    bool is_other_better() const noexcept;
    void decide(std::uint64_t now_ns) noexcept;
    std::size_t settled() const noexcept { return stays_ ? 1 : 0; }
    std::size_t other() const noexcept { return stays_ ? 0 : 1; }

    bool stays_ = false;   ///< what was decided last
    bool trying_ = false;  ///< the other way
    std::size_t former_ = none;
    std::uint64_t former_ns_ = 0;  ///< when the region before began
    std::uint64_t since_ns_ = 0;   ///< the last decision, or the trial under way
    std::uint64_t rest_ns_ = first_ns;
    std::uint64_t rest_times_ = rest_first;
    std::uint64_t trial_ns_ = 0;     ///< what the last trial took
    std::uint64_t known_ns_ = 0;     ///< since the decision, of functions known by now
    std::uint64_t unknown_ns_ = 0;   ///< of such as no trial has seen
    std::uint64_t covered_ns_ = 0;   ///< of known_ns_, what the trial knows the other way
    std::uint64_t expected_ns_ = 0;  ///< what the trial had taken the settled way
    std::uint64_t most_ns_ = 0;      ///< what expected_ns_ may be at most
    std::uint64_t longest_ns_ = 0;   ///< usual time of a region

    static constexpr std::size_t none = ~std::size_t{0};
    std::array<Site, 256> sites_{};  ///< the last one that came to its place
};

}  // namespace hiroba::omp
