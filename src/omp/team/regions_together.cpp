// SPDX-License-Identifier: BSD-3-Clause
#include "omp/team/regions_together.hpp"

#include <algorithm>

namespace hiroba::omp {

void RegionsTogether::Way::note(std::uint64_t ns) noexcept {
    if (count > 0)
        took[(count - 1) % samples] = ns;
    else
        first_ns = ns;
    ++count;
    total_ns += ns;
}

std::uint64_t RegionsTogether::Way::usual_ns() const noexcept {
    if (count < 2) return first_ns;
    const std::uint32_t taken = std::min(count - 1, samples);
    std::array<std::uint64_t, samples> sorted = took;
    const auto middle = sorted.begin() + (taken - 1) / 2;
    std::nth_element(sorted.begin(), middle, sorted.begin() + taken);
    return *middle;
}

std::size_t RegionsTogether::site_of(const void* code, std::uint32_t size) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(code);
    const std::size_t place = (at >> 4 ^ at >> 12 ^ size) % sites_.size();
    Site& site = sites_[place];
    if (site.code != code || site.size != size) site = {.code = code, .size = size};
    return place;
}

bool RegionsTogether::begin(const void* code, std::uint32_t size, std::uint64_t now_ns,
                            std::uint64_t least_ns) noexcept {
    if (former_ == none) {
        since_ns_ = now_ns;
    } else {
        end_period(now_ns, least_ns);
    }
    former_ = site_of(code, size);
    former_ns_ = now_ns;
    return stays_ != trying_;
}

void RegionsTogether::end_period(std::uint64_t now_ns, std::uint64_t least_ns) noexcept {
    Site& site = sites_[former_];
    const std::uint64_t took_ns = now_ns - former_ns_;
    if (trying_) {
        note_trial(site, took_ns);
        if (is_trial_over(now_ns)) decide(now_ns);
        return;
    }
    note_settled(site, took_ns, least_ns);
    in_doubt_ = is_doubtful(now_ns);
    if (in_doubt_ || is_trial_due(now_ns)) begin_trial(now_ns);
}

/// All functions that are known, once each.
std::uint64_t RegionsTogether::round_ns() const noexcept {
    std::uint64_t sum_ns = 0;
    for (const Site& site : sites_) {
        const Way& way = site.ways[settled()];
        if (way.is_known()) sum_ns += way.usual_ns();
    }
    return sum_ns;
}

// In doubt all that has been seen is to be compared. As long as that took is what the trial may
// take, too, with functions that have not been seen.
void RegionsTogether::begin_trial(std::uint64_t now_ns) noexcept {
    trying_ = true;
    covered_ns_ = 0;
    expected_ns_ = in_doubt_ ? (now_ns - since_ns_) / 2 : 0;
    most_ns_ = round_ns() * wanted * most_times;
    if (in_doubt_) {
        known_ns_ = now_ns - since_ns_;
        most_ns_ = std::max(most_ns_, expected_ns_ + known_ns_ * most_times);
    }
    since_ns_ = now_ns;
    for (Site& site : sites_) site.covered = false;
}

void RegionsTogether::note_settled(Site& site, std::uint64_t took_ns,
                                   std::uint64_t least_ns) noexcept {
    Way& way = site.ways[settled()];
    way.note(took_ns);
    if (least_ns != 0) (way.count == 1 ? first_ones_ : later_ones_).add(took_ns, least_ns);
    if (least_ns != 0 && way.count == 2) seen_again_ns_ += way.first_ns;
    if (!site.compared) unknown_ns_ += took_ns;
    if (!way.is_known()) return;
    known_ns_ += way.count == wanted ? way.total_ns : took_ns;
    if (way.count % samples == wanted % samples)
        longest_ns_ = std::max(longest_ns_, way.usual_ns());
}

/// How much of the time staying can save. What a function does at first moves data: it says
/// something where that takes long, and if it says much.
RegionsTogether::Waiting RegionsTogether::waiting() const noexcept {
    const Share &first = first_ones_, &later = later_ones_;
    if (stays_ || first.passed_ns == 0) return Waiting::unknown;
    if (seen_again_ns_ * 2 >= first.passed_ns || later.passed_ns * later_share >= first.passed_ns) {
        if (later.passed_ns * 2 >= later.least_ns * 3) return Waiting::much;
        return later.passed_ns * 4 < later.least_ns * 5 ? Waiting::little : Waiting::some;
    }
    const bool much = first.passed_ns >= std::max(first.least_ns * 3, first_doubt_of_new_ns);
    return much ? Waiting::much : Waiting::unknown;
}

bool RegionsTogether::is_doubtful(std::uint64_t now_ns) const noexcept {
    return now_ns - since_ns_ >= doubt_rest_ns_ && waiting() == Waiting::much;
}

bool RegionsTogether::is_trial_due(std::uint64_t now_ns) const noexcept {
    const std::uint64_t passed_ns = now_ns - since_ns_;
    // A trial of what is hardly known would have nothing to be compared with.
    if (known_ns_ * 2 < passed_ns) return false;
    const Waiting waits = waiting();
    if (!stays_ && longest_ns_ > long_ns && waits != Waiting::some) return false;
    if (waits == Waiting::little && passed_ns < round_ns() * rest_of_busy) return false;
    return passed_ns >= rest_ns_ || (unknown_ns_ * 2 > passed_ns && passed_ns >= first_ns &&
                                     passed_ns >= trial_ns_ * rest_of_unknown);
}

bool RegionsTogether::is_comparable(const Way& settled) const noexcept {
    return in_doubt_ ? settled.count > 0 : settled.is_known();
}

/// Whether the trial need not see more of a function: it is as good as known, or clearly better
/// although data moved, or clearly worse although they did not.
bool RegionsTogether::is_enough(const Site& site) const noexcept {
    const Way &before = site.ways[settled()], &way = site.ways[other()];
    if (way.count == 0 || !is_comparable(before)) return false;
    if (way.count == 1) return way.first_ns * 2 < before.settled_ns();
    return way.is_known() || in_doubt_ || way.usual_ns() * 2 > before.usual_ns() * 3;
}

void RegionsTogether::note_trial(Site& site, std::uint64_t took_ns) noexcept {
    Way& way = site.ways[other()];
    const Way& before = site.ways[settled()];
    way.note(took_ns);
    if (before.count > 0) expected_ns_ += before.usual_ns();
    is_as_when_new_ |= stays_ && site.new_ns != 0 && took_ns * 4 > site.new_ns * 3;
    if (site.covered || !is_enough(site)) return;
    site.covered = true;
    covered_ns_ += before.total_ns;
}

// Where it knows most of what the program does, or costs too much, or functions do not come any
// more that it waits for.
bool RegionsTogether::is_trial_over(std::uint64_t now_ns) const noexcept {
    return covered_ns_ * 4 >= known_ns_ * 3 || expected_ns_ > most_ns_ || is_as_when_new_ ||
           now_ns - since_ns_ > expected_ns_ * 4 + first_ns + moving_ns_;
}

/// How many times as long the settled way takes, by what both ways know; 0: that is too little.
double RegionsTogether::gain() const noexcept {
    if (covered_ns_ * 2 < known_ns_) return 0;
    // In ms and fractions: times of many occurrences do not overflow so.
    double this_way = 0, that_way = 0;
    for (const Site& site : sites_) {
        if (!is_enough(site)) continue;
        const Way &here = site.ways[settled()], &there = site.ways[other()];
        this_way += static_cast<double>(here.settled_ns()) * here.count;
        that_way += static_cast<double>(there.usual_ns()) * here.count;
    }
    return this_way / std::max(that_way, 1.);
}

/// Staying was found to be best by functions that have come once. Once data have moved they may
/// take less: what they took is kept for the next trial. @return in all
std::uint64_t RegionsTogether::keep_new() noexcept {
    std::uint64_t sum_ns = 0;
    for (Site& site : sites_) {
        const Way& way = site.ways[settled()];
        site.new_ns = way.count == 1 && is_enough(site) ? way.first_ns : 0;
        sum_ns += site.new_ns;
    }
    return sum_ns;
}

// It has to be worth a change: what the threads use moves along. To find out later whether it still
// is costs as many times more as has been won.
void RegionsTogether::decide(std::uint64_t now_ns) noexcept {
    trial_ns_ = now_ns - since_ns_;
    std::uint64_t next_ns = trial_ns_, moved_ns = 0;
    if (const double times = gain(); times > 1.25) {
        moved_ns = keep_new();
        stays_ = !stays_;
        rest_times_ = rest_first;
        doubt_times_ = rest_of_doubt;
        next_ns = static_cast<std::uint64_t>(static_cast<double>(trial_ns_) * std::min(times, 64.));
    } else {
        rest_times_ = std::min(rest_times_ * 2, rest_max);
        if (in_doubt_) doubt_times_ = std::min(doubt_times_ * 2, rest_max);
    }
    moving_ns_ = moved_ns;
    rest_ns_ = std::max(moved_ns != 0 ? moved_ns * rest_of_new : next_ns * rest_times_, first_ns);
    doubt_rest_ns_ = std::max(next_ns * doubt_times_, first_doubt_ns);
    for (Site& site : sites_) {
        site.compared |= site.ways[other()].count > 0 || site.ways[settled()].count > 0;
        site.ways = {};
    }
    trying_ = in_doubt_ = is_as_when_new_ = false;
    since_ns_ = now_ns;
    known_ns_ = unknown_ns_ = longest_ns_ = 0;
    first_ones_ = later_ones_ = {};
    seen_again_ns_ = 0;
}

}  // namespace hiroba::omp
