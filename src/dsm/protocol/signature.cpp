// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/protocol/signature.hpp"

#include <algorithm>

namespace hiroba::dsm {

Signature::Signature(std::size_t capacity, std::span<Entry> entries, std::span<std::uint32_t> index)
    : capacity_(capacity), entries_(entries), index_(index) {
    HIROBA_INVARIANT(capacity >= 1 && entries.size() == entries_for(capacity) &&
                         index.size() == index_slots(capacity),
                     "capacity %lu, entries %lu, index %lu", capacity, entries.size(),
                     index.size());
}

// An index slot may point at a dead entry of the same blocks: it is then overwritten, so that each
// extent has one slot between two rebuilds and probing always ends (the index is never over half
// full, because extents in it are at most entries).
std::uint32_t Signature::slot_of(const Notice& notice) const {
    const std::uint64_t key = std::uint64_t{notice.count} << 32 | notice.block;
    std::size_t slot = (key * 0x9E37'79B9'7F4A'7C15u) >> 20 & (index_.size() - 1);
    while (index_[slot] != 0 && !entries_[index_[slot] - 1].notice.same_blocks(notice)) {
        slot = (slot + 1) & (index_.size() - 1);
    }
    return static_cast<std::uint32_t>(slot);
}

bool Signature::add(const Notice& notice, NewsSequence known_to_all) {
    if (used_ == entries_.size()) trim(known_to_all);
    const std::uint32_t slot = slot_of(notice);
    if (index_[slot] != 0) {
        Entry& known = entries_[index_[slot] - 1];
        if (known.notice.wts >= notice.wts) return false;
        if (known.live) {
            known.live = false;
            --live_;
        }
    }
    entries_[used_] = {notice, next_sequence_++, slot, true};
    index_[slot] = static_cast<std::uint32_t>(++used_);
    ++live_;
    return true;
}

std::size_t Signature::first_after(NewsSequence since) const {
    const auto begin = entries_.begin();
    const auto at = std::partition_point(begin, begin + static_cast<std::ptrdiff_t>(used_),
                                         [&](const Entry& e) { return e.sequence <= since; });
    return static_cast<std::size_t>(at - begin);
}

void Signature::rebuild(std::size_t kept) {
    std::ranges::fill(index_, 0u);
    used_ = live_ = kept;
    for (std::size_t i = 0; i < kept; ++i) {
        entries_[i].slot = slot_of(entries_[i].notice);
        index_[entries_[i].slot] = static_cast<std::uint32_t>(i + 1);
    }
}

std::size_t Signature::trim(NewsSequence known_to_all) {
    if (live_ <= capacity_ && used_ < entries_.size()) return 0;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < used_; ++i) {
        if (entries_[i].live && entries_[i].sequence > known_to_all) entries_[kept++] = entries_[i];
    }
    rebuild(kept);
    return live_ > capacity_ ? drop_oldest_writes() : 0;
}

// Keeps the K newest writes. Notices whose wts equals that of a dropped one may stay: min_wts
// covers a dropped write as soon as it is no smaller than its wts, and raising it further than
// needed only costs misses.
std::size_t Signature::drop_oldest_writes() {
    const std::size_t excess = live_ - capacity_;
    const auto begin = entries_.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(live_);
    std::nth_element(begin, begin + static_cast<std::ptrdiff_t>(excess), end,
                     [](const Entry& a, const Entry& b) { return a.notice.wts < b.notice.wts; });
    for (std::size_t i = 0; i < excess; ++i) raise_min_wts(entries_[i].notice.wts);
    std::copy(begin + static_cast<std::ptrdiff_t>(excess), end, begin);
    std::sort(begin, begin + static_cast<std::ptrdiff_t>(capacity_),
              [](const Entry& a, const Entry& b) { return a.sequence < b.sequence; });
    rebuild(capacity_);
    return excess;
}

void Signature::forget_all() {
    // Entry by entry: an empty barrier must not pay for the size of the index.
    for (std::size_t i = 0; i < used_; ++i) index_[entries_[i].slot] = 0;
    used_ = live_ = 0;
}

}  // namespace hiroba::dsm
