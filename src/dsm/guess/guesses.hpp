// SPDX-License-Identifier: BSD-3-Clause
// Role: all guesses of a node. Each answers one question: who will read next, how many blocks to
// bring, how long to wait. Invariant: a wrong answer costs time and nothing else, so whatever is
// right or wrong for the program is decided without this folder.
#pragma once

#include "dsm/guess/atomic_quantum.hpp"
#include "dsm/guess/pull_times.hpp"
#include "dsm/guess/read_ahead.hpp"
#include "dsm/guess/release_rhythm.hpp"
#include "dsm/guess/spins.hpp"
#include "dsm/guess/use_predictor.hpp"
#include "dsm/guess/wanted_blocks.hpp"

namespace hiroba::dsm {

struct Guesses {
    ReadAhead read_ahead;    ///< how many blocks come with a miss
    UsePredictor predictor;  ///< what is used behind a place of the program
    WantedBlocks wanted;     ///< what other nodes will ask for
    Spins spins;             ///< whether threads wait by plain loads
    AtomicQuantum quantum;   ///< how long this node goes on with atomics that others wait for
    PullTimes pull_times;    ///< how long news take that another node is asked for
    ReleaseRhythm rhythm;    ///< whether the program releases soon by itself
};

}  // namespace hiroba::dsm
