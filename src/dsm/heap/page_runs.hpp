// SPDX-License-Identifier: BSD-3-Clause
// Role: which pages of an arena are free: best fit over runs of pages that grow together again.
// Invariant: no two free runs touch; the tree holds each run once, ordered by (length, first page);
// nothing depends on addresses or chance, so the same calls give the same pages on every run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.hpp"
#include "base/sparse_array.hpp"

namespace hiroba::dsm {

/// Pages [first, first + count); `fresh`: all zero, since each was never handed out or discarded.
struct ArenaRun {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    bool fresh = false;
};

/// Thread: one at a time (the arena's page latch).
class PageRuns {
public:
    /// All of `pages` free and fresh. At most 2^32 - 2.
    static Result<PageRuns> create(std::uint32_t pages);

    /// The smallest free run that holds `count` pages starting at a multiple of `alignment` (a
    /// power of two) counted from page -`phase`; among equals the lowest. Empty: no such run.
    std::optional<ArenaRun> take(std::uint32_t count, std::uint32_t alignment,
                                 std::uint32_t phase) noexcept;
    /// Where so many free pages begin, a run's first page for take_at(): behind all that were ever
    /// handed out, if there are so many.
    std::optional<std::uint32_t> find_for_reserve(std::uint32_t count) noexcept;
    /// Whether a free page is not fresh.
    bool is_used(std::uint32_t page) const noexcept {
        return (used_[page / 64] >> page % 64 & 1) != 0;
    }
    /// Takes the `count` pages from `first` on, if a free run of so many starts there.
    bool take_at(std::uint32_t first, std::uint32_t count) noexcept;
    /// Gives back pages that take() or take_at() handed out.
    void give(std::uint32_t first, std::uint32_t count) noexcept;
    /// As give(), of pages that are zero again.
    void give_fresh(std::uint32_t first, std::uint32_t count) noexcept;
    /// Takes, out of free runs of at least `least` pages, parts with pages that are not fresh, into
    /// `parts`; returns how many. Each part is a multiple of `alignment` long and starts at one,
    /// as with take().
    std::size_t take_used(std::uint32_t least, std::uint32_t alignment, std::uint32_t phase,
                          std::span<ArenaRun> parts) noexcept;

    std::uint32_t free_pages() const noexcept { return free_pages_; }
    /// Free pages that are not fresh.
    std::uint32_t used_free_pages() const noexcept { return used_free_pages_; }
    std::uint32_t runs() const noexcept { return runs_; }

private:
    // A tree node is named by its run's first page + 1; 0 is no node.
    using Node = std::uint32_t;
    struct Links {
        Node left, right;
        std::uint32_t count;   ///< pages of the free run that starts here; 0: none does
        Node run_ending_here;  ///< the run whose last page this is
    };
    struct Key {
        std::uint32_t count;
        Node node;
        auto operator<=>(const Key&) const = default;
    };

    Key key_of(Node node) const noexcept { return {links_[node].count, node}; }
    void insert(std::uint32_t first, std::uint32_t count) noexcept;
    void erase(Node node) noexcept;
    Node at_least(Key key) const noexcept;
    void split(Node tree, Key key, Node& below, Node& from) noexcept;
    Node join(Node left, Node right) noexcept;
    ArenaRun carve(Node node, std::uint32_t first, std::uint32_t count) noexcept;
    template <class Visit>
    void for_used_words(std::uint32_t first, std::uint32_t end, Visit&& visit) noexcept;
    ArenaRun used_part(Node node, std::uint32_t alignment, std::uint32_t phase) const noexcept;

    SparseArray<Links> links_;
    Node root_ = 0;
    std::uint32_t free_pages_ = 0;
    std::uint32_t runs_ = 0;
    std::uint32_t fresh_from_ = 0;  ///< pages from here on were never handed out
    std::uint32_t used_free_pages_ = 0;
    SparseArray<std::uint64_t> used_;  ///< a bit for each page that is not fresh
};

}  // namespace hiroba::dsm
