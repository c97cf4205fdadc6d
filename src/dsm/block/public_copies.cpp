// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/block/public_copies.hpp"

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>

#include "dsm/memory/merge.hpp"

namespace hiroba::dsm {

namespace {

/// All, if the version here names other bytes elsewhere: it was discarded and not changed since.
Lines unnamed_lines(const BlockRecord& own) noexcept {
    return own.copy_since[0].base == 0 ? own.copy_since[0].lines : 0;
}

}  // namespace

// Reads as little as possible of what another core has in its cache: a line comes in some 50 to
// 100 ns. A second try reads whatever the first has, and more: lines only join those that differ
// from a version.
PublicCopies::Read PublicCopies::read(NodeId node, BlockId block, std::byte* to,
                                      Room room) noexcept {
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
        const Lines lines =
            unnamed_lines(record(block)) | changed_since(node, block, own_wts(block));
        const std::uint64_t begin = std::uint64_t{block} * block_bytes_;
        std::size_t read = 0;
        for_runs(lines, [&](std::size_t at, std::size_t bytes) {
            read += bytes;
            data_.get({node, begin + at}, {to + at, bytes});
        });
        // The bytes must be read before the version is looked at again; pairs with the release
        // fence behind the odd version in change_own().
        std::atomic_thread_fence(std::memory_order_acquire);
        if (records_.load(version_at) != before) continue;
        if (room == Room::empty) {
            for_runs(~lines, [&](std::size_t at, std::size_t bytes) {
                std::memcpy(to + at, own(block) + at, bytes);
            });
        }
        return {version, read};
    }
}

// All of them, if the node does not say.
Lines PublicCopies::changed_since(NodeId node, BlockId block, Timestamp version) noexcept {
    const std::uint64_t since_at =
        std::uint64_t{block} * sizeof(BlockRecord) + offsetof(BlockRecord, copy_since);
    for (std::size_t i = 0; i < BlockRecord::versions; ++i) {
        const std::uint64_t at = since_at + i * sizeof(LinesSince);
        const std::uint64_t base = records_.load({node, at + offsetof(LinesSince, base)});
        if (base != version.value + 1) continue;
        return records_.load({node, at + offsetof(LinesSince, lines)});
    }
    return all_lines;
}

template <class Visit>
void PublicCopies::for_runs(Lines lines, Visit&& visit) const noexcept {
    const std::size_t line_bytes = block_bytes_ / lines_of_block;
    std::size_t line = 0;
    while (lines != 0) {
        const auto skipped = static_cast<std::size_t>(std::countr_zero(lines));
        line += skipped;
        lines >>= skipped;
        const auto run = static_cast<std::size_t>(std::countr_one(lines));
        visit(line * line_bytes, run * line_bytes);
        line += run;
        lines = run == lines_of_block ? 0 : lines >> run;
    }
}

std::optional<CarriedLines> PublicCopies::little_changed(BlockId block, Timestamp wts) noexcept {
    const BlockRecord& mine = record(block);
    if (mine.copy_wts != wts.value) return std::nullopt;
    CarriedLines made{};
    const std::size_t line_bytes = block_bytes_ / lines_of_block;
    for (std::size_t i = 0; i < BlockRecord::versions; ++i) {
        const LinesSince& since = mine.copy_since[i];
        const auto lines = static_cast<std::size_t>(std::popcount(since.lines));
        if (since.base == 0 || lines * line_bytes > CarriedLines::bytes_max) break;
        made.bases[i] = since.base;
        made.lines = since.lines;  // all of the newer bases', too
    }
    if (made.bases[0] == 0) return std::nullopt;
    made.wts = mine.copy_wts;
    made.stamp = mine.copy_stamp;
    made.change = mine.copy_change;
    made.block = block;
    made.node = self_;
    std::size_t taken = 0;
    for_runs(made.lines, [&](std::size_t at, std::size_t bytes) {
        std::memcpy(made.bytes + taken, own(block) + at, bytes);
        taken += bytes;
    });
    made.length = taken;
    return made;
}

std::optional<PublicCopies::Read> PublicCopies::put_together(NodeId node, BlockId block,
                                                             Timestamp wts, const std::byte* base,
                                                             std::byte* to) noexcept {
    if (base == nullptr && unnamed_lines(record(block)) != 0) return std::nullopt;
    const auto came = came_.find(block, node, wts, record(block).copy_wts + 1);
    if (!came) return std::nullopt;
    if (base == nullptr) base = own(block);
    if (base != to) std::memcpy(to, base, block_bytes_);
    std::size_t taken = 0;
    for_runs(came->lines, [&](std::size_t at, std::size_t bytes) {
        std::memcpy(to + at, came->bytes + taken, bytes);
        taken += bytes;
    });
    return Read{{wts, Stamp::from_raw(came->stamp), LastChange::decode(came->change)}, taken};
}

// Version and wts, the bytes, and the version again, all in one exchange: a page fetch is a round
// trip, not four.
PublicCopies::Read PublicCopies::read_far(NodeId node, BlockId block, std::byte* to) noexcept {
    Reading reading{*this, block, to};
    Backoff backoff;
    for (;; backoff.pause()) {
        auto accesses = reading.list();
        gas::Segment::in_order(node, accesses);
        reading.made_at(node);
        if (const auto version = reading.read_from(node)) return {*version, block_bytes_};
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
    node_.reset();
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

Stamp PublicCopies::stamp_of(NodeId node, BlockId block) noexcept {
    const std::uint64_t record_at = std::uint64_t{block} * sizeof(BlockRecord);
    return Stamp::from_raw(records_.load({node, record_at + offsetof(BlockRecord, copy_stamp)}));
}

void PublicCopies::discard(BlockId first, std::size_t count) noexcept {
    data_.discard(std::uint64_t{first} * block_bytes_, count * block_bytes_);
    for (std::size_t i = 0; i < count; ++i) {
        BlockRecord& mine = record(first + static_cast<BlockId>(i));
        if (mine.copy_version == 0) continue;  // zeros everywhere, of version 0
        for (LinesSince& since : mine.copy_since) {
            std::atomic_ref{since.base}.store(0, std::memory_order_relaxed);
            std::atomic_ref{since.lines}.store(0, std::memory_order_relaxed);
        }
        std::atomic_ref{mine.copy_since[0].lines}.store(all_lines, std::memory_order_relaxed);
    }
}

void PublicCopies::publish(BlockId block, const std::byte* from, Version version,
                           std::optional<Met> met) noexcept {
    // Lines that are equal stay as they are in the caches of those who have read them.
    change_own(block, version, met,
               [&](std::byte* copy) { return copy_changes(copy, from, block_bytes_, nullptr); });
}

void PublicCopies::adopt(BlockId block, Version version) noexcept {
    change_own(block, version, {}, [](std::byte*) { return all_lines; });
}

void PublicCopies::fill(BlockId block, const std::byte* from) noexcept {
    std::memcpy(data_.local() + std::uint64_t{block} * block_bytes_, from, block_bytes_);
}

void PublicCopies::publish_changes(BlockId block, const std::byte* live, Version version,
                                   std::uint64_t* noted) noexcept {
    change_own(block, version, {},
               [&](std::byte* copy) { return copy_changes(copy, live, block_bytes_, noted); });
}

void PublicCopies::publish_part(BlockId block, std::size_t at, const std::byte* from,
                                std::size_t bytes, Version version) noexcept {
    const std::size_t line_bytes = block_bytes_ / lines_of_block;
    change_own(block, version, {}, [&](std::byte* copy) {
        std::memcpy(copy + at, from, bytes);
        Lines lines = 0;
        for (std::size_t line = at / line_bytes; line <= (at + bytes - 1) / line_bytes; ++line)
            lines |= Lines{1} << line;
        return lines;
    });
}

namespace {

/// What the copy equals but for `lines`, in place of the oldest that is known; all others differ
/// in these lines, too.
void note_lines(LinesSince (&since)[BlockRecord::versions], Timestamp version,
                Lines lines) noexcept {
    const auto store = [](std::uint64_t& word, std::uint64_t value) {
        std::atomic_ref{word}.store(value, std::memory_order_relaxed);
    };
    for (std::size_t i = BlockRecord::versions - 1; i > 0; --i) {
        store(since[i].base, since[i - 1].base);
        store(since[i].lines, since[i - 1].lines | lines);
    }
    store(since[0].base, version.value + 1);
    store(since[0].lines, lines);
}

}  // namespace

/// change(copy) returns the lines in which the copy then differs from what it was (invariant 16).
template <class Change>
void PublicCopies::change_own(BlockId block, Version next, std::optional<Met> met,
                              Change&& change) noexcept {
    BlockRecord& mine = record(block);
    HIROBA_INVARIANT(next.wts.value >= mine.copy_wts,
                     "block %u: copy of %lu replaced by %lu (invariant 2)", block, mine.copy_wts,
                     next.wts.value);
    std::atomic_ref version{mine.copy_version};
    const std::uint64_t before = version.load(std::memory_order_relaxed);  // ours under the latch
    version.store(before + 1, std::memory_order_relaxed);
    // The odd version must be seen before any changed byte; pairs with the acquire fence in read().
    std::atomic_thread_fence(std::memory_order_release);
    const Lines lines = change(data_.local() + std::uint64_t{block} * block_bytes_);
    note_lines(mine.copy_since, Timestamp{mine.copy_wts}, lines | unnamed_lines(mine));
    if (met) note_lines(mine.copy_since, met->wts, met->changed);
    std::atomic_ref{mine.copy_wts}.store(next.wts.value, std::memory_order_relaxed);
    std::atomic_ref{mine.copy_stamp}.store(next.stamp.raw(), std::memory_order_relaxed);
    std::atomic_ref{mine.copy_change}.store(next.change.encode(), std::memory_order_relaxed);
    version.store(before + 2, std::memory_order_release);  // pairs with the loads in read()
}

}  // namespace hiroba::dsm
