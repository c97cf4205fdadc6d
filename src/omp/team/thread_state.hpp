// SPDX-License-Identifier: BSD-3-Clause
// Role: what the runtime knows of one thread: the chain of regions it is in, and its nested locks.
// Invariant: private to the node; only the owning thread writes it, but for what is said. The frame
// of the region it was called to is here; that of one it leads inside another is in the team, and
// frames of regions of one thread lie on that thread's stack.
#pragma once

#include <array>
#include <cstdint>

#include "base/clock.hpp"
#include "omp/loop/doacross.hpp"
#include "omp/loop/loop_cursor.hpp"
#include "omp/omp.hpp"
#include "omp/team/gate.hpp"
#include "omp/team/lost_singles.hpp"
#include "omp/team/made_threads.hpp"
#include "omp/team/reduction_offers.hpp"

namespace hiroba::omp {

struct Task;
struct Team;

/// One region as seen by one of its threads.
struct Frame {
    Frame* parent = nullptr;
    TeamPosition place;
    Icvs icvs;
    /// Null: a team of one thread. Of a helper in a team inside this node: set to null, under the
    /// books' latch, when that team is over.
    Team* team = nullptr;
    Binding binding;
    std::uint64_t phase = 0;           ///< barriers the thread has passed
    bool cancelled = false;            ///< a region of one thread
    std::uint64_t cancelled_work = 0;  ///< the same: 1 + the phase whose construct is cancelled
    Task* implicit = nullptr;  ///< made when the thread first does something with tasks here
    Task* task = nullptr;  ///< the one the thread executes; null: the implicit one, not yet made
    /// The thread executes a child of `task` that has no descriptor yet, because no call has needed
    /// one.
    bool inlined = false;
    bool inlined_final = false;
    LoopCursor loop;
    Doacross doacross;
    void* loop_memory = nullptr;  ///< what the present loop's threads share
    Workshare loop_memory_share;
    std::uintptr_t* reductions = nullptr;  ///< of the region
    Workshare single_copy;                 ///< of the single whose executor this thread is
    std::uint64_t sequence = 0;            ///< number of the next worksharing construct
    std::uint64_t sections = 0;            ///< 1 + the number of those it is in; 0: none
    std::uint64_t reductions_met = 0;      ///< in the region, by Runtime::reduce()
};

/// How often tasks of a thread hold locks they may take again. A lock has one holder, a task, so
/// no other thread needs to know the count.
class NestedHolds {
public:
    /// The count to change, 0 when `task` does not hold the lock. Fatal when too many are held at
    /// once.
    std::uint32_t& of(std::uint64_t key, const void* task) noexcept;
    /// The count of the lock whichever task of the thread holds it; null: none.
    std::uint32_t* held(std::uint64_t key) noexcept;

private:
    static constexpr std::size_t holds_max = 64;
    struct Hold {
        std::uint64_t key = 0;
        const void* task = nullptr;
        std::uint32_t count = 0;
    };
    std::array<Hold, holds_max> holds_{};
};

/// How far a thread is in a barrier or join that handlers of the program may interrupt. It does not
/// lie on the thread's stack, which other threads' releases may be comparing.
struct Standing {
    bool arrived = false, last = false, begun = false;
    std::uint32_t phase = 0;
};

/// The team's size and nesting, and how it was bound, when a thread has shown its affinity last.
struct Shown {
    std::uint32_t size = 0, level = 0;
    ProcBind bind = ProcBind::none;
    friend bool operator==(const Shown&, const Shown&) = default;
};

struct ThreadState {
    const void* runtime = nullptr;  ///< whose state this is
    std::uint32_t local_thread = 0;
    bool initial = false;        ///< global thread 0
    bool foreign = false;        ///< made by the program
    bool in_region = false;      ///< has a region to arrive at the end of
    Team* next_team = nullptr;   ///< to which it is called; set by the thread that advances `start`
    std::uint32_t position = 0;  ///< the same: its number among the members on this node
    bool helps = false;          ///< in a team inside this node; under the latch of helpers
    ProcBind wanted_binding = ProcBind::none;      ///< by its next region, if not none
    std::uint32_t bound_place = Binding::nowhere;  ///< what the kernel was told last
    Shown shown;
    Frame base;    ///< outside all regions
    Frame region;  ///< of the active region
    Frame* frame = &base;
    NestedHolds holds;
    Standing standing;
    ReductionOffer offer;
    LostSingles lost_singles;  ///< of the spread team; any: ThreadPart::lacks_stores is true
    std::uint64_t region_entered = 0;  ///< number of the last region it was a member of, here
    std::uint64_t events_seen = 0;     ///< of tasks, when it last found nothing to do
    Gate start;                        ///< advanced when there is a region for this thread
    std::uint32_t start_seen = 0;
    OwnInheritance inheritance;
    bool is_timed = false;        ///< it leads a region, and what it waits in it is counted
    std::uint64_t waited_ns = 0;  ///< in that region
};

/// Counts how long its thread waits, from its making to its end, if that is counted at all.
class WaitTimer {
public:
    explicit WaitTimer(ThreadState& thread) noexcept
        : thread_(thread), since_ns_(thread.is_timed ? now_ns() : 0) {}
    WaitTimer(const WaitTimer&) = delete;
    WaitTimer& operator=(const WaitTimer&) = delete;
    ~WaitTimer() { stop(); }
    /// While `work` goes on the thread does not wait.
    template <class Work>
    void pause_for(Work&& work) noexcept {
        stop();
        work();
        if (thread_.is_timed) since_ns_ = now_ns();
    }

private:
    void stop() noexcept {
        if (since_ns_ != 0) thread_.waited_ns += now_ns() - since_ns_;
        since_ns_ = 0;
    }
    ThreadState& thread_;
    std::uint64_t since_ns_;
};

}  // namespace hiroba::omp
