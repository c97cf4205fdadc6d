// SPDX-License-Identifier: BSD-3-Clause
// Role: doacross loop nests, between the call that announces one and the loop it is about.
// Invariant: a nest is announced before its loop is dealt out, so it begins with the loop, which
// says how many iterations there are and hence how many of the nest's loops it covers.
#pragma once

#include "abi/kmp/kmp.hpp"
#include "omp/loop/loop.hpp"

namespace hiroba::abi::kmp {

/// A loop that its code cuts statically is about to begin. `chunk`: 0 for blocks. Does nothing
/// outside of nests.
void start_static_nest(UnsignedLong trips, UnsignedLong chunk) noexcept;

/// As above, of a loop that is handed out by chunks, which count from 0 then. False: no nest.
bool start_dealt_nest(const omp::Loop& loop, UnsignedLong trips) noexcept;
/// Turns iterations of such a loop into values.
void convert_if_nest(omp::LoopChunk* chunk) noexcept;
/// The calling thread leaves a loop that is handed out by chunks, if it is in one: it has got the
/// last chunk, or the loop is cancelled.
void leave_dealt_loop() noexcept;

}  // namespace hiroba::abi::kmp
