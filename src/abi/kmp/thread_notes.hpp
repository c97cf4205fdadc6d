// SPDX-License-Identifier: BSD-3-Clause
// Role: what these entry points must remember of a thread between two calls of its.
// Invariant: private to the thread, in memory of this process. Clauses are pushed right before the
// construct they belong to, which takes them. Doacross loops nest, as their calls do.
#pragma once

#include <array>
#include <unordered_map>
#include <vector>

#include "abi/kmp/kmp.hpp"
#include "omp/loop/doacross.hpp"

namespace hiroba::abi::kmp {

/// A doacross loop nest that the thread is in.
struct Nest {
    struct Dimension {
        Long first, last, step;
    };
    std::array<Dimension, omp::Doacross::dimensions_max> dimensions{};
    std::size_t count = 0;      ///< of dimensions
    std::size_t collapsed = 0;  ///< the outermost ones, which are one loop; 0: not started
    bool last_counts = false;   ///< `last` is an iteration, not what comes behind
    bool ended = false;
    UnsignedLong loop_first = 0, loop_step = 1;  ///< of the loop that is dealt out
};

struct ThreadNotes {
    Unsigned threads = 0, teams = 0, thread_limit = 0;  ///< pushed; 0: not
    Unsigned open_loops = 0;  ///< handed out by chunks, in the present region
    std::vector<Nest> nests;
    /// The thread's own copies of threadprivate variables, by what they are copies of.
    std::unordered_map<const void*, void*> copies;
};

/// The calling thread's.
ThreadNotes& notes() noexcept;
/// The calling thread, one the program has made, is about to end.
void forget_notes() noexcept;

/// Takes what was pushed.
inline Unsigned take(Unsigned& pushed) noexcept {
    const Unsigned value = pushed;
    pushed = 0;
    return value;
}

}  // namespace hiroba::abi::kmp
