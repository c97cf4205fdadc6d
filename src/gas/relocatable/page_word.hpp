// SPDX-License-Identifier: BSD-3-Clause
// Role: the words that say where a page is: the directory node's, which is the truth, and each
// node's copy of it with what is happening to it; and which node is the directory node of a page.
// Source: Endo & Taura, MGAS-2, section 3.1.
//
// Invariant: a page lies at the same offset in the memory of whichever node owns it, so the owner's
// number is all the metadata there is (docs/decisions/pages-keep-their-offset.md). Versions count a
// page's changes, modulo 2^version_bits; no message is older than half of that.
#pragma once

#include <bit>
#include <cstdint>

#include "base/ids.hpp"
#include "gas/relocatable/rank_set.hpp"

namespace hiroba::gas {

inline constexpr unsigned version_bits = 18;
inline constexpr std::uint32_t version_mask = (1u << version_bits) - 1;
inline constexpr unsigned rank_bits = 10;
inline constexpr std::uint32_t rank_mask = (1u << rank_bits) - 1;
static_assert(space_nodes_max == 1u << rank_bits);
inline constexpr unsigned token_bits = 12;
inline constexpr std::uint16_t token_mask = (1u << token_bits) - 1;

/// The directory node's word of a page, beside its sharers.
struct PageWord {
    bool live = false;    ///< allocated
    bool fixed = false;   ///< may not move
    bool lost = false;    ///< its bytes died with node `owner`
    bool moving = false;  ///< node `mover` changes it; all else is as before
    std::uint16_t owner = 0;
    std::uint16_t mover = 0;
    std::uint32_t limit = 0;  ///< bytes that are allocated, 1 to the page's size of 2 MiB at most
    std::uint32_t version = 0;

    constexpr std::uint64_t pack() const noexcept {
        return std::uint64_t{live} | std::uint64_t{fixed} << 1 | std::uint64_t{lost} << 2 |
               std::uint64_t{moving} << 3 | std::uint64_t{owner} << 4 | std::uint64_t{mover} << 14 |
               std::uint64_t{limit} << 24 | std::uint64_t{version} << 46;
    }
    static constexpr PageWord unpack(std::uint64_t word) noexcept {
        return {(word & 1) != 0,
                (word >> 1 & 1) != 0,
                (word >> 2 & 1) != 0,
                (word >> 3 & 1) != 0,
                static_cast<std::uint16_t>(word >> 4 & rank_mask),
                static_cast<std::uint16_t>(word >> 14 & rank_mask),
                static_cast<std::uint32_t>(word >> 24) & ((1u << 22) - 1),
                static_cast<std::uint32_t>(word >> 46)};
    }
    constexpr bool operator==(const PageWord&) const = default;
    constexpr std::uint32_t next_version() const noexcept { return (version + 1) & version_mask; }
};

/// What a node's copy of the metadata is good for.
enum class PageState : std::uint8_t {
    unknown,  ///< ask the directory node
    asking,   ///< asked; `token` is the question's
    refused,  ///< the answer was: not allocated
    live,     ///< reads and writes go to `owner`
    stopped,  ///< `mover` is about to copy: reads go to `owner`, writes wait
    moved,    ///< reads go to the new `owner`, some still to `former`; writes wait
    leaving,  ///< being freed: nothing goes to it; some reads still to `former`
    lost,     ///< node `owner` died with it
};
static_assert(static_cast<unsigned>(PageState::lost) < 8);  // three bits of CacheWord
static_assert(34 + version_bits + token_bits == 64);

struct CacheWord {
    PageState state = PageState::unknown;
    bool fixed = false;
    std::uint16_t owner = 0;
    std::uint16_t former = 0;
    std::uint16_t mover = 0;
    std::uint32_t version = 0;  ///< of the metadata that reads follow
    std::uint16_t token = 0;    ///< counts questions, modulo 2^token_bits

    constexpr std::uint64_t pack() const noexcept {
        return static_cast<std::uint64_t>(state) | std::uint64_t{fixed} << 3 |
               std::uint64_t{owner} << 4 | std::uint64_t{former} << 14 |
               std::uint64_t{mover} << 24 | std::uint64_t{version} << 34 |
               std::uint64_t{token} << 52;
    }
    static constexpr CacheWord unpack(std::uint64_t word) noexcept {
        return {static_cast<PageState>(word & 7),
                (word >> 3 & 1) != 0,
                static_cast<std::uint16_t>(word >> 4 & rank_mask),
                static_cast<std::uint16_t>(word >> 14 & rank_mask),
                static_cast<std::uint16_t>(word >> 24 & rank_mask),
                static_cast<std::uint32_t>(word >> 34) & version_mask,
                static_cast<std::uint16_t>(word >> 52)};
    }
    constexpr std::uint16_t next_token() const noexcept {
        return static_cast<std::uint16_t>((token + 1u) & token_mask);
    }
    constexpr bool operator==(const CacheWord&) const = default;
    constexpr bool is_readable() const noexcept {
        return state == PageState::live || state == PageState::stopped || state == PageState::moved;
    }
};

/// How the addresses of a job are cut: an arena of pages for collective allocation, then one for
/// each node's own.
struct SpaceShape {
    std::uint32_t nodes = 1;
    std::uint32_t page_shift = 12;
    std::uint64_t arena_pages = 0;  ///< a multiple of run_pages * nodes

    /// So many pages in a row have the same directory node: a range asks few nodes, a small
    /// allocation still asks several.
    static constexpr std::uint64_t run_pages = 16;

    constexpr std::uint64_t page_bytes() const noexcept { return std::uint64_t{1} << page_shift; }
    constexpr std::uint64_t pages() const noexcept { return arena_pages * (nodes + 1); }
    constexpr std::uint64_t first_page(std::uint64_t arena) const noexcept {
        return arena * arena_pages;
    }
    /// 0: the collective one; k + 1: node k's.
    constexpr std::uint64_t arena_of(std::uint64_t page) const noexcept {
        return page / arena_pages;
    }
    /// Which node keeps the page's words, and where among those it keeps.
    struct WordsPlace {
        NodeId at;
        std::uint64_t index = 0;
    };
    constexpr WordsPlace place_of_words(std::uint64_t page) const noexcept {
        const std::uint64_t run = page / run_pages;
        return {NodeId{static_cast<std::uint32_t>(run % nodes)},
                run / nodes * run_pages + page % run_pages};
    }
    constexpr NodeId directory_of(std::uint64_t page) const noexcept {
        return place_of_words(page).at;
    }
    constexpr std::uint64_t directory_index(std::uint64_t page) const noexcept {
        return place_of_words(page).index;
    }
    /// Words that have a bit for each rank; of what a directory node keeps of a page.
    constexpr std::uint32_t sharer_words() const noexcept { return (nodes - 1) / 64 + 1; }
    constexpr std::uint64_t entry_words() const noexcept { return 1 + sharer_words(); }
    constexpr std::uint64_t directory_pages() const noexcept {
        return (pages() / run_pages + nodes - 1) / nodes * run_pages;
    }
};

}  // namespace hiroba::gas
