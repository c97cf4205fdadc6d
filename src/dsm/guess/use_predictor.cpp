// SPDX-License-Identifier: BSD-3-Clause
// Role: see use_predictor.hpp.
#include "dsm/guess/use_predictor.hpp"

#include <algorithm>
#include <utility>

namespace hiroba::dsm {

UsePredictor::UsePredictor()
    : missed_(missed_max),
      sorted_(missed_max),
      places_(places_max),
      runs_(places_max * runs_max),
      joined_(runs_max) {}

void UsePredictor::learn() noexcept {
    if (missed_count_.load(std::memory_order_relaxed) == 0) return;
    if (here_ != nullptr) fold(*here_);
    missed_count_.store(0, std::memory_order_relaxed);
}

std::span<UsePredictor::Run> UsePredictor::arrive(SyncPlace place) noexcept {
    const Place* const before = std::exchange(here_, find(place));
    if (here_ == nullptr) return {};
    ++here_->arrivals;
    here_->in_row = before == here_ ? here_->in_row + 1 : 1;
    return {runs_of(*here_), here_->count};
}

// An open hash table; a program with more places learns nothing of the rest.
UsePredictor::Place* UsePredictor::find(SyncPlace place) noexcept {
    const std::size_t hash = (place.address ^ place.address >> 9) * 0x9E37'79B9u;
    constexpr std::size_t looks_max = 8;
    for (std::size_t look = 0; look < looks_max; ++look) {
        Place& at = places_[(hash / 64 + look) % places_max];
        if (at.address == 0) at.address = place.address, at.kind = place.kind;
        if (at.address == place.address && at.kind == place.kind) return &at;
    }
    return nullptr;
}

// Both are sorted; what is in the place's runs already stays there as it is.
void UsePredictor::fold(Place& place) noexcept {
    const std::size_t missed = std::min(missed_count_.load(std::memory_order_relaxed), missed_max);
    for (std::size_t i = 0; i < missed; ++i)
        sorted_[i] = std::atomic_ref{missed_[i]}.load(std::memory_order_relaxed);
    std::sort(sorted_.data(), sorted_.data() + missed);
    Run* const runs = runs_of(place);
    std::size_t count = 0, next = 0;
    const auto take = [&](const Run& run) {
        if (count < runs_max) joined_[count++] = run;
    };
    for (std::size_t i = 0; i < missed; ++i) {
        const BlockId block = sorted_[i];
        while (next < place.count && runs[next].first <= block) take(runs[next++]);
        if (count > 0 && block < joined_[count - 1].end()) {
            note_missed(joined_[count - 1], place);
            continue;
        }
        const bool goes_on =
            count > 0 && block == joined_[count - 1].end() && joined_[count - 1].count < run_max;
        if (goes_on) {
            ++joined_[count - 1].count;
            note_missed(joined_[count - 1], place);
        } else {
            take({.first = block, .count = 1, .period = place.in_row, .last = place.arrivals});
        }
    }
    while (next < place.count) take(runs[next++]);
    std::copy_n(joined_.data(), count, runs);
    place.count = static_cast<std::uint32_t>(count);
}

// A guess that was too early says nothing of how often the run is missed.
void UsePredictor::note_missed(Run& run, const Place& place) noexcept {
    if (run.last == place.arrivals) return;
    run.period = place.arrivals - (run.guessed ? run.before : run.last);
    run.last = place.arrivals;
    run.guessed = false;
}

void UsePredictor::note_guess(Run& run) const noexcept {
    run.before = std::exchange(run.last, here_->arrivals);
    run.guessed = true;
}

std::uint8_t UsePredictor::next_sample(Run& run) noexcept {
    constexpr std::uint8_t trust_max = 3;
    const std::uint8_t trust = std::min(run.trust, trust_max);
    if (++run.asked < 4u << trust) return 0;
    run.asked = 0;
    return static_cast<std::uint8_t>(1 + (run.first + run.trust) % run.count);
}

}  // namespace hiroba::dsm
