// SPDX-License-Identifier: BSD-3-Clause
#include "omp/team/small_regions.hpp"

#include <algorithm>

namespace hiroba::omp {

SmallRegions::Site& SmallRegions::site_of(const void* code, std::uint32_t size) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(code);
    Site& site = sites_[(at >> 4 ^ at >> 12 ^ size) % sites_.size()];
    if (site.code != code || site.size != size) site = {.code = code, .size = size};
    return site;
}

SmallRegions::Where SmallRegions::choose(const void* code, std::uint32_t size,
                                         std::uint64_t now_ns) noexcept {
    Site& site = site_of(code, size);
    const bool follows = site.began_ns != 0 && site.passed_over == passed_over_;
    site.rounds[site.count % samples] = follows ? now_ns - site.began_ns : 0;
    site.began_ns = now_ns;
    site.passed_over = passed_over_;
    return site.where();
}

// A region that stays and has become long counts for many, so that spreading it is tried soon.
void SmallRegions::note(const void* code, std::uint32_t size, std::uint64_t took_ns) noexcept {
    Site& site = site_of(code, size);
    const Where where = site.where();
    const bool long_again =
        took_ns > small_ns && site.count > 0 && site.took[(site.count - 1) % samples] > small_ns;
    site.took[site.count % samples] = took_ns;
    ++site.count;
    if (!site.tries_other && where == Where::here && long_again)
        site.count = std::max(site.count, site.stretch - site.stretch / 2) + site.stretch / 8;
    if (site.count < (site.tries_other ? tried : site.stretch)) return;
    site.count = 0;
    const std::uint64_t usual_ns = median(site.took);
    site.usual_ns[static_cast<std::size_t>(where)] = usual_ns;
    site.round_ns[static_cast<std::size_t>(where)] = median(site.rounds);
    if (site.tries_other) return compare(site);
    site.tries_other = where == Where::here || usual_ns <= small_ns;
}

/// Whether what a function saves the other way is not lost by those that fetch what it leaves
/// there. Where that is a small part of a round it is not to be seen, and neither are small losses.
bool SmallRegions::others_gain(const Site& site, std::size_t way, std::size_t other) noexcept {
    const std::uint64_t before_ns = site.round_ns[way], behind_ns = site.round_ns[other];
    if (before_ns == 0 || behind_ns == 0) return true;
    const std::uint64_t saved_ns = site.usual_ns[way] - site.usual_ns[other];
    if (saved_ns * 10 >= before_ns) return behind_ns + saved_ns / 2 <= before_ns;
    return behind_ns * 20 <= before_ns * 21;
}

// The other way has to be worth a change: what the threads use moves along.
void SmallRegions::compare(Site& site) noexcept {
    const Where other = site.where();
    site.tries_other = false;
    const auto there = static_cast<std::size_t>(other), here = static_cast<std::size_t>(site.best);
    if (site.usual_ns[there] * 5 < site.usual_ns[here] * 4 && others_gain(site, here, there)) {
        site.best = other;
        site.stretch = settled_first;
    } else {
        site.stretch = std::clamp(site.stretch * 2, settled_first, settled_max);
    }
}

std::uint64_t SmallRegions::median(std::array<std::uint64_t, samples> took) noexcept {
    std::nth_element(took.begin(), took.begin() + samples / 2, took.end());
    return took[samples / 2];
}

}  // namespace hiroba::omp
