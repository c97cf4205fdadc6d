// SPDX-License-Identifier: BSD-3-Clause
// Role: which few pages were written before each of the last collects, and are taken for written
// before the next ones too: the block of a stack that a region's shared variables lie in. They are
// left writable and reported without being asked about, which saves the kernel's fault (0.8 us) and
// the new protection; the WrittenSink, which is told of them, compares them anyway.
// Invariant: a page is given up within hot_collects_max collects, in a collect that scans it again:
// what stopped being written is compared in vain no longer than that. Nothing here is the kernel's.
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
        seen_ = 0;
        // All at once, so that one collect in many is dearer and the others are as cheap as can be.
        if (collect_ % hot_collects_max == 0) count_ = 0;
        return {hot_.data(), count_};
    }
    /// The scan found [address, + bytes) written.
    void found(std::uintptr_t address, std::size_t bytes) noexcept {
        for (; bytes != 0 && seen_ < few; bytes -= page_bytes, address += page_bytes) {
            seen_page_[seen_++] = address;
        }
        is_many_ |= bytes != 0;
    }
    /// Where much is written nothing is gained by sparing a page.
    void end_collect() noexcept {
        for (std::size_t i = 0; !is_many_ && i < seen_; ++i) note(seen_page_[i]);
        is_many_ = false;
    }

    static constexpr std::size_t few = 8;              ///< pages at most, hot or found
    static constexpr std::uint32_t streak_wanted = 8;  ///< collects in a row
    static constexpr std::uint64_t hot_collects_max = 64;

private:
    struct Candidate {
        std::uintptr_t page = 0;
        std::uint64_t collect = 0;  ///< that found it last
        std::uint32_t streak = 0;
    };
    void note(std::uintptr_t page) noexcept {
        Candidate* place = candidates_.data();
        for (Candidate& each : candidates_) {
            if (each.page == page) {
                place = &each;
                break;
            }
            if (each.collect < place->collect) place = &each;
        }
        const bool in_a_row = place->page == page && place->collect + 1 == collect_;
        // What was hot until now was not protected, so that it is found says nothing yet: it is hot
        // again if the next collect finds it too.
        const bool was_hot = place->page == page && place->streak >= streak_wanted;
        const std::uint32_t before = in_a_row ? place->streak : was_hot ? streak_wanted - 2 : 0;
        *place = {page, collect_, before + 1};
        if (place->streak >= streak_wanted) make_hot(page);
    }
    void make_hot(std::uintptr_t page) noexcept {
        if (count_ == few) return;
        std::uintptr_t* const end = hot_.data() + count_++;
        std::uintptr_t* const at = std::upper_bound(hot_.data(), end, page);
        std::copy_backward(at, end, end + 1);
        *at = page;
    }

    std::array<std::uintptr_t, few> hot_{};
    std::size_t count_ = 0;
    std::array<Candidate, 2 * few> candidates_{};
    std::array<std::uintptr_t, few> seen_page_{};
    std::size_t seen_ = 0;
    bool is_many_ = false;
    std::uint64_t collect_ = 0;
};

}  // namespace hiroba::dsm
