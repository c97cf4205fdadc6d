// SPDX-License-Identifier: BSD-3-Clause
// Role: a data cache over the relocatable space, for what is read often and written seldom: a view
// that keeps what was read in private memory until it is told to read anew.
// Source: Endo & Taura, MGAS-2, section 2.3: a data cache goes on top of a space that caches
// metadata. Nothing is invalidated from elsewhere: the program, which knows when it synchronizes,
// calls refresh() there, as an acquire of a shared memory would.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hiroba/gas.hpp"

namespace hiroba::gas {

/// Elements [first, first + count) of global memory, read through a copy.
///
/// A value read is one that global memory held at some time since refresh() was called last (or the
/// view was made): what other ranks had stored when this rank passed a barrier is seen by views
/// refreshed after it. Blocks of a page are fetched as they are read, runs of them together. Pages
/// may move meanwhile. The copy takes as much private memory as was read. Thread: one at a time.
template <class T>
class CachedView {
public:
    /// Fetches nothing. `of` outlives the view. A range that is not allocated shows when it is
    /// read.
    CachedView(space& of, ptr<T> first, std::size_t count)
        : space_(of),
          first_(first),
          count_(count),
          block_(std::max<std::size_t>(1, of.page_bytes() / sizeof(T))),
          head_(elements_before_a_page(of.page_bytes())),
          copy_(new T[count == 0 ? 1 : count]),  // Not touched: what is never read costs nothing.
          here_(count == 0 ? 0 : block_of(count - 1) + 1) {}

    std::size_t size() const noexcept { return count_; }

    /// Element `i`. On a fault `value` is as it was; Fault::past_end beyond size().
    Status read(std::size_t i, T& value) noexcept {
        if (i >= count_) [[unlikely]]
            return past_end(i, 1);
        const std::size_t block = block_of(i);
        if (here_[block] == 0) [[unlikely]] {
            if (Status status = fetch_blocks(block, block); !status) return status;
        }
        value = copy_[i];
        return {};
    }
    /// Elements [from, from + count), all of them here: to be read by loads until refresh(). What
    /// is missing is fetched together. Empty on a fault, which goes to `*why`.
    std::span<const T> range(std::size_t from, std::size_t count, Status* why = nullptr) noexcept {
        Status status;
        if (count > count_ || from > count_ - count) {
            status = past_end(from, count);
        } else if (count != 0) {
            status = fetch_blocks(block_of(from), block_of(from + count - 1));
        }
        if (why != nullptr) *why = status;
        return status ? std::span<const T>(copy_.get() + from, count) : std::span<const T>();
    }
    /// Forgets all values. Call it where the program learns that others have written: behind a
    /// barrier, a message, a lock.
    void refresh() noexcept { std::fill(here_.begin(), here_.end(), std::uint8_t{0}); }
    /// How many blocks were fetched since the view was made.
    std::uint64_t fetched() const noexcept { return fetched_; }

private:
    /// So that every block but the first begins with a page, where elements do not cross pages.
    std::size_t elements_before_a_page(std::uint64_t page_bytes) const noexcept {
        const std::uint64_t in_page = first_.address() % page_bytes;
        const bool fits = page_bytes % sizeof(T) == 0 && in_page % sizeof(T) == 0;
        return fits ? (page_bytes - in_page) % page_bytes / sizeof(T) : 0;
    }
    std::size_t block_of(std::size_t i) const noexcept {
        if (i < head_) return 0;
        return (i - head_) / block_ + (head_ != 0 ? 1 : 0);
    }
    std::size_t begin_of(std::size_t block) const noexcept {
        if (head_ == 0) return block * block_;
        return block == 0 ? 0 : head_ + (block - 1) * block_;
    }
    Status past_end(std::size_t first, std::size_t count) const noexcept {
        return Status::beyond(first_.address() / space_.page_bytes(), first, count, count_);
    }
    /// Runs of missing blocks start together and are waited for once.
    Status fetch_blocks(std::size_t first, std::size_t last) noexcept {
        Pending pending;
        Status started;
        std::size_t block = first;
        while (started && block <= last) {
            std::size_t end = block;
            while (end <= last && here_[end] == 0) ++end;
            if (end != block) {
                const std::size_t from = begin_of(block);
                const std::size_t to = std::min(begin_of(end), count_);
                started = space_.start_get(first_ + static_cast<std::int64_t>(from),
                                           std::span<T>(copy_.get() + from, to - from), pending);
            }
            block = end + 1;
        }
        const Status ended = space_.wait(pending);
        if (!started) return started;
        if (!ended) return ended;
        for (block = first; block <= last; ++block) {
            fetched_ += here_[block] == 0;
            here_[block] = 1;
        }
        return {};
    }

    space& space_;
    ptr<T> first_;
    std::size_t count_, block_, head_;
    std::unique_ptr<T[]> copy_;
    std::vector<std::uint8_t> here_;  ///< by block
    std::uint64_t fetched_ = 0;
};

}  // namespace hiroba::gas
