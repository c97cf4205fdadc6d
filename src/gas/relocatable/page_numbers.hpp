// SPDX-License-Identifier: BSD-3-Clause
// Role: which page numbers of an arena are allocated.
// Invariant: numbers that were given back are given out again only after all others, so that old
// pointers meet "not allocated" rather than other memory. A number is left free behind each
// allocation, so that its end shows.
#pragma once

#include <cstdint>
#include <map>

namespace hiroba::gas {

struct PageRun {
    std::uint64_t first = 0, pages = 0;
    std::uint64_t bytes = 0;
    bool fixed = false;
};

/// Thread: one at a time.
class PageNumbers {
public:
    /// @param first,end  the arena's numbers
    PageNumbers(std::uint64_t first, std::uint64_t end) : first_(first), end_(end), next_(first) {}

    /// The first of `pages` numbers in a row; 0 when there are none.
    std::uint64_t take(const PageRun& run);
    /// nullptr: no allocation begins with `first`.
    const PageRun* find(std::uint64_t first) const;
    /// The allocation that has `page`, or nullptr.
    const PageRun* around(std::uint64_t page) const;
    void give_back(std::uint64_t first) { runs_.erase(first); }
    bool contains(std::uint64_t page) const noexcept { return page >= first_ && page < end_; }

private:
    /// Where `pages` numbers are free in [from, end); 0: nowhere.
    std::uint64_t gap(std::uint64_t from, std::uint64_t end, std::uint64_t pages) const;

    std::uint64_t first_, end_, next_;
    std::map<std::uint64_t, PageRun> runs_;
};

}  // namespace hiroba::gas
