// SPDX-License-Identifier: BSD-3-Clause
// Role: allocation and release inside one arena.
// Invariant: a page's word is written after the span or run behind it is in order and cleared
// before its pages are given back, so a reader never finds a block that is not there.
#include "dsm/heap/arena.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <utility>

#include "base/fatal.hpp"

namespace hiroba::dsm {

namespace {

/// Programs allocate arrays of a power of two, one behind the other, and walk all of them together.
/// At such distances their lines meet in the same sets of every cache. So a large block gets some
/// pages more, untouched, at most a twentieth (docs/layers/heap.md#stagger). An odd number: sixteen
/// blocks lie at sixteen places of 64 KiB.
constexpr std::uint32_t stagger_pages_max = 13, stagger_share = 20;

std::uint32_t pages_for(std::size_t bytes) noexcept {
    return static_cast<std::uint32_t>(round_up(std::max<std::size_t>(bytes, 1), page_bytes) /
                                      page_bytes);
}

constexpr std::size_t bytes_of(std::uint32_t pages) noexcept {
    return std::size_t{pages} * page_bytes;
}

std::uint32_t stagger_of(std::uint32_t pages) noexcept {
    const std::uint32_t most = std::min(stagger_pages_max, pages / stagger_share);
    return most == 0 ? 0 : (most - 1) | 1;
}

}  // namespace

Result<std::unique_ptr<Arena>> Arena::create(AddressRange range) {
    std::unique_ptr<Arena> arena{new Arena};
    arena->base_ = round_up(range.address, span_bytes);
    const std::size_t lost = std::min(arena->base_ - range.address, range.bytes);
    const std::size_t pages = round_down(range.bytes - lost, span_bytes) / page_bytes;
    if (pages > 0xffff'fff0u) {
        return Error{ErrorKind::usage, "HIROBA_HEAP: " + std::to_string(range.bytes) +
                                           " bytes for each node are more than 16T"};
    }
    arena->pages_ = static_cast<std::uint32_t>(pages);
    arena->table_skip_ = static_cast<std::uint32_t>(lost / page_bytes);

    auto runs = PageRuns::create(arena->pages_);
    if (!runs) return runs.error();
    arena->runs_ = std::move(*runs);
    const std::uint32_t spans = arena->pages_ / span_pages;
    auto bookkeeping = SparseArray<Span>::reserve(spans + 1);
    if (!bookkeeping) return bookkeeping.error();
    arena->spans_ = std::move(*bookkeeping);
    for (SizeClass& each : arena->classes_) {
        auto with_room = IndexSet::create(spans + 1);
        if (!with_room) return with_room.error();
        each.with_room = std::move(*with_room);
    }
    return arena;
}

std::optional<Arena::Block> Arena::allocate(std::size_t bytes, std::size_t alignment) noexcept {
    if (bytes > std::size_t{pages_} * page_bytes) return std::nullopt;
    std::size_t wanted = bytes;
    if (alignment > small_step_bytes) {
        if (alignment > std::size_t{pages_} * page_bytes) return std::nullopt;
        wanted = round_up(std::max<std::size_t>(bytes, 1), alignment);
    }
    if (wanted > small_bytes_max) return allocate_large(bytes, alignment);

    // A span starts at a multiple of 64 KiB, so a block is as aligned as its class's size.
    std::uint32_t size_class = size_class_of(wanted);
    if (alignment > small_step_bytes) {
        while (size_class < size_classes && class_bytes(size_class) % alignment != 0) ++size_class;
        if (size_class == size_classes) return allocate_large(bytes, alignment);
    }
    auto block = allocate_small(size_class);
    if (block) return block;
    trim();
    return allocate_small(size_class);
}

std::optional<Arena::Block> Arena::allocate_small(std::uint32_t size_class) noexcept {
    SizeClass& in = classes_[size_class];
    std::lock_guard guard{in.latch};
    std::uint32_t span = in.with_room.first();
    if (span == IndexSet::none) {
        span = open_span(size_class);
        if (span == IndexSet::none) return std::nullopt;
        in.with_room.insert(span);
    }
    return take_block(in, span);
}

Arena::Block Arena::take_block(SizeClass& in, std::uint32_t index) noexcept {
    Span& span = spans_[index];
    if (in.kept_empty == index) in.kept_empty = IndexSet::none;
    std::uint32_t word = span.first_word;
    while (span.used[word] == ~std::uint64_t{0}) ++word;
    span.first_word = static_cast<std::uint16_t>(word);
    const auto bit = static_cast<std::uint32_t>(std::countr_one(span.used[word]));
    span.used[word] |= std::uint64_t{1} << bit;
    if (--span.free_blocks == 0) in.with_room.erase(index);

    const std::uint32_t slot = word * 64 + bit;
    const bool zeroed = span.fresh && slot >= span.used_up_to;
    if (slot >= span.used_up_to) span.used_up_to = static_cast<std::uint16_t>(slot + 1);
    return {base_ + std::size_t{index} * span_bytes + slot * class_bytes(span.size_class), zeroed};
}

std::uint32_t Arena::open_span(std::uint32_t size_class) noexcept {
    std::optional<ArenaRun> run;
    {
        std::lock_guard guard{page_latch_};
        run = runs_.take(span_pages, span_pages, 0);
        note_freed();
        if (run) note_taken(*run);
    }
    if (!run) return IndexSet::none;
    const std::uint32_t index = run->first / span_pages;
    const auto blocks = static_cast<std::uint32_t>(span_bytes / class_bytes(size_class));
    Span& span = spans_[index];
    span.size_class = size_class;
    span.free_blocks = static_cast<std::uint16_t>(blocks);
    span.used_up_to = 0;
    span.first_word = 0;
    span.fresh = run->fresh;
    for (std::uint32_t word = 0; word <= blocks / 64 && word < words_max; ++word) {
        const std::uint32_t left = blocks - word * 64;
        span.used[word] = left >= 64 ? 0 : ~std::uint64_t{0} << left;
    }
    for (std::uint32_t page = 0; page < span_pages; ++page) {
        set_word(run->first + page, PageWord::small_bit | class_bytes(size_class));
    }
    return index;
}

void Arena::close_span(SizeClass& in, std::uint32_t span) noexcept {
    in.with_room.erase(span);
    for (std::uint32_t page = 0; page < span_pages; ++page) set_word(span * span_pages + page, 0);
    std::lock_guard guard{page_latch_};
    runs_.give(span * span_pages, span_pages);
    note_freed();
}

/// One empty span of a class stays open, the lower of two: a program that takes and gives back one
/// block in turn would otherwise open a span each time.
void Arena::keep_or_close(SizeClass& in, std::uint32_t span) noexcept {
    std::uint32_t closed = span;
    if (in.kept_empty == IndexSet::none || span < in.kept_empty) {
        closed = std::exchange(in.kept_empty, span);
    }
    if (closed != IndexSet::none) close_span(in, closed);
}

std::optional<Arena::Block> Arena::allocate_large(std::size_t bytes,
                                                  std::size_t alignment) noexcept {
    const std::uint32_t needed = pages_for(bytes);
    // Where more is asked of the place, the next of such blocks would lie twice as far away.
    std::uint32_t count = needed + (alignment <= page_bytes ? stagger_of(needed) : 0);
    const auto alignment_pages =
        static_cast<std::uint32_t>(std::max(alignment, page_bytes) / page_bytes);
    const auto phase = static_cast<std::uint32_t>(base_ / page_bytes) & (alignment_pages - 1);
    for (bool trimmed = false;; trimmed = true) {
        {
            const std::lock_guard guard{page_latch_};
            if (const auto run = runs_.take(count, alignment_pages, phase)) {
                note_freed();
                note_taken(*run);
                set_word(run->first, PageWord::large_bit | std::size_t{count} * page_bytes);
                return Block{base_ + std::size_t{run->first} * page_bytes, run->fresh};
            }
        }
        if (!trimmed) {
            trim();
        } else if (count > needed) {
            count = needed;
        } else {
            return std::nullopt;
        }
    }
}

bool Arena::deallocate(std::uintptr_t address) noexcept {
    if (address < base_ || address - base_ >= std::size_t{pages_} * page_bytes) return false;
    const std::uint64_t word = word_of(page_of(address));
    if (PageWord::is_small(word)) return deallocate_small(address, PageWord::block_bytes(word));
    if (PageWord::is_large(word)) return deallocate_large(address);
    return false;
}

bool Arena::deallocate_small(std::uintptr_t address, std::size_t block_bytes) noexcept {
    SizeClass& in = classes_[size_class_of(block_bytes)];
    std::lock_guard guard{in.latch};
    // The word was read without the latch; a block freed twice may meet another span's life here.
    if (word_of(page_of(address)) != (PageWord::small_bit | block_bytes)) return false;
    const auto index = static_cast<std::uint32_t>((address - base_) / span_bytes);
    const auto inside = static_cast<std::uint32_t>((address - base_) % span_bytes);
    const auto bytes = static_cast<std::uint32_t>(block_bytes);
    const std::uint32_t slot = inside / bytes;
    const auto blocks = static_cast<std::uint32_t>(span_bytes) / bytes;
    Span& span = spans_[index];
    const std::uint64_t bit = std::uint64_t{1} << slot % 64;
    if (inside % bytes != 0 || slot >= blocks || (span.used[slot / 64] & bit) == 0) return false;

    span.used[slot / 64] &= ~bit;
    span.first_word = std::min(span.first_word, static_cast<std::uint16_t>(slot / 64));
    if (span.free_blocks++ == 0) in.with_room.insert(index);
    if (span.free_blocks == blocks) keep_or_close(in, index);
    return true;
}

bool Arena::deallocate_large(std::uintptr_t address) noexcept {
    if ((address - base_) % page_bytes != 0) return false;
    const std::uint32_t page = page_of(address);
    std::lock_guard guard{page_latch_};
    const std::uint64_t word = word_of(page);
    if (!PageWord::is_large(word)) return false;
    const auto count = static_cast<std::uint32_t>(PageWord::block_bytes(word) / page_bytes);
    if ((word & PageWord::reserved_bit) != 0) {
        give_reserved(page, count);
    } else {
        set_word(page, 0);
        runs_.give(page, count);
    }
    note_freed();
    return true;
}

std::optional<Arena::Block> Arena::reserve(std::size_t bytes) noexcept {
    if (bytes > std::size_t{pages_} * page_bytes) return std::nullopt;
    const std::uint32_t count = pages_for(bytes);
    const std::lock_guard guard{page_latch_};
    const auto first = runs_.find_for_reserve(count);
    if (!first) return std::nullopt;
    bool fresh = true;
    std::uint64_t first_word = PageWord::large_bit | PageWord::reserved_bit | bytes_of(count);
    for (std::uint32_t page = *first; page < *first + count; ++page) {
        if (!runs_.is_used(page)) continue;
        fresh = false;
        if (page == *first)
            first_word |= PageWord::committed_bit;
        else
            set_word(page, PageWord::committed_bit);
    }
    runs_.take_at(*first, count);
    note_freed();
    set_word(*first, first_word);
    return Block{base_ + bytes_of(*first), fresh};
}

void Arena::commit(AddressRange range) noexcept {
    for (std::size_t done = 0; done < range.bytes; done += page_bytes) {
        const std::uint32_t page = page_of(range.address + done);
        if (PageWord::is_small(word_of(page))) continue;
        std::atomic_ref{table_[table_skip_ + page]}.fetch_or(
            PageWord::committed_bit, std::memory_order_release);  // pairs with word_of()
    }
}

AddressRange Arena::first_committed(AddressRange within) const noexcept {
    const auto is_committed = [&](std::uintptr_t address) {
        return (word_of(page_of(address)) & PageWord::committed_bit) != 0;
    };
    std::uintptr_t begin = within.address;
    while (begin < within.end() && !is_committed(begin)) begin += page_bytes;
    std::uintptr_t end = begin;
    while (end < within.end() && is_committed(end)) end += page_bytes;
    return {begin, end - begin};
}

/// With the latch of the pages. Each part is a free run at once, so words are cleared before.
void Arena::give_reserved(std::uint32_t first, std::uint32_t count) noexcept {
    const std::uint32_t end = first + count;
    while (first < end) {
        const AddressRange part = first_committed({base_ + bytes_of(first), bytes_of(end - first)});
        const std::uint32_t begin = part.bytes == 0 ? end : page_of(part.address);
        const auto pages = static_cast<std::uint32_t>(part.bytes / page_bytes);
        set_word(first, 0);
        if (begin > first) runs_.give_fresh(first, begin - first);
        for (std::uint32_t page = begin; page < begin + pages; ++page) set_word(page, 0);
        if (pages > 0) runs_.give(begin, pages);
        first = begin + pages;
    }
}

bool Arena::resize(std::uintptr_t address, std::size_t bytes) noexcept {
    if (address < base_ || address - base_ >= std::size_t{pages_} * page_bytes) return false;
    if (bytes <= small_bytes_max || bytes > std::size_t{pages_} * page_bytes) return false;
    const std::uint32_t page = page_of(address);
    const std::uint32_t wanted = pages_for(bytes);
    std::lock_guard guard{page_latch_};
    const std::uint64_t word = word_of(page);
    if (!PageWord::is_large(word) || (address - base_) % page_bytes != 0) return false;
    const auto held = static_cast<std::uint32_t>(PageWord::block_bytes(word) / page_bytes);
    if (wanted > held && !runs_.take_at(page + held, wanted - held)) return false;
    set_word(page, PageWord::large_bit | bytes_of(wanted));
    if (wanted < held) {
        if ((word & PageWord::reserved_bit) != 0)
            give_reserved(page + wanted, held - wanted);
        else
            runs_.give(page + wanted, held - wanted);
    }
    note_freed();
    return true;
}

std::size_t Arena::usable_bytes(std::uintptr_t address) const noexcept {
    if (address < base_ || address - base_ >= std::size_t{pages_} * page_bytes) return 0;
    return PageWord::block_bytes(word_of(page_of(address)));
}

void Arena::trim() noexcept {
    for (SizeClass& each : classes_) {
        std::lock_guard guard{each.latch};
        const std::uint32_t span = std::exchange(each.kept_empty, IndexSet::none);
        if (span != IndexSet::none) close_span(each, span);
    }
}

std::size_t Arena::bytes_free() noexcept {
    std::lock_guard guard{page_latch_};
    return std::size_t{runs_.free_pages()} * page_bytes;
}

// Large runs first: a round has few places, and they are to give back much.
std::size_t Arena::take_freed(std::span<AddressRange> ranges, std::size_t block_bytes) noexcept {
    constexpr std::array<std::uint32_t, 3> least_pages{4096, 256, span_pages};
    constexpr std::size_t parts_max = 64;
    const auto alignment = static_cast<std::uint32_t>(block_bytes / page_bytes);
    const auto phase = static_cast<std::uint32_t>(base_ / page_bytes) & (alignment - 1);
    std::array<ArenaRun, parts_max> parts;
    const std::span<ArenaRun> places = std::span{parts}.first(std::min(parts_max, ranges.size()));
    std::size_t taken = 0;
    std::lock_guard guard{page_latch_};
    for (const std::uint32_t least : least_pages) {
        taken += runs_.take_used(least, alignment, phase, places.subspan(taken));
    }
    note_freed();
    for (std::size_t i = 0; i < taken; ++i) {
        pages_in_memory_ -= std::min<std::size_t>(pages_in_memory_, parts[i].count);
        ranges[i] = {base_ + std::size_t{parts[i].first} * page_bytes,
                     std::size_t{parts[i].count} * page_bytes};
    }
    return taken;
}

void Arena::give_back(AddressRange range, bool zero) noexcept {
    const auto count = static_cast<std::uint32_t>(range.bytes / page_bytes);
    std::lock_guard guard{page_latch_};
    if (zero) {
        runs_.give_fresh(page_of(range.address), count);
    } else {
        runs_.give(page_of(range.address), count);
        pages_in_memory_ += count;
    }
    note_freed();
}

/// With the latch of the pages.
void Arena::note_taken(const ArenaRun& run) noexcept {
    if (!run.fresh) return;
    pages_in_memory_ += run.count;
    const std::size_t grown = pages_in_memory_ - std::min(pages_in_memory_, most_in_memory_);
    most_in_memory_ += grown;
    pages_taken_again_ += run.count - std::min<std::size_t>(run.count, grown);
    const std::size_t free = std::min<std::size_t>(runs_.used_free_pages(), pages_in_memory_);
    most_used_ = std::max(most_used_, pages_in_memory_ - free);
}

std::size_t Arena::most_used_bytes() noexcept {
    std::lock_guard guard{page_latch_};
    return most_used_ * page_bytes;
}

std::size_t Arena::take_freed_low() noexcept {
    std::lock_guard guard{page_latch_};
    return std::exchange(freed_low_pages_, runs_.used_free_pages()) * page_bytes;
}

std::size_t Arena::take_taken_again() noexcept {
    std::lock_guard guard{page_latch_};
    return std::exchange(pages_taken_again_, 0) * page_bytes;
}

std::uint32_t Arena::free_runs() noexcept {
    std::lock_guard guard{page_latch_};
    return runs_.runs();
}

void Arena::lock_all() noexcept {
    for (SizeClass& each : classes_) each.latch.lock();
    page_latch_.lock();
}

void Arena::unlock_all() noexcept {
    page_latch_.unlock();
    for (SizeClass& each : classes_) each.latch.unlock();
}

std::uint64_t Arena::word_of(std::uint32_t page) const noexcept {
    // Pairs with the release store in set_word(), also from another node through the segment.
    return std::atomic_ref{table_[table_skip_ + page]}.load(std::memory_order_acquire);
}

void Arena::set_word(std::uint32_t page, std::uint64_t word) noexcept {
    std::atomic_ref{table_[table_skip_ + page]}.store(word, std::memory_order_release);
}

}  // namespace hiroba::dsm
