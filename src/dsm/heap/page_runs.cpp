// SPDX-License-Identifier: BSD-3-Clause
// Role: the tree of free page runs: a treap whose priorities are a hash of the page number, so that
// it is balanced without a random generator and without a stored priority.
// Invariant: a node's children have lower priority; links of pages inside a run are all zero.
#include "dsm/heap/page_runs.hpp"

#include <algorithm>
#include <bit>

#include "base/bytes.hpp"
#include "base/fatal.hpp"

namespace hiroba::dsm {
namespace {

/// How many runs of fitting length are tried for a fitting start before one is taken that is long
/// enough wherever it starts: keeps an aligned request from walking all runs.
constexpr int alignment_tries_max = 32;

std::uint32_t priority(std::uint32_t node) noexcept {
    std::uint32_t mixed = node * 0x9e37'79b1u;  // the finalizer of MurmurHash3
    mixed = (mixed ^ mixed >> 16) * 0x85eb'ca6bu;
    mixed = (mixed ^ mixed >> 13) * 0xc2b2'ae35u;
    return mixed ^ mixed >> 16;
}

}  // namespace

Result<PageRuns> PageRuns::create(std::uint32_t pages) {
    PageRuns runs;
    auto links = SparseArray<Links>::reserve(std::size_t{pages} + 2);
    if (!links) return links.error();
    runs.links_ = std::move(*links);
    auto used = SparseArray<std::uint64_t>::reserve(pages / 64 + 1);
    if (!used) return used.error();
    runs.used_ = std::move(*used);
    if (pages > 0) runs.insert(0, pages);
    runs.free_pages_ = pages;
    return runs;
}

std::optional<ArenaRun> PageRuns::take(std::uint32_t count, std::uint32_t alignment,
                                       std::uint32_t phase) noexcept {
    if (count == 0) count = 1;
    int tries = 0;
    Node node = at_least({count, 0});
    while (node != 0) {
        const std::uint32_t run_first = node - 1;
        const std::uint32_t first = run_first + (-(run_first + phase) & (alignment - 1));
        const std::uint64_t end = std::uint64_t{first} + count;
        if (first >= run_first && end <= std::uint64_t{run_first} + links_[node].count) {
            return carve(node, first, count);
        }
        const std::uint64_t enough = std::uint64_t{count} + alignment - 1;
        if (++tries == alignment_tries_max && enough > links_[node].count) {
            if (enough > ~std::uint32_t{0}) return std::nullopt;
            node = at_least({static_cast<std::uint32_t>(enough), 0});
        } else {
            node = at_least({links_[node].count, node + 1});
        }
    }
    return std::nullopt;
}

std::optional<std::uint32_t> PageRuns::find_for_reserve(std::uint32_t count) noexcept {
    const auto pages = static_cast<std::uint32_t>(links_.size() - 2);
    const Node last = links_[pages].run_ending_here;
    const std::uint32_t first = last == 0 ? pages : std::max(last - 1, fresh_from_);
    if (count > 0 && count <= pages - first) {
        if (first > last - 1) {  // in two, which would grow together when one is given
            const std::uint32_t begin = last - 1;
            erase(last);
            insert(begin, first - begin);
            insert(first, pages - first);
        }
        return first;
    }
    const Node node = at_least({std::max<std::uint32_t>(count, 1), 0});
    if (node == 0) return std::nullopt;
    return node - 1;
}

ArenaRun PageRuns::carve(Node node, std::uint32_t first, std::uint32_t count) noexcept {
    const std::uint32_t run_first = node - 1;
    const std::uint32_t run_end = run_first + links_[node].count;
    erase(node);
    if (first > run_first) insert(run_first, first - run_first);
    if (first + count < run_end) insert(first + count, run_end - first - count);
    free_pages_ -= count;
    // Pages from fresh_from_ on need no look: a huge block behind them costs their marks alone.
    std::uint32_t used = 0;
    for_used_words(first, std::min(first + count, std::max(first, fresh_from_)),
                   [&](std::uint64_t& word, std::uint64_t mask) {
                       used += static_cast<std::uint32_t>(std::popcount(word & mask));
                   });
    for_used_words(first, first + count,
                   [](std::uint64_t& word, std::uint64_t mask) { word |= mask; });
    used_free_pages_ -= used;
    fresh_from_ = std::max(fresh_from_, first + count);
    return {first, count, used == 0};
}

/// Visits the words of the marks of [first, end), each with a mask of those pages.
template <class Visit>
void PageRuns::for_used_words(std::uint32_t first, std::uint32_t end, Visit&& visit) noexcept {
    while (first < end) {
        const std::uint32_t bit = first % 64;
        const std::uint32_t count = std::min(64 - bit, end - first);
        const std::uint64_t ones =
            count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
        visit(used_[first / 64], ones << bit);
        first += count;
    }
}

bool PageRuns::take_at(std::uint32_t first, std::uint32_t count) noexcept {
    const Node node = first + 1;
    if (std::size_t{node} >= links_.size() || links_[node].count < count) return false;
    carve(node, first, count);
    return true;
}

void PageRuns::give_fresh(std::uint32_t first, std::uint32_t count) noexcept {
    for_used_words(first, first + count,
                   [](std::uint64_t& word, std::uint64_t mask) { word &= ~mask; });
    give(first, count);
    used_free_pages_ -= count;
}

std::size_t PageRuns::take_used(std::uint32_t least, std::uint32_t alignment, std::uint32_t phase,
                                std::span<ArenaRun> parts) noexcept {
    std::size_t taken = 0;
    for (Key at{least, 0}; taken < parts.size() && used_free_pages_ > 0;) {
        const Node node = at_least(at);
        if (node == 0) break;
        at = {links_[node].count, node + 1};
        const ArenaRun part = used_part(node, alignment, phase);
        if (part.count >= least) parts[taken++] = carve(node, part.first, part.count);
    }
    return taken;
}

/// The part of a free run from the first page that is not fresh to the last one, in whole blocks.
ArenaRun PageRuns::used_part(Node node, std::uint32_t alignment,
                             std::uint32_t phase) const noexcept {
    const std::uint32_t run_first = node - 1;
    const std::uint32_t run_end = run_first + links_[node].count;
    // A part ends where so many pages behind it are fresh: of reserved blocks little is used.
    constexpr std::uint64_t gap_max = 1024;
    // Counted from page -phase, where a block starts.
    std::uint64_t first = round_up(std::uint64_t{run_first} + phase, alignment);
    const std::uint64_t last = round_down(std::uint64_t{run_end} + phase, alignment);
    std::uint64_t end = std::min<std::uint64_t>(last, std::uint64_t{fresh_from_} + phase);
    const auto is_fresh = [&](std::uint64_t at) {
        return !is_used(static_cast<std::uint32_t>(at - phase));
    };
    while (first < end && is_fresh(first)) ++first;
    if (first >= end) return {};
    std::uint64_t used_end = first;
    for (std::uint64_t at = first; at < end && at - used_end <= gap_max; ++at)
        if (!is_fresh(at)) used_end = at + 1;
    end = used_end;
    first = round_down(first, alignment);
    end = round_up(end, alignment);
    return {static_cast<std::uint32_t>(first - phase), static_cast<std::uint32_t>(end - first)};
}

void PageRuns::give(std::uint32_t first, std::uint32_t count) noexcept {
    used_free_pages_ += count;
    free_pages_ += count;
    std::uint32_t end = first + count;
    if (first > 0) {
        if (const Node before = links_[first].run_ending_here) {  // page first - 1 is node `first`
            first = before - 1;
            erase(before);
        }
    }
    if (links_[end + 1].count != 0) {
        const std::uint32_t behind = links_[end + 1].count;
        erase(end + 1);
        end += behind;
    }
    insert(first, end - first);
}

void PageRuns::insert(std::uint32_t first, std::uint32_t count) noexcept {
    const Node node = first + 1;
    HIROBA_INVARIANT(links_[node].count == 0, "page %u is free twice", first);
    links_[node].left = links_[node].right = 0;
    links_[node].count = count;
    links_[first + count].run_ending_here = node;
    ++runs_;

    const Key key = key_of(node);
    const std::uint32_t height = priority(node);
    Node* place = &root_;
    while (*place != 0 && priority(*place) >= height) {
        place = key < key_of(*place) ? &links_[*place].left : &links_[*place].right;
    }
    Node below = 0, from = 0;
    split(*place, key, below, from);
    links_[node].left = below;
    links_[node].right = from;
    *place = node;
}

void PageRuns::erase(Node node) noexcept {
    const Key key = key_of(node);
    Node* place = &root_;
    while (*place != node) {
        HIROBA_INVARIANT(*place != 0, "free run of page %u is not in the tree", node - 1);
        place = key < key_of(*place) ? &links_[*place].left : &links_[*place].right;
    }
    *place = join(links_[node].left, links_[node].right);
    links_[node - 1 + links_[node].count].run_ending_here = 0;
    links_[node].count = 0;
    --runs_;
}

PageRuns::Node PageRuns::at_least(Key key) const noexcept {
    Node best = 0;
    for (Node node = root_; node != 0;) {
        if (key_of(node) < key) {
            node = links_[node].right;
        } else {
            best = node;
            node = links_[node].left;
        }
    }
    return best;
}

void PageRuns::split(Node tree, Key key, Node& below, Node& from) noexcept {
    Node* below_place = &below;
    Node* from_place = &from;
    while (tree != 0) {
        if (key_of(tree) < key) {
            *below_place = tree;
            below_place = &links_[tree].right;
            tree = *below_place;
        } else {
            *from_place = tree;
            from_place = &links_[tree].left;
            tree = *from_place;
        }
    }
    *below_place = *from_place = 0;
}

PageRuns::Node PageRuns::join(Node left, Node right) noexcept {
    Node joined = 0;
    Node* place = &joined;
    while (left != 0 && right != 0) {
        if (priority(left) >= priority(right)) {
            *place = left;
            place = &links_[left].right;
            left = *place;
        } else {
            *place = right;
            place = &links_[right].left;
            right = *place;
        }
    }
    *place = left != 0 ? left : right;
    return joined;
}

}  // namespace hiroba::dsm
