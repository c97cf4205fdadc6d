// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/engine/public_copies.hpp"

#include <atomic>
#include <cstddef>
#include <cstring>
#include <span>

#include "dsm/memory/merge.hpp"

namespace hiroba::dsm {

Version PublicCopies::read(NodeId node, BlockId block, std::byte* to) noexcept {
    const std::uint64_t record_at = std::uint64_t{block} * sizeof(BlockRecord);
    const gas::GlobalAddress version_at{node, record_at + offsetof(BlockRecord, copy_version)};
    const gas::GlobalAddress wts_at{node, record_at + offsetof(BlockRecord, copy_wts)};
    const gas::GlobalAddress stamp_at{node, record_at + offsetof(BlockRecord, copy_stamp)};
    const gas::GlobalAddress change_at{node, record_at + offsetof(BlockRecord, copy_change)};
    if (records_.reach(version_at, 8) == nullptr) return read_far(node, block, to);
    Backoff backoff;
    for (;; backoff.pause()) {
        const std::uint64_t before = records_.load(version_at);
        if (before % 2 != 0) continue;  // The owner is publishing; it waits for nobody meanwhile.
        const Version version{Timestamp{records_.load(wts_at)},
                              Stamp::from_raw(records_.load(stamp_at)),
                              LastChange::decode(records_.load(change_at))};
        data_.get({node, std::uint64_t{block} * block_bytes_}, {to, block_bytes_});
        // The bytes must be read before the version is looked at again; pairs with the release
        // fence behind the odd version in change_own().
        std::atomic_thread_fence(std::memory_order_acquire);
        if (records_.load(version_at) == before) return version;
    }
}

// Version and wts, the bytes, and the version again, all in one exchange: a page fetch is a round
// trip, not four.
Version PublicCopies::read_far(NodeId node, BlockId block, std::byte* to) noexcept {
    Reading reading{*this, block, to};
    Backoff backoff;
    for (;; backoff.pause()) {
        auto accesses = reading.list();
        gas::Segment::in_order(node, accesses);
        reading.made_at(node);
        if (const auto version = reading.read_from(node)) return *version;
    }
}

std::array<gas::Segment::Access, PublicCopies::Reading::accesses>
PublicCopies::Reading::list() noexcept {
    using Access = gas::Segment::Access;
    static_assert(offsetof(BlockRecord, copy_wts) == offsetof(BlockRecord, copy_version) + 8);
    static_assert(offsetof(BlockRecord, copy_stamp) == offsetof(BlockRecord, copy_version) + 16);
    static_assert(offsetof(BlockRecord, copy_change) == offsetof(BlockRecord, copy_version) + 24);
    const std::uint64_t version_at =
        std::uint64_t{block_} * sizeof(BlockRecord) + offsetof(BlockRecord, copy_version);
    const std::size_t bytes = copies_.block_bytes_;
    return {
        Access::get(copies_.records_, version_at, std::as_writable_bytes(std::span{before_})),
        Access::get(copies_.data_, std::uint64_t{block_} * bytes, {to_, bytes}),
        Access::get(copies_.records_, version_at, std::as_writable_bytes(std::span{&after_, 1}))};
}

std::optional<Version> PublicCopies::Reading::read_from(NodeId node) const noexcept {
    // Odd: the owner was publishing; it waits for nobody meanwhile.
    if (node_ != node || before_[0] % 2 != 0 || after_ != before_[0]) return std::nullopt;
    return Version{Timestamp{before_[1]}, Stamp::from_raw(before_[2]),
                   LastChange::decode(before_[3])};
}

std::uint64_t PublicCopies::word_of(NodeId node, BlockId block, std::size_t at) noexcept {
    std::uint64_t word = 0;
    data_.get({node, std::uint64_t{block} * block_bytes_ + at},
              std::as_writable_bytes(std::span{&word, 1}));
    return word;
}

Timestamp PublicCopies::wts_of(NodeId node, BlockId block) noexcept {
    const std::uint64_t record_at = std::uint64_t{block} * sizeof(BlockRecord);
    return Timestamp{records_.load({node, record_at + offsetof(BlockRecord, copy_wts)})};
}

void PublicCopies::publish(BlockId block, const std::byte* from, Version version) noexcept {
    // Lines that are equal stay as they are in the caches of those who have read them.
    change_own(block, version,
               [&](std::byte* copy) { copy_changes(copy, from, block_bytes_, nullptr); });
}

void PublicCopies::publish_changes(BlockId block, const std::byte* live, Version version,
                                   std::uint64_t* noted) noexcept {
    change_own(block, version,
               [&](std::byte* copy) { copy_changes(copy, live, block_bytes_, noted); });
}

void PublicCopies::publish_part(BlockId block, std::size_t at, const std::byte* from,
                                std::size_t bytes, Version version) noexcept {
    change_own(block, version, [&](std::byte* copy) { std::memcpy(copy + at, from, bytes); });
}

template <class Change>
void PublicCopies::change_own(BlockId block, Version next, Change&& change) noexcept {
    BlockRecord& mine = record(block);
    HIROBA_INVARIANT(next.wts.value >= mine.copy_wts,
                     "block %u: copy of %lu replaced by %lu (invariant 2)", block, mine.copy_wts,
                     next.wts.value);
    std::atomic_ref version{mine.copy_version};
    const std::uint64_t before = version.load(std::memory_order_relaxed);  // ours under the latch
    version.store(before + 1, std::memory_order_relaxed);
    // The odd version must be seen before any changed byte; pairs with the acquire fence in read().
    std::atomic_thread_fence(std::memory_order_release);
    change(data_.local() + std::uint64_t{block} * block_bytes_);
    std::atomic_ref{mine.copy_wts}.store(next.wts.value, std::memory_order_relaxed);
    std::atomic_ref{mine.copy_stamp}.store(next.stamp.raw(), std::memory_order_relaxed);
    std::atomic_ref{mine.copy_change}.store(next.change.encode(), std::memory_order_relaxed);
    version.store(before + 2, std::memory_order_release);  // pairs with the loads in read()
}

}  // namespace hiroba::dsm
