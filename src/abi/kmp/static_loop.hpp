// SPDX-License-Identifier: BSD-3-Clause
// Role: which member gets which iterations of a loop that clang's code cuts by itself, once it
// knows its first share: [lower, upper], then the same again each `stride` further.
// Invariant: pure. Over all members every iteration is dealt out exactly once, and exactly one has
// the last; blocks and chunks go to the members that also LLVM's runtime gives them, and that
// omp/loop/doacross.hpp takes for their owners.
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "abi/kmp/kmp.hpp"
#include "omp/loop/iteration_space.hpp"

namespace hiroba::abi::kmp {

/// One of those that share a loop: thread of a team, or team of a league.
struct Member {
    Unsigned number = 0, count = 1;
};

template <class T>
struct StaticShare {
    using Signed = std::make_signed_t<T>;
    T lower{}, upper{};
    Signed stride{};
    bool has_last = false;
};

/// Iterations from `lower` to `upper`, both included; 2^64 of them count as none.
template <class T>
constexpr std::uint64_t trip_count(T lower, T upper, std::make_signed_t<T> step) noexcept {
    using U = std::make_unsigned_t<T>;
    if (step == 0 || (step > 0 ? upper < lower : lower < upper)) return 0;
    const auto distance = static_cast<U>(step > 0 ? static_cast<U>(upper) - static_cast<U>(lower)
                                                  : static_cast<U>(lower) - static_cast<U>(upper));
    const auto stride =
        static_cast<U>(step > 0 ? static_cast<U>(step) : U{0} - static_cast<U>(step));
    return std::uint64_t{distance} / stride + 1;
}

/// The loop variable at iteration `index`, modulo its type's size.
template <class T>
constexpr T value_at(T lower, std::make_signed_t<T> step, std::uint64_t index) noexcept {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(
        static_cast<U>(static_cast<U>(lower) + static_cast<U>(step) * static_cast<U>(index)));
}

/// Iterations [first, end) as bounds; an empty range as bounds that no loop enters, even after it
/// has cut them to its own last value.
template <class T>
constexpr void set_bounds(StaticShare<T>& share, T lower, T upper, std::make_signed_t<T> step,
                          omp::IndexRange range) noexcept {
    using Limits = std::numeric_limits<T>;
    if (!range.empty()) {
        share.lower = value_at(lower, step, range.first);
        share.upper = value_at(lower, step, range.end - 1);
    } else if (step > 0) {
        share.lower = upper != Limits::max() ? static_cast<T>(upper + 1) : upper;
        share.upper = upper != Limits::max() ? upper : static_cast<T>(upper - 1);
    } else {
        share.lower = upper != Limits::min() ? static_cast<T>(upper - 1) : upper;
        share.upper = upper != Limits::min() ? upper : static_cast<T>(upper + 1);
    }
}

/// The iterations that the member is dealt first.
/// @param chunk  iterations; below 1 is 1
template <class T>
constexpr StaticShare<T> static_share(Sched kind, T lower, T upper, std::make_signed_t<T> step,
                                      std::make_signed_t<T> chunk, Member member) noexcept {
    using S = std::make_signed_t<T>;
    using U = std::make_unsigned_t<T>;
    StaticShare<T> share;
    const std::uint64_t trips = trip_count(lower, upper, step);
    if (trips == 0) {
        share = {lower, upper, step, false};
        return share;
    }
    const std::uint64_t members = std::max(member.count, 1u);
    const auto size = static_cast<std::uint64_t>(std::max<S>(chunk, 1));
    omp::IndexRange range;
    std::uint64_t stride = trips;  // There is no second turn.
    switch (kind) {
        case Sched::static_chunked:
        case Sched::distribute_chunked: {
            const std::uint64_t most = std::min(size, trips),
                                chunks = omp::chunk_count(trips, most);
            range = omp::chunk_at(trips, most, member.number);
            stride = most * std::min(members, chunks);
            share.has_last = member.number == (chunks - 1) % members;
            break;
        }
        case Sched::static_balanced_chunked: {
            // Blocks of whole chunks, as many in each as it takes.
            const std::uint64_t even = trips / members + (trips % members != 0);
            const std::uint64_t block = omp::chunk_count(even, size) * size;
            range = omp::chunk_at(trips, block, member.number);
            share.has_last = !range.empty() && range.end == trips;
            break;
        }
        default:
            range = omp::static_block(trips, static_cast<Unsigned>(members), member.number);
            share.has_last = !range.empty() && range.end == trips;
    }
    set_bounds(share, lower, upper, step, range);
    share.stride = static_cast<S>(static_cast<U>(static_cast<U>(stride) * static_cast<U>(step)));
    return share;
}

/// A team's part of a loop that its league shares, in blocks: bounds for the loop of its threads.
template <class T>
constexpr StaticShare<T> team_share(T lower, T upper, std::make_signed_t<T> step,
                                    Member team) noexcept {
    return static_share(Sched::distribute_blocks, lower, upper, step, 1, team);
}

}  // namespace hiroba::abi::kmp
