// SPDX-License-Identifier: BSD-3-Clause
// Role: a team as the threads of one node share it: the one that is spread over all nodes, or one
// whose threads are all here, for a region inside a region.
// Invariant: private to the node. Its leader writes what is not atomic while no other thread is in
// a region of it; starting and joining order that. Teams of one thread have none. A team is used
// again, never given back: a thread that kept a reference to it finds a team.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "omp/loop/chunk_pool.hpp"
#include "omp/loop/word_store.hpp"
#include "omp/loop/workshare.hpp"
#include "omp/task/task.hpp"
#include "omp/team/cancellation.hpp"
#include "omp/team/gate.hpp"
#include "omp/team/join_terms.hpp"
#include "omp/team/reduction_offers.hpp"
#include "omp/team/single_turn.hpp"
#include "omp/team/team_link.hpp"
#include "omp/team/thread_state.hpp"

namespace hiroba::omp {

struct Team {
    Fork fork;                      ///< the present region
    LocalBarrier barrier, join;     ///< of this node's members
    Cancellation cancellation;      ///< its number is the region's
    ReductionOffers reductions;     ///< of this node's members
    JoinTerms* terms = nullptr;     ///< that its join takes along; none: of a team inside a node
    WordStore* words = nullptr;     ///< of worksharing constructs
    WordStore* progress = nullptr;  ///< of doacross loops
    /// In a team on several nodes, by slot: the chunks that this node has taken.
    std::unique_ptr<std::array<ChunkPool, Workshare::slots>> pools;
    /// The turns of this node's members, by slot.
    std::array<SingleTurn, Workshare::slots> singles;
    TaskTeam* tasks = nullptr;      ///< guarded by the latch of the node's TaskPool
    Binding leader_binding;         ///< of this node's first member
    std::vector<Binding> bindings;  ///< of this node's members; none: they are not bound
    std::uint64_t sequence = 0;     ///< number of the next region's first construct
    std::unique_ptr<LocalWords> own_words, own_progress;

    // The rest is used by a team inside this node.
    Frame* outer = nullptr;             ///< in which its leader met the region
    Frame leader;                       ///< of its thread 0
    std::vector<ThreadState*> helpers;  ///< its threads 1, 2, ...
    TaskTeam own_tasks;
};

}  // namespace hiroba::omp
