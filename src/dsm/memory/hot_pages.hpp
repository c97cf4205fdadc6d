// SPDX-License-Identifier: BSD-3-Clause
// Role: which pages were written before each of the last collects, and are taken for written before
// the next ones too: rows of an array that a loop with a barrier in it works on, the block of a
// stack that a region's shared variables lie in. They are left writable and reported without being
// asked about, which saves the kernel's fault (0.8 us) and the new protection (0.5 us). Who is told
// of them compares them anyway, and says which had not changed (docs/decisions/hot-pages.md).
// Invariant: a page that is written no more is hot for at most hot_collects_max collects. Nothing
// here is the kernel's, and nothing allocates.
// Thread: the collector's.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.hpp"

namespace hiroba::dsm {

class HotPages {
public:
    /// Pages to leave out of the scan and to report, ascending, for the collect that begins.
    std::span<const std::uintptr_t> begin_collect() noexcept {
        ++collect_;
        if (collect_ % hot_collects_max == 0) {
            // All at once, so that one collect in many is dearer and the others are as cheap as can
            // be.
            for (std::size_t i = 0; i < count_; ++i) make_cold(place_of(hot_[i]), false);
            count_ = 0;
        } else if (any_cold_) {
            const auto is_cold = [&](std::uintptr_t page) { return !place_of(page).hot; };
            const auto end = std::remove_if(hot_.begin(), hot_.begin() + count_, is_cold);
            count_ = static_cast<std::size_t>(end - hot_.begin());
        }
        any_cold_ = false;
        return {hot_.data(), count_};
    }
    /// The scan found [address, + bytes) written, and has protected it.
    void found(std::uintptr_t address, std::size_t bytes) noexcept {
        // A loop over more than this has no page twice in the table.
        const std::size_t pages = std::min(bytes / page_bytes, known_max);
        for (std::size_t i = 0; i < pages; ++i) note(address + i * page_bytes);
    }
    // From behind, in place: std::inplace_merge allocates, which a release inside of the program's
    // malloc may not do.
    void end_collect() noexcept {
        std::sort(fresh_.begin(), fresh_.begin() + fresh_count_);
        std::size_t known = count_;
        count_ += fresh_count_;
        for (std::size_t to = count_; fresh_count_ > 0;) {
            const bool is_known = known > 0 && hot_[known - 1] > fresh_[fresh_count_ - 1];
            hot_[--to] = is_known ? hot_[--known] : fresh_[--fresh_count_];
        }
    }
    /// A page that the last collect reported had not changed since the one before.
    void unchanged(std::uintptr_t address) noexcept {
        Page& page = place_of(address);
        if (page.address != address || !page.hot) return;
        const bool in_a_row = page.vain > 0 && page.vain_in + 1 == collect_;
        page.vain = in_a_row ? static_cast<std::uint8_t>(page.vain + 1) : 1;
        page.vain_in = collect_;
        if (page.vain < vain_first << page.patience) return;
        make_cold(page, true);
        any_cold_ = true;
    }

    static constexpr std::size_t hot_max = 1024;       ///< pages at most
    static constexpr std::size_t known_max = 4096;     ///< whose last collects are remembered
    static constexpr std::uint32_t streak_wanted = 2;  ///< collects that find it
    /// From one of them to the next: a loop may have two barriers.
    static constexpr std::uint32_t gap_max = 2;
    /// Comparisons in vain in a row, at first.
    static constexpr std::uint32_t vain_first = 2;
    static constexpr std::uint32_t hot_collects_max = 64;

private:
    /// A page that was found written not long ago. Collects are counted modulo.
    struct Page {
        std::uintptr_t address = 0;
        std::uint32_t found_in = 0;  ///< the last collect whose scan found it
        std::uint32_t vain_in = 0;   ///< the last collect that reported it in vain
        std::uint32_t cold_in = 0;   ///< the collect after which it was hot no more
        std::uint8_t streak = 0;     ///< collects close to each other whose scan found it
        std::uint8_t vain = 0;       ///< collects in a row that reported it in vain
        std::uint8_t patience = 0;   ///< how often more of them were too few
        bool hot = false;
        bool in_vain = false;  ///< the last time it was hot ended so
    };

    /// Where a page would be, whoever lies there.
    Page& place_of(std::uintptr_t address) noexcept {
        return pages_[address / page_bytes % known_max];
    }
    void note(std::uintptr_t address) noexcept {
        Page& page = place_of(address);
        if (page.hot) return;  // this page, or one that keeps its place
        if (page.address != address) page = {.address = address};
        const bool goes_on = page.streak > 0 && collect_ - page.found_in <= gap_max;
        page.streak = goes_on ? static_cast<std::uint8_t>(page.streak + 1) : 1;
        page.found_in = collect_;
        if (page.streak < streak_wanted || count_ + fresh_count_ == hot_max) return;
        // It may have been written all the time, with what it held before.
        const bool was_hot =
            page.cold_in != 0 && collect_ - page.cold_in <= gap_max * streak_wanted;
        if (!was_hot) {
            page.patience = 0;
        } else if (page.in_vain && page.patience < patience_max) {
            ++page.patience;
        }
        page.hot = true;
        fresh_[fresh_count_++] = address;
    }
    void make_cold(Page& page, bool in_vain) noexcept {
        page.hot = false;
        page.vain = page.streak = 0;
        page.cold_in = collect_;
        page.in_vain = in_vain;
    }

    static constexpr std::uint8_t patience_max = 5;

    std::array<std::uintptr_t, hot_max> hot_{};  ///< ascending
    std::size_t count_ = 0;
    std::array<std::uintptr_t, hot_max> fresh_{};  ///< found by the collect under way
    std::size_t fresh_count_ = 0;
    std::array<Page, known_max> pages_{};
    std::uint32_t collect_ = 0;
    bool any_cold_ = false;
};

}  // namespace hiroba::dsm
