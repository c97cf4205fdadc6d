// SPDX-License-Identifier: BSD-3-Clause
// Role: what a miss brings along: the blocks behind it where misses come in a row, and those around
// it where they lie about in no order (docs/decisions/spread-misses.md). Runs in the faulting
// thread behind its own miss, and allocates nothing. Invariant: latches are only tried, never
// waited for (invariant 10), and stay closed until the blocks are mapped, so no acquire can come in
// between.
#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <utility>

#include "dsm/engine/node.hpp"
#include "dsm/thread_part.hpp"

namespace hiroba::dsm {

// Misses in a row are answered ahead: the next blocks come too, and all are mapped in one call. A
// lone miss may bring its whole part.
void Node::fetch_around(BlockId block, std::uint32_t last_time) noexcept {
    const ReadAhead::Guess guess = guess_.read_ahead.missed(block, last_time);
    const std::uint32_t window = guess.window;
    if (window == 0 && fetch_below(block)) return;
    const bool writes = (window > 0 || guess.spread) && is_being_written(block);
    // What lies around another node's own is its own, too: each look would be an exchange.
    const bool looks_in_vain = joins() && thread_part().has_asked;
    if (guess.spread && !writes) return looks_in_vain ? void() : fetch_part(block);
    if (const std::uint32_t taken = writes && window > 0 ? take_ahead(block + 1, window) : 0;
        taken > 0) {
        guess_.read_ahead.brought(guess, block, taken);
        return;
    }
    const std::uint32_t got =
        window > 0 ? fetch_row(block + 1, window, program_range(block).end(), writes) : 0;
    const std::uint32_t length = guess_.read_ahead.brought(guess, block, got);
    BlockEntry& head = entries_[guess.head];
    if (length <= 1 || !head.latch.try_lock()) return;
    head.run.length = static_cast<std::uint16_t>(length - 1);
    head.latch.unlock();
}

// Brings the blocks from `first` on, up to the first that may not come, `count_max` at most: as
// long as this node remembers a notice of each, or has its newest version. The blocks follow what
// ends at the address `end`. Returns how many came.
std::uint32_t Node::fetch_row(BlockId first_of_row, std::uint32_t count_max, std::uintptr_t end,
                              bool writes) noexcept {
    std::uint32_t got = 0;
    const bool seals = !writes && options_.late_twins > 0 && count_max >= options_.late_twins;
    while (got < count_max) {
        const BlockId first = first_of_row + got;
        if (seals) seal(first);
        const std::uint32_t latched = latch_for_fetch(first, joins() ? count_max - got : 1, end);
        std::array<BlockId, together_max> blocks;
        std::iota(blocks.begin(), blocks.begin() + latched, first);
        const std::uint32_t brought =
            fetch_ahead_together(std::span{blocks}.first(latched), true, writes);
        std::uint32_t came = 0;
        for (; came < latched && (brought >> came & 1) != 0; ++came) {
            BlockEntry& entry = entries_[first + came];
            note_followed(entry);
            guess_.predictor.note_miss(first + came);
            if (writes) note_write_after_read(entry);
            entry.state =
                take(entry, writes ? BlockEvent::write_fault : BlockEvent::read_fault).next;
            end = program_range(first + came).end();
        }
        for (std::uint32_t i = came; i < latched; ++i) entries_[first + i].latch.unlock();
        got += came;
        if (came == 0 || came < latched) break;
    }
    map_ahead(first_of_row, got, writes ? Access::write : Access::read);
    for (std::uint32_t i = 0; i < got; ++i) entries_[first_of_row + i].latch.unlock();
    count(&PlaceCounters::fetched_ahead, got);
    return got;
}

// Brings what may come of the part that `block` lies in, but for a sample.
void Node::fetch_part(BlockId block) noexcept {
    const BlockId begin = SpreadMisses::begin_of(block), sample = SpreadMisses::sample_with(block);
    const auto end = static_cast<BlockId>(
        std::min<std::size_t>(std::size_t{begin} + SpreadMisses::part_blocks, entries_.size()));
    for (BlockId at = begin; at < end;) {
        // Relaxed: a look at the state of a block that does not come costs no latch.
        const BlockState state =
            std::atomic_ref{entries_[at].state}.load(std::memory_order_relaxed);
        const AddressRange range = program_range(at);
        if (!may_come_unasked(state) || range.address == 0) {
            ++at;
        } else if (at == sample) {
            guess_.read_ahead.spread().left_out(sample);
            ++at;
        } else {
            const BlockId stop = at < sample && sample < end ? sample : end;
            const std::uint32_t got = fetch_row(at, stop - at, range.address, false);
            at += std::max(got, 1u);
        }
    }
}

// Takes blocks that no node has touched, for a thread that writes one block after the other: from
// `first` up to the first of `count_max` that some node has touched. The blocks follow the one
// before `first`. Returns how many were taken; they are mapped in one call.
std::uint32_t Node::take_ahead(BlockId first, std::uint32_t count_max) noexcept {
    AddressRange taken{program_range(first - 1).end(), 0};
    std::uint32_t count_taken = 0;
    for (; count_taken < count_max && first + count_taken < entries_.size(); ++count_taken) {
        const BlockId block = first + count_taken;
        const AddressRange range = program_range(block);
        BlockEntry& entry = entries_[block];
        if (range.address != taken.end() || !entry.latch.try_lock()) break;
        if (entry.state != BlockState::invalid || !take_untouched(block)) {
            entry.latch.unlock();
            break;
        }
        taken.bytes += range.bytes;
    }
    if (count_taken > 0) engine_->map(taken, Access::write);
    for (std::uint32_t i = 0; i < count_taken; ++i) entries_[first + i].latch.unlock();
    return count_taken;
}

// Likewise, where misses come one below the other. Returns whether any came.
bool Node::fetch_below(BlockId block) noexcept {
    const std::uint32_t window = guess_.read_ahead.below().missed(block);
    std::uint32_t got = 0;
    if (window > 0) {
        const bool writes = is_being_written(block);
        const std::uintptr_t first = program_range(block - window).address;
        if (writes) got = take_below(block, window);
        const bool is_row =
            first != 0 && first + window * block_bytes() == program_range(block).address;
        if (got == 0 && is_row && fetch_row(block - window, window, first, writes) == window)
            got = window;
    }
    guess_.read_ahead.below().brought(block, got);
    return got > 0;
}

// As take_ahead(), from the one below `block` downwards.
std::uint32_t Node::take_below(BlockId block, std::uint32_t count_max) noexcept {
    AddressRange taken{program_range(block).address, 0};
    std::uint32_t count_taken = 0;
    for (; count_taken < std::min(count_max, block); ++count_taken) {
        const BlockId next = block - 1 - count_taken;
        const AddressRange range = program_range(next);
        BlockEntry& entry = entries_[next];
        if (range.address == 0 || range.end() != taken.address || !entry.latch.try_lock()) break;
        if (entry.state != BlockState::invalid || !take_untouched(next)) {
            entry.latch.unlock();
            break;
        }
        taken = {range.address, taken.bytes + range.bytes};
    }
    if (count_taken > 0) engine_->map(taken, Access::write);
    for (std::uint32_t i = 0; i < count_taken; ++i) entries_[block - 1 - i].latch.unlock();
    return count_taken;
}

// Takes the latches of blocks from `first` on, up to the first that may not come, together_max at
// most. The blocks follow what ends at the address `at`.
std::uint32_t Node::latch_for_fetch(BlockId first, std::uint32_t count_max,
                                    std::uintptr_t at) noexcept {
    const std::size_t most =
        std::min<std::size_t>({count_max, together_max, entries_.size() - first});
    std::uint32_t latched = 0;
    for (; latched < most; ++latched) {
        const BlockId block = first + latched;
        const AddressRange range = program_range(block);
        if (range.address != std::exchange(at, range.end())) break;
        BlockEntry& entry = entries_[block];
        if (!entry.latch.try_lock()) break;
        if (may_come_unasked(entry.state) && !entry.held_back && !entry.guards_stack &&
            !must_stay(block))
            continue;
        entry.latch.unlock();
        break;
    }
    return latched;
}

// With the latches of [first, +count), whose addresses follow each other. Of a sample of them the
// use is to be noticed: they are readable as the others are and not mapped, as if the kernel had
// dropped the mapping.
void Node::map_ahead(BlockId first, std::uint32_t count_ahead, Access access) noexcept {
    constexpr std::uint32_t one_in = 8;
    AddressRange run;
    const auto map_run = [&] {
        if (run.bytes > 0) engine_->map(run, access);
        run = {};
    };
    for (BlockId block = first; block < first + count_ahead; ++block) {
        // Spread over the blocks, so that no stride of the program misses all of them.
        if (options_.watch_ahead && entries_[block].state == BlockState::readonly &&
            (block * 0x9E37'79B9u >> 16) % one_in == 0) {
            entries_[block].watched = true;
            count(&PlaceCounters::ahead_watched);
            map_run();
            continue;
        }
        entries_[block].watched = false;
        const AddressRange range = program_range(block);
        if (run.bytes == 0) run.address = range.address;
        run.bytes += range.bytes;
    }
    map_run();
}

}  // namespace hiroba::dsm
