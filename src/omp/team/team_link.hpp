// SPDX-License-Identifier: BSD-3-Clause
// Role: regions between nodes: fork, barrier and join as mails that carry memory's news.
// Invariant: exactly one thread of a node is in here at a time, except for the message handlers.
// The nodes of a region are 0 to members - 1. Every mail is read before its sender can be more than
// one phase ahead, so the mailboxes' places suffice.
//
// Which node sends what, with the news of memory in each mail:
//   barrier  each member to each other, up to 8 members (one way instead of two)
// and along a tree of arity 8 of which node 0 is the root:
//   fork     parents to children
//   gather   the way up of a barrier of more members: children to parents, what they have heard of
//            their own children included
//   spread   the way down
//   join     children to parents, as gather, with the terms of reductions
// Where regions may be cancelled all barriers go along the tree. Some nodes then leave a barrier
// that others have begun; what is left of it in a mailbox lies before a join or a fork of the same
// sender, and is passed over with its news learned. All to all, such mails could pile up.
// A node without threads in the region gets nothing: its news waits for its next fork.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "base/latch.hpp"
#include "base/thread_context.hpp"
#include "dsm/dsm.hpp"
#include "net/kick/kick.hpp"
#include "net/net.hpp"
#include "omp/omp.hpp"
#include "omp/team/cancellation.hpp"
#include "omp/team/join_terms.hpp"
#include "omp/team/made_threads.hpp"

namespace hiroba::omp {

/// A region as the initial thread starts it.
struct Fork {
    OutlinedFunction function = nullptr;
    void* data = nullptr;
    const void* code = nullptr;  ///< the region for the program, where `function` only leads there
    TeamPosition place;          ///< of thread 0
    Icvs icvs;
    std::uint64_t sequence = 0;  ///< number of the region's first worksharing construct
    bool has_loop = false;
    Loop loop;
    std::uintptr_t* reductions = nullptr;  ///< the compiler's descriptor of task reductions
    ProcBind bind = ProcBind::none;
    ProcessState process;  ///< what the members' processes must be like
    Inheritance leader;    ///< of a team inside a region: what its helpers have from their leader
    MadeThreads made;      ///< the spread team's threads, as they would be alone
    bool stays = false;    ///< it would be spread, and runs here (runtime_stay.cpp)
    bool shows_affinity = false;  ///< its threads show where they run, whatever they have shown
};

/// What the program knows the region by.
inline const void* code_of(const Fork& fork) noexcept {
    return fork.code != nullptr ? fork.code : reinterpret_cast<const void*>(fork.function);
}

/// clang's entry points say where the region's code is.
inline PoolKind pool_of(const Fork& fork) noexcept {
    return fork.code != nullptr ? PoolKind::llvm : PoolKind::gnu;
}

/// Something else a waiting thread may be needed for.
struct Distraction {
    bool (*calls)(const void* context) noexcept = nullptr;
    const void* context = nullptr;
    bool operator()() const noexcept { return calls != nullptr && calls(context); }
};

/// Everything but the handlers: on the runtime stack, while the node's other threads that take
/// part stand still in the runtime.
class TeamLink {
public:
    /// Registers handlers; before Endpoint::connect().
    static Result<std::unique_ptr<TeamLink>> create(const Parts& parts);
    TeamLink(const TeamLink&) = delete;
    TeamLink& operator=(const TeamLink&) = delete;
    /// After Endpoint::connect().
    void attach() {
        mail_->attach();
        let_others_rest(true);
    }
    /// Before attach(): what is cancelled in regions of several nodes; `possible`: something may
    /// be.
    void set_cancellation(Cancellation& cancellation, bool possible) noexcept {
        cancellation_ = &cancellation;
        cancellable_ = possible;
    }
    /// Any thread of the present region: tells the others of a cancelled construct, or of the
    /// cancelled region.
    struct Cancelled {
        std::uint64_t region = 0, phase = 0;
        bool whole_region = false;
    };
    void tell_cancelled(const Cancelled& cancelled) noexcept;

    /// Node 0: starts a region on `members` nodes (at least 2); join() ends it.
    void fork(const Fork& fork, std::uint32_t members) noexcept;
    /// False: a signal handler of the program waits, or there is a distraction; to be called again.
    /// As finish_barrier(). Nodes of other hosts hear now what the fork would tell them.
    bool join(Distraction distraction) noexcept;
    /// `along_tree`: each node tells its children, and all end together, once none asks another for
    /// anything, or half a second later; not while a region runs, whose nodes end at once.
    void send_quit(bool along_tree) noexcept;

    /// Other nodes: waits for the next region. `handlers`: signal handlers of the program wait;
    /// `elsewhere`: there is a distraction.
    enum class Called : std::uint8_t { region, end, handlers, elsewhere };
    Called await_fork(Fork* fork, Distraction distraction) noexcept;
    /// On the program's stack, between regions, after handlers have run.
    void release_what_handlers_wrote() noexcept;
    /// Any thread: a part of the program runs here between regions, too: a thread that it has made,
    /// or a signal handler. Node 0 does not take this node to rest then, ever again.
    void tell_of_work_between_regions() noexcept;
    /// Number of the region that runs or was last, the same on its members.
    std::uint64_t region() const noexcept { return region_; }
    void set_members(std::uint32_t members) noexcept { members_ = members; }

    /// Before attach(): the watch of regions publishes, not the background flusher.
    void publish_elsewhere() noexcept { publishes_elsewhere_ = true; }
    /// Any thread: the region that runs here, or was the last, and when it began; 0: none yet.
    struct Begun {
        std::uint64_t region = 0, at_ns = 0;
    };
    Begun begun() const noexcept {
        // The time first: a region that begins in between seems older than it is for once.
        const std::uint64_t at = began_at_ns_.load(std::memory_order_acquire);
        return {began_.load(std::memory_order_acquire), at};
    }
    /// Called once children_have_joined().
    bool children_join_soon() noexcept;
    void arrive_at_join() noexcept;
    bool children_have_joined() noexcept { return children_have_come(Kind::join); }
    /// The terms of this node's threads, until they leave with its join; on node 0, those of all
    /// nodes once all have joined.
    JoinTerms& terms() noexcept { return terms_; }

    /// Every member: all writes of all members before begin_ are visible to all after finish_.
    void begin_barrier() noexcept;
    bool finish_barrier(Distraction distraction) noexcept;

    /// Any thread: learns the news of mails that have come, if this thread is to take them and a
    /// part of the program runs on it between two steps.
    void learn_unread() noexcept;

    /// On the program's stack: calls `step` on the runtime's until it says true. While it says
    /// false, handlers of the program and between() run in between, as parts of the program, and
    /// other threads' releases know of it.
    template <class Step, class Between>
    void in_steps(Step&& step, Between&& between) noexcept;
    /// Within a step: waits; false when a handler of the program does, too, or there is a
    /// distraction, and it is not `ready`.
    template <class Ready>
    bool await(Ready&& ready, Distraction distraction) noexcept {
        wait_for([&] { return ready() || parts_.interruptions.are_pending() || distraction(); });
        return ready();
    }
    /// The same, but only for handlers of what was sent to the calling thread.
    template <class Ready>
    Called await_region(Ready&& ready, Distraction distraction) noexcept {
        const dsm::Interruptions& own = parts_.own_interruptions;
        wait_for([&] { return ready() || own.are_pending() || distraction(); });
        if (ready()) return Called::region;
        return own.are_pending() ? Called::handlers : Called::elsewhere;
    }

    void count_program_threads(int change) noexcept { program_threads_.fetch_add(change); }
    bool has_program_threads() const noexcept { return program_threads_.load() != 0; }
    /// False where threads of the program run, or may. Otherwise none begins until
    /// end_standstill().
    bool begin_standstill() noexcept;
    void end_standstill() noexcept { still_.unlock(); }
    /// In the middle of a region or between two. `alone`: of this node's threads that are no
    /// program threads the caller alone is in the program.
    void release_in_program(bool alone) noexcept;

private:
    enum class Kind : std::uint32_t { fork, barrier, gather, spread, join, joined };
    /// What a message of the end says. `rests`: its sender asks nobody for anything more.
    enum class Ending : std::uint8_t { at_once, together, rests, leave };
    /// Bits of what a mail tells: its region is cancelled; its threads can tell each other apart.
    static constexpr std::uint32_t is_cancelled = 1, is_told_apart = 2;
    struct Header {
        Kind kind;
        std::uint32_t phase;
        std::uint64_t region;
        std::uint32_t told;       ///< so the root knows it once all have joined
        std::uint32_t terms = 0;  ///< JoinTerms behind the header
    };

    /// A barrier's marks, which are mails. Meets net::kick::Marks.
    struct NewsMarks {
        TeamLink* link;
        using Way = net::kick::Way;
        using TreeNode = net::kick::TreeNode;
        void tell(Way way, const TreeNode& here, std::uint64_t phase) noexcept;
        bool have_come(Way way, const TreeNode& here, std::uint64_t phase) noexcept;
        void take(Way way, const TreeNode& here, std::uint64_t phase) noexcept;
    };

    TeamLink(const Parts& parts, std::unique_ptr<net::kick::Mailboxes> mail);
    void release() noexcept;
    void acquire() noexcept;
    void bring_expected() noexcept;
    void all_nodes_know(std::span<const NodeId> told) noexcept;
    void tree_knows() noexcept;
    void region_runs(bool runs) noexcept;
    void let_others_rest(bool rest) noexcept;
    void send(std::uint32_t to, Kind kind, Bytes extra = {}) noexcept;
    /// Takes the next mail of `from`, waiting for it, which must be a `kind` of this region and
    /// phase.
    void receive(std::uint32_t from, Kind kind, MutableBytes extra = {}) noexcept;
    void receive_terms(Bytes mail) noexcept;
    bool have_come(std::uint32_t from, std::uint32_t to) noexcept;
    bool children_have_come(Kind kind) noexcept;
    /// Whether the next mail of `from` is a `kind`, behind what is left of a cancelled region.
    bool next_is(std::uint32_t from, Kind kind) noexcept;
    bool goes_along_tree() const noexcept;
    bool tells_at_join() const noexcept;
    void tell_far_children() noexcept;
    bool hear_what_was_joined(std::uint32_t parent) noexcept;
    void on_cancelled(Bytes body) noexcept;
    net::kick::TreeNode place() const noexcept { return {self_, members_}; }
    /// Behind a step of the thread that takes the mails. Returns `through`.
    bool note_reader(bool through) noexcept {
        reader_.store(through ? nullptr : &this_thread(), std::memory_order_relaxed);
        return through;
    }
    void receive_from_children(Kind kind) noexcept;
    void pass_down(Kind kind, Bytes extra = {}) noexcept;
    /// From here on this thread counts as one of the program that runs.
    void run_beside_releases() noexcept {
        const std::scoped_lock still{still_};
        count_program_threads(+1);
    }
    template <class Between>
    void run_program(Between&& between) noexcept;
    /// As Mailboxes::wait_for(). The waiting thread pays the debts that other nodes ask this one to
    /// pay meanwhile, so no other thread has to be woken for them.
    template <class Look>
    void wait_for(Look&& look) noexcept {
        dsm::SharedMemory& memory = *parts_.memory;
        for (;;) {
            mail_->wait_for([&] { return look() || memory.has_to_pay(); });
            if (look()) return;
            memory.pay();
        }
    }
    void on_quit(NodeId from, Bytes body) noexcept;
    void pass_quit_on() noexcept;
    void rest_until_all_do() noexcept;
    void tell_others(Ending ending) noexcept;
    void tell(std::uint32_t node, Ending ending) noexcept;
    void note_job_over() noexcept;

    Parts parts_;
    std::uint32_t self_, members_ = 1;
    std::uint64_t region_ = 0;
    std::uint32_t phase_ = 0;  ///< barriers passed in this region
    /// Which thread takes the next mails, while it is between two steps; else nullptr.
    std::atomic<const ThreadContext*> reader_{nullptr};
    net::kick::BarrierPhases<NewsMarks> barrier_{{this}, {}, net::kick::Shape::all_to_all};
    std::unique_ptr<net::kick::Mailboxes> mail_;
    JoinTerms terms_;
    Cancellation* cancellation_ = nullptr;
    bool cancellable_ = false;
    std::atomic<bool> over_{false}, in_region_{false};
    std::atomic<bool> leaves_together_{false}, may_leave_{false};
    std::atomic<std::uint32_t> resting_{0};       ///< node 0: others that have come to the end
    std::atomic<bool> others_never_rest_{false};  ///< on other nodes: node 0 was told so
    bool publishes_elsewhere_ = false;
    std::atomic<std::uint64_t> began_{0}, began_at_ns_{0};
    std::atomic<int> program_threads_{0};
    Latch still_;  ///< held by a release that takes the program for standing still
};

template <class Between>
void TeamLink::run_program(Between&& between) noexcept {
    ThreadContext& context = this_thread();
    context.in_runtime = false;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (parts_.interruptions.are_pending()) parts_.interruptions.serve();
    between();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    context.in_runtime = true;
}

template <class Step, class Between>
void TeamLink::in_steps(Step&& step, Between&& between) noexcept {
    const RuntimeScope here;
    bool through = false;
    bool again = false;
    while (!through) {
        if (again) run_program(between);
        on_runtime_stack([&] {
            if (again) count_program_threads(-1);
            through = step();
            if (!through) run_beside_releases();
        });
        again = true;
    }
}

}  // namespace hiroba::omp
