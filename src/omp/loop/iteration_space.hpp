// SPDX-License-Identifier: BSD-3-Clause
// Role: chunk arithmetic: a loop as iterations numbered 0 to count - 1, and the thread that gets
// each.
// Invariant: pure; every sum stays within 64 unsigned bits, for every loop a compiler can express
// (the full unsigned range has 2^64 - 1 iterations). Chunks are counted, not iterations, so that a
// shared counter that is only ever added to cannot wrap.
#pragma once

#include <algorithm>
#include <cstdint>

#include "omp/loop/loop.hpp"

namespace hiroba::omp {

/// Iteration numbers [first, end); empty when they are equal.
struct IndexRange {
    std::uint64_t first = 0, end = 0;
    constexpr bool empty() const noexcept { return first == end; }
    constexpr bool operator==(const IndexRange&) const = default;
};

/// Numbers a loop's iterations.
class IterationSpace {
public:
    constexpr IterationSpace() = default;
    explicit constexpr IterationSpace(const Loop& loop) noexcept
        : start_(loop.start), end_(loop.end), step_(loop.step) {
        const std::uint64_t a = loop.closed ? loop.end : loop.start;
        const std::uint64_t b = loop.closed ? loop.start : loop.end;
        const bool a_first = loop.is_unsigned ? before(a, b, loop.up)
                                              : before(static_cast<std::int64_t>(a),
                                                       static_cast<std::int64_t>(b), loop.up);
        const bool any = a_first != loop.closed;
        const std::uint64_t distance = loop.up ? end_ - start_ : start_ - end_;
        const std::uint64_t stride = loop.up ? step_ : 0 - step_;
        if (any && stride != 0)
            count_ = loop.closed ? distance / stride + 1 : (distance - 1) / stride + 1;
        if (loop.closed) end_ = start_ + count_ * step_;
    }

    constexpr std::uint64_t count() const noexcept { return count_; }
    constexpr std::uint64_t step() const noexcept { return step_; }
    /// The loop variable at iteration `index`; the loop's own end for index == count(), because
    /// start + count * step may lie outside the variable's type. With closed bounds it is that,
    /// modulo 2^64: the caller takes a step off again.
    constexpr std::uint64_t value(std::uint64_t index) const noexcept {
        return index >= count_ ? end_ : start_ + index * step_;
    }

private:
    template <class Number>
    static constexpr bool before(Number a, Number b, bool up) noexcept {
        return up ? a < b : b < a;
    }
    std::uint64_t start_ = 0, end_ = 0, step_ = 1, count_ = 0;
};

/// How many chunks of `chunk` (at least 1) iterations `count` iterations make.
constexpr std::uint64_t chunk_count(std::uint64_t count, std::uint64_t chunk) noexcept {
    return count / chunk + (count % chunk != 0);
}

/// The `number`-th chunk; empty behind the last one.
constexpr IndexRange chunk_at(std::uint64_t count, std::uint64_t chunk,
                              std::uint64_t number) noexcept {
    if (number >= chunk_count(count, chunk)) return {};
    const std::uint64_t first = number * chunk;
    return {first, first + std::min(chunk, count - first)};
}

/// Thread `thread`'s share of a static loop without a chunk size, cut as gcc cuts it inline: the
/// first count % threads threads get one iteration more.
constexpr IndexRange static_block(std::uint64_t count, std::uint32_t threads,
                                  std::uint32_t thread) noexcept {
    const std::uint64_t share = count / threads, rest = count % threads;
    const std::uint64_t first = share * thread + std::min<std::uint64_t>(thread, rest);
    return {first, first + share + (thread < rest)};
}

/// How many iterations the next guided chunk has when `left` (at least 1) are left.
constexpr std::uint64_t guided_share(std::uint64_t left, std::uint32_t threads,
                                     std::uint64_t chunk_min) noexcept {
    const std::uint64_t share = left / threads + (left % threads != 0);
    return std::min(left, std::max(share, chunk_min));
}

/// Walks along the chunks of a guided loop: how large they are follows from their number alone, so
/// a counter of chunks is all that threads share.
class GuidedChunks {
public:
    constexpr GuidedChunks() = default;
    constexpr GuidedChunks(std::uint64_t count, std::uint32_t threads,
                           std::uint64_t chunk_min) noexcept
        : count_(count), chunk_min_(chunk_min), threads_(threads) {}

    /// The `number`-th chunk; empty behind the last one. Numbers ascend from call to call.
    constexpr IndexRange at(std::uint64_t number) noexcept {
        while (number_ < number && first_ < count_) {
            const std::uint64_t share = next_share();
            if (share == chunk_min_) {  // From here on all are equal.
                const std::uint64_t more = number - number_;
                const IndexRange range = chunk_at(count_ - first_, chunk_min_, more);
                first_ = range.empty() ? count_ : first_ + range.first;
                number_ = number;
                break;
            }
            first_ += share;
            ++number_;
        }
        if (first_ >= count_) return {};
        return {first_, first_ + next_share()};
    }

private:
    constexpr std::uint64_t next_share() const noexcept {
        return guided_share(count_ - first_, threads_, chunk_min_);
    }
    std::uint64_t count_ = 0, chunk_min_ = 1, number_ = 0, first_ = 0;
    std::uint32_t threads_ = 1;
};

}  // namespace hiroba::omp
