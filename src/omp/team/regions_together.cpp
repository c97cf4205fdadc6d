// SPDX-License-Identifier: BSD-3-Clause
#include "omp/team/regions_together.hpp"

#include <algorithm>

namespace hiroba::omp {

void RegionsTogether::Way::note(std::uint64_t ns) noexcept {
    if (count > 0) took[(count - 1) % samples] = ns;
    ++count;
    total_ns += ns;
}

std::uint64_t RegionsTogether::Way::usual_ns() const noexcept {
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

bool RegionsTogether::begin(const void* code, std::uint32_t size, std::uint64_t now_ns) noexcept {
    if (former_ == none) {
        since_ns_ = now_ns;
    } else {
        end_period(now_ns);
    }
    former_ = site_of(code, size);
    former_ns_ = now_ns;
    return stays_ != trying_;
}

void RegionsTogether::end_period(std::uint64_t now_ns) noexcept {
    Site& site = sites_[former_];
    const std::uint64_t took_ns = now_ns - former_ns_;
    if (trying_) {
        note_trial(site, took_ns);
        if (is_trial_over(now_ns)) decide(now_ns);
        return;
    }
    note_settled(site, took_ns);
    if (is_trial_due(now_ns)) begin_trial(now_ns);
}

void RegionsTogether::begin_trial(std::uint64_t now_ns) noexcept {
    trying_ = true;
    since_ns_ = now_ns;
    covered_ns_ = expected_ns_ = most_ns_ = 0;
    for (const Site& site : sites_) {
        const Way& way = site.ways[settled()];
        if (way.is_known()) most_ns_ += way.usual_ns() * wanted * most_times;
    }
}

void RegionsTogether::note_settled(Site& site, std::uint64_t took_ns) noexcept {
    Way& way = site.ways[settled()];
    way.note(took_ns);
    if (!site.compared) unknown_ns_ += took_ns;
    if (!way.is_known()) return;
    known_ns_ += way.count == wanted ? way.total_ns : took_ns;
    if (way.count % samples == wanted % samples)
        longest_ns_ = std::max(longest_ns_, way.usual_ns());
}

bool RegionsTogether::is_trial_due(std::uint64_t now_ns) const noexcept {
    const std::uint64_t passed_ns = now_ns - since_ns_;
    // A trial of what is hardly known would have nothing to be compared with.
    if (known_ns_ * 2 < passed_ns || (!stays_ && longest_ns_ > long_ns)) return false;
    return passed_ns >= rest_ns_ || (unknown_ns_ * 2 > passed_ns && passed_ns >= first_ns &&
                                     passed_ns >= trial_ns_ * rest_of_unknown);
}

void RegionsTogether::note_trial(Site& site, std::uint64_t took_ns) noexcept {
    Way& way = site.ways[other()];
    const Way& before = site.ways[settled()];
    way.note(took_ns);
    if (!before.is_known()) return;
    expected_ns_ += before.usual_ns();
    if (way.count == wanted) covered_ns_ += before.total_ns;
}

// Where it knows most of what the program does, or costs too much, or functions do not come any
// more that it waits for.
bool RegionsTogether::is_trial_over(std::uint64_t now_ns) const noexcept {
    return covered_ns_ * 4 >= known_ns_ * 3 || now_ns - since_ns_ > expected_ns_ * 4 + first_ns ||
           expected_ns_ > most_ns_;
}

/// By what both ways know. It has to be worth a change: what the threads use moves along.
bool RegionsTogether::is_other_better() const noexcept {
    if (covered_ns_ * 2 < known_ns_) return false;
    // In ms and fractions: times of many occurrences do not overflow so.
    double this_way = 0, that_way = 0;
    for (const Site& site : sites_) {
        const Way &here = site.ways[settled()], &there = site.ways[other()];
        if (!here.is_known() || !there.is_known()) continue;
        this_way += static_cast<double>(here.usual_ns()) * here.count;
        that_way += static_cast<double>(there.usual_ns()) * here.count;
    }
    return that_way < .8 * this_way;
}

void RegionsTogether::decide(std::uint64_t now_ns) noexcept {
    trial_ns_ = now_ns - since_ns_;
    if (is_other_better()) {
        stays_ = !stays_;
        rest_times_ = rest_first;
    } else {
        rest_times_ = std::min(rest_times_ * 2, rest_max);
    }
    rest_ns_ = std::max(trial_ns_ * rest_times_, first_ns);
    for (Site& site : sites_) {
        site.compared |= site.ways[other()].count > 0 || site.ways[settled()].count > 0;
        site.ways = {};
    }
    trying_ = false;
    since_ns_ = now_ns;
    known_ns_ = unknown_ns_ = longest_ns_ = 0;
}

}  // namespace hiroba::omp
