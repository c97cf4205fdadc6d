// SPDX-License-Identifier: BSD-3-Clause
// Role: a set of page numbers of one attached range, walked in ascending order in time that grows
// with the members and not with the range: a bitmap with two bitmaps of non-empty words above it.
// Invariant: a member's bits in the upper bitmaps are set; they may also be set for empty words.
// Memory is private, untouched parts cost nothing; nothing here allocates after create().
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/result.hpp"

namespace hiroba::dsm {

/// Consecutive pages of a range.
struct PageRun {
    std::size_t first = 0;
    std::size_t count = 0;
    std::size_t end() const noexcept { return first + count; }
};

/// Thread: add(), remove() and contains() any; the walks one thread at a time, at once with
/// adders. Async-signal-safe.
class PageSet {
public:
    static Result<PageSet> create(std::size_t pages);
    PageSet(PageSet&& other) noexcept;
    PageSet& operator=(PageSet&&) = delete;
    ~PageSet();

    bool contains(std::size_t page) const noexcept {
        return (words_[page / 64].load(std::memory_order_seq_cst) >> page % 64 & 1) != 0;
    }
    /// True when some page of the run was not a member. The run is visible to any walk that begins
    /// after the return, also when it was there already.
    bool add(PageRun run) noexcept;
    /// True when some page of the run was a member.
    bool remove(PageRun run) noexcept;

    /// Calls `visit(PageRun)` for each run of members.
    template <class Visit>
    void for_each_run(Visit&& visit) const noexcept {
        walk([](const Word& word) { return word.load(std::memory_order_seq_cst); }, visit);
    }
    /// As above, and empties the set: a page added meanwhile is visited or stays a member.
    template <class Visit>
    void take_each_run(Visit&& visit) noexcept {
        // From the top down, so that an adder, which goes up, always finishes above what we left.
        const auto take = [](Word& word) {
            const bool empty = word.load(std::memory_order_seq_cst) == 0;
            return empty ? 0 : word.exchange(0, std::memory_order_seq_cst);
        };
        walk(take, visit);
    }

private:
    using Word = std::atomic<std::uint64_t>;
    PageSet() = default;

    template <class Visit>
    static void for_each_bit(std::uint64_t word, Visit&& visit) {
        for (; word != 0; word &= word - 1) visit(static_cast<std::size_t>(std::countr_zero(word)));
    }

    /// Extends `run` by the runs of `word`, handing out what cannot grow any more.
    template <class Visit>
    static void append(std::size_t first_page, std::uint64_t word, PageRun& run, Visit& visit) {
        for (std::size_t at = 0; word != 0;) {
            const auto gap = static_cast<std::size_t>(std::countr_zero(word));
            word >>= gap;
            at += gap;
            const auto length = static_cast<std::size_t>(std::countr_one(word));
            if (run.count != 0 && run.end() == first_page + at) {
                run.count += length;
            } else {
                if (run.count != 0) visit(run);
                run = {first_page + at, length};
            }
            at += length;
            word = length == 64 ? 0 : word >> length;
        }
    }

    template <class Read, class Visit>
    void walk(Read&& read, Visit&& visit) const {
        PageRun run;
        for (std::size_t t = 0; t < top_words_; ++t)
            for_each_bit(read(tops_[t]), [&](std::size_t s) {
                const std::size_t summary = t * 64 + s;
                for_each_bit(read(summaries_[summary]), [&](std::size_t w) {
                    const std::size_t word = summary * 64 + w;
                    append(word * 64, read(words_[word]), run, visit);
                });
            });
        if (run.count != 0) visit(run);
    }

    Word* words_ = nullptr;      ///< one bit for each page
    Word* summaries_ = nullptr;  ///< one bit for each word
    Word* tops_ = nullptr;       ///< one bit for each summary
    std::size_t top_words_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace hiroba::dsm
