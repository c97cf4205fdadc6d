// SPDX-License-Identifier: BSD-3-Clause
// Role: one node's share of the heap: small blocks in spans of 64 KiB, large ones as whole pages.
// Invariant: it never reads or writes the memory it manages. What other nodes need to know of a
// block is one word for its page in `table`; everything else lies in memory private to the node.
// Lock order: a class's latch, then the latch of the pages. Lowest free place first, so the same
// calls give the same addresses on every run.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/latch.hpp"
#include "base/result.hpp"
#include "base/sparse_array.hpp"
#include "dsm/heap/index_set.hpp"
#include "dsm/heap/page_runs.hpp"
#include "dsm/heap/size_class.hpp"
#include "dsm/memory/address_map.hpp"

namespace hiroba::dsm {

/// What the table says of one page: 0, or the kind and the bytes of the block(s) starting in it.
struct PageWord {
    static constexpr std::uint64_t small_bit = std::uint64_t{1} << 63;
    static constexpr std::uint64_t large_bit = std::uint64_t{1} << 62;
    /// Says of a block's first page: it is large, and only pages with the next bit may have been
    /// written.
    static constexpr std::uint64_t reserved_bit = std::uint64_t{1} << 61;
    /// Marks a page of a reserved block; set by any node.
    static constexpr std::uint64_t committed_bit = std::uint64_t{1} << 60;

    static constexpr bool is_small(std::uint64_t word) { return (word & small_bit) != 0; }
    static constexpr bool is_large(std::uint64_t word) { return (word & large_bit) != 0; }
    static constexpr std::size_t block_bytes(std::uint64_t word) {
        return word & ~(small_bit | large_bit | reserved_bit | committed_bit);
    }
};

/// Thread: any, at once.
class Arena {
public:
    struct Block {
        std::uintptr_t address = 0;
        bool zeroed = false;  ///< never handed out, or given back to the machine since
    };

    static Result<std::unique_ptr<Arena>> create(AddressRange range);
    /// Words of the table for an arena of `bytes`.
    static constexpr std::size_t table_words(std::size_t bytes) { return bytes / page_bytes; }
    /// The table: one zero word for each page of `range`, written here, read by any
    /// node with atomic loads. Before the first allocate(); must outlive the arena.
    void publish_in(std::uint64_t* table) noexcept { table_ = table; }

    /// Empty: no room. `alignment` a power of two.
    std::optional<Block> allocate(std::size_t bytes, std::size_t alignment) noexcept;
    /// A large block of which a part will be used: what commit() names. Freed, the rest of it is as
    /// fresh as it was. Pages that were not fresh count as committed. Resized, it is none any more.
    std::optional<Block> reserve(std::size_t bytes) noexcept;
    bool is_reserved(std::uintptr_t block) const noexcept {
        return block - base_ < std::size_t{pages_} * page_bytes &&
               (word_of(page_of(block)) & PageWord::reserved_bit) != 0;
    }
    /// The program may write these pages of a reserved block from now on.
    void commit(AddressRange range) noexcept;
    /// The first part of `within`, whole pages of the arena, that has been committed; or none.
    AddressRange first_committed(AddressRange within) const noexcept;
    /// False: no allocated block starts at `address`, and nothing was done.
    [[nodiscard]] bool deallocate(std::uintptr_t address) noexcept;
    /// Makes a large block that starts at `address` `bytes` long where it is, giving back pages or
    /// taking free ones behind it. False: it cannot be done there, and nothing was done.
    bool resize(std::uintptr_t address, std::size_t bytes) noexcept;
    /// Bytes usable at a block's start; 0 when its page holds no block.
    std::size_t usable_bytes(std::uintptr_t address) const noexcept;

    /// Gives back the empty spans that are kept for the next allocation of their class.
    void trim() noexcept;
    std::size_t bytes_free() noexcept;
    /// Bytes in free pages that are not fresh: they may be in memory.
    std::size_t freed_bytes() const noexcept {
        // Relaxed: a hint, written under the latch of the pages.
        return freed_pages_.load(std::memory_order_relaxed) * page_bytes;
    }
    /// The least that freed_bytes() was since the last call.
    std::size_t take_freed_low() noexcept;
    /// Bytes handed out since the last call that had been given back to the machine, as far as the
    /// most that was ever in memory tells.
    std::size_t take_taken_again() noexcept;
    /// The most that was ever in memory and not free.
    std::size_t most_used_bytes() noexcept;
    /// Takes pages of those out of the arena, in whole blocks of `block_bytes` (a power of two);
    /// largest runs first. Returns how many of `ranges` it has filled.
    std::size_t take_freed(std::span<AddressRange> ranges, std::size_t block_bytes) noexcept;
    /// Makes free what take_freed() took; `zero`: no byte of it is anything else, on any node.
    void give_back(AddressRange range, bool zero) noexcept;
    std::uint32_t free_runs() noexcept;

    /// Holds every latch, so that a fork() finds the arena whole in the child.
    void lock_all() noexcept;
    void unlock_all() noexcept;

private:
    static constexpr std::size_t span_bytes = std::size_t{64} * 1024;
    static constexpr std::uint32_t span_pages = span_bytes / page_bytes;
    static constexpr std::uint32_t words_max = span_bytes / small_step_bytes / 64;

    /// A span's bookkeeping, guarded by its class's latch. A set bit is a block handed out (or a
    /// place behind the last block).
    struct Span {
        std::uint32_t size_class;
        std::uint16_t free_blocks;
        std::uint16_t used_up_to;  ///< blocks from here on were never handed out
        std::uint16_t first_word;  ///< no zero bit in the words before it
        bool fresh;                ///< its pages were zero when it was opened
        std::uint64_t used[words_max];
    };
    struct alignas(cache_line_bytes) SizeClass {
        Latch latch;
        IndexSet with_room;  ///< spans with a free block, kept empty ones included
        std::uint32_t kept_empty = IndexSet::none;
    };

    Arena() = default;
    std::optional<Block> allocate_small(std::uint32_t size_class) noexcept;
    std::optional<Block> allocate_large(std::size_t bytes, std::size_t alignment) noexcept;
    bool deallocate_small(std::uintptr_t address, std::size_t block_bytes) noexcept;
    bool deallocate_large(std::uintptr_t address) noexcept;
    void give_reserved(std::uint32_t first, std::uint32_t count) noexcept;
    std::uint32_t open_span(std::uint32_t size_class) noexcept;
    void close_span(SizeClass& in, std::uint32_t span) noexcept;
    void keep_or_close(SizeClass& in, std::uint32_t span) noexcept;
    Block take_block(SizeClass& in, std::uint32_t span) noexcept;

    void note_freed() noexcept {
        const std::size_t now = runs_.used_free_pages();
        freed_low_pages_ = std::min(freed_low_pages_, now);
        freed_pages_.store(now, std::memory_order_relaxed);
    }
    void note_taken(const ArenaRun& run) noexcept;
    std::uint32_t page_of(std::uintptr_t address) const noexcept {
        return static_cast<std::uint32_t>((address - base_) / page_bytes);
    }
    std::uint64_t word_of(std::uint32_t page) const noexcept;
    void set_word(std::uint32_t page, std::uint64_t word) noexcept;

    std::uintptr_t base_ = 0;
    std::uint32_t pages_ = 0;
    std::uint32_t table_skip_ = 0;  ///< pages of the range before base_
    std::uint64_t* table_ = nullptr;
    SparseArray<Span> spans_;
    std::array<SizeClass, size_classes> classes_;
    alignas(cache_line_bytes) Latch page_latch_;
    PageRuns runs_;
    std::atomic<std::size_t> freed_pages_{0};  ///< of runs_, for threads without the latch
    std::size_t freed_low_pages_ = 0;          ///< its least since take_freed_low()
    std::size_t pages_in_memory_ = 0;          ///< not fresh, free or not
    std::size_t most_in_memory_ = 0;
    std::size_t most_used_ = 0;          ///< pages in memory and not free
    std::size_t pages_taken_again_ = 0;  ///< since take_taken_again()
};

}  // namespace hiroba::dsm
