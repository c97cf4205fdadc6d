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

SmallRegions::Where SmallRegions::choose(const void* code, std::uint32_t size) noexcept {
    return site_of(code, size).where();
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
    if (site.tries_other) return compare(site);
    site.tries_other = where == Where::here || usual_ns <= small_ns;
}

// The other way has to be worth a change: what the threads use moves along.
void SmallRegions::compare(Site& site) noexcept {
    const Where other = site.where();
    site.tries_other = false;
    if (site.usual_ns[static_cast<std::size_t>(other)] * 5 <
        site.usual_ns[static_cast<std::size_t>(site.best)] * 4) {
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
