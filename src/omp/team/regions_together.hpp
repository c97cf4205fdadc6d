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
    /// @param least_ns  what the time before this region would have been at least, had its region
    ///                  stayed: its threads have computed for so long, and not waited; 0: unknown
    /// @return whether all regions stay; otherwise each goes where it is best alone
    bool begin(const void* code, std::uint32_t size, std::uint64_t now_ns,
               std::uint64_t least_ns = 0) noexcept;
    /// Whether staying has been found to be best.
    bool stay() const noexcept { return stays_; }

    /// Before anything else is tried, so that a start says nothing.
    static constexpr std::uint64_t first_ns = 20'000'000;
    /// The same where threads wait for most of the time, and where they do so in functions that are
    /// all new, and have data moved.
    static constexpr std::uint64_t first_doubt_ns = 5'000'000,
                                   first_doubt_of_new_ns = 1'000'000'000;
    /// While a region takes longer no trial of staying begins, unless threads are known to wait: it
    /// could not be ended.
    static constexpr std::uint64_t long_ns = 1'000'000'000;
    /// What functions take that come again counts behind so large a part of what all took at first.
    static constexpr std::uint64_t later_share = 8;
    /// Times as long as a trial takes is what is between it and the next: at first, at most.
    static constexpr std::uint64_t rest_first = 32, rest_max = 1024;
    /// A function that no trial has seen calls for one sooner.
    static constexpr std::uint64_t rest_of_unknown = 16;
    /// The same, at first, where threads wait for most of the time.
    static constexpr std::uint64_t rest_of_doubt = 2;
    /// Where staying was found to be best by first occurrences, which move data: times as long as
    /// those took.
    static constexpr std::uint64_t rest_of_new = 3;
    /// Regions whose threads hardly wait are tried elsewhere behind so many occurrences.
    static constexpr std::uint64_t rest_of_busy = 192;

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
        std::uint64_t first_ns = 0, total_ns = 0;
        void note(std::uint64_t ns) noexcept;
        bool is_known() const noexcept { return count >= wanted; }
        /// If it has been seen: the median, or what the first one took, and moved.
        std::uint64_t usual_ns() const noexcept;
        /// What it may take at least, once data have moved.
        std::uint64_t settled_ns() const noexcept { return usual_ns() / (count == 1 ? 2 : 1); }
    };
    struct Site {
        const void* code = nullptr;
        std::uint32_t size = 0;
        bool compared = false;      ///< some trial has seen it
        bool covered = false;       ///< this trial has seen enough of it
        std::uint64_t new_ns = 0;   ///< what it took when it was new, if that was found too long
        std::array<Way, 2> ways{};  ///< spread; here
    };
    /// Time, and how much of it staying would have taken at least, as far as that is known.
    struct Share {
        std::uint64_t passed_ns = 0, least_ns = 0;
        void add(std::uint64_t took_ns, std::uint64_t least) noexcept {
            passed_ns += took_ns, least_ns += least;
        }
    };
    enum class Waiting : std::uint8_t { unknown, little, some, much };

    std::size_t site_of(const void* code, std::uint32_t size) noexcept;
    void end_period(std::uint64_t now_ns, std::uint64_t least_ns) noexcept;
    void begin_trial(std::uint64_t now_ns) noexcept;
    void note_settled(Site& site, std::uint64_t took_ns, std::uint64_t least_ns) noexcept;
    void note_trial(Site& site, std::uint64_t took_ns) noexcept;
    Waiting waiting() const noexcept;
    bool is_doubtful(std::uint64_t now_ns) const noexcept;
    bool is_trial_due(std::uint64_t now_ns) const noexcept;
    bool is_comparable(const Way& settled) const noexcept;
    bool is_enough(const Site& site) const noexcept;
    bool is_trial_over(std::uint64_t now_ns) const noexcept;
    std::uint64_t round_ns() const noexcept;
    double gain() const noexcept;
    std::uint64_t keep_new() noexcept;
    void decide(std::uint64_t now_ns) noexcept;
    std::size_t settled() const noexcept { return stays_ ? 1 : 0; }
    std::size_t other() const noexcept { return stays_ ? 0 : 1; }

    bool stays_ = false;     ///< what was decided last
    bool trying_ = false;    ///< the other way
    bool in_doubt_ = false;  ///< the trial has begun since threads wait, whatever is known
    std::size_t former_ = none;
    std::uint64_t former_ns_ = 0;  ///< when the region before began
    std::uint64_t since_ns_ = 0;   ///< the last decision, or the trial under way
    std::uint64_t rest_ns_ = first_ns, rest_times_ = rest_first;
    std::uint64_t doubt_rest_ns_ = first_doubt_ns, doubt_times_ = rest_of_doubt;
    std::uint64_t trial_ns_ = 0;       ///< what the last trial took
    std::uint64_t known_ns_ = 0;       ///< since the decision, of functions known by now
    std::uint64_t unknown_ns_ = 0;     ///< of such as no trial has seen
    std::uint64_t covered_ns_ = 0;     ///< of known_ns_, what the trial knows the other way
    std::uint64_t expected_ns_ = 0;    ///< what the trial had taken the settled way
    std::uint64_t most_ns_ = 0;        ///< what expected_ns_ may be at most
    std::uint64_t longest_ns_ = 0;     ///< usual time of a region
    Share first_ones_, later_ones_;    ///< occurrences of functions since the decision
    std::uint64_t seen_again_ns_ = 0;  ///< of first_ones_, of functions that came again
    std::uint64_t moving_ns_ = 0;  ///< what the next trial may take besides, since it moves data
    bool is_as_when_new_ =
        false;  ///< the trial has seen a function take as long as when it was new

    static constexpr std::size_t none = ~std::size_t{0};
    std::array<Site, 256> sites_{};  ///< the last one that came to its place
};

}  // namespace hiroba::omp
