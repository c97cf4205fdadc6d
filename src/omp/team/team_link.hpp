// SPDX-License-Identifier: BSD-3-Clause
// Role: regions between nodes: fork, barrier and join as mails that carry memory's news.
// Invariant: exactly one thread of a node is in here at a time, except for the message handlers.
// The nodes of a region are 0 to members - 1. Every mail is read before its sender can be more than
// one phase ahead, so the mailboxes' places suffice.
//
// Who sends what, with the news of memory in each mail:
//   fork     node 0 to each member
//   barrier  each member to each other, up to 8 members (one way instead of two)
//   gather   beyond that: each member to node 0, which then sends
//   spread   to each member
//   join     each member to node 0
// A node without threads in the region gets nothing: its news waits for its next fork.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "base/latch.hpp"
#include "base/thread_context.hpp"
#include "net/kick/kick.hpp"
#include "net/net.hpp"
#include "omp/omp.hpp"

namespace hiroba::omp {

/// A region as the initial thread starts it.
struct Fork {
    OutlinedFunction function = nullptr;
    void* data = nullptr;
    Place place;  ///< of thread 0
    Icvs icvs;
    std::uint64_t sequence = 0;  ///< number of the region's first worksharing construct
    bool has_loop = false;
    Loop loop;
    ProcessState process;  ///< what the members' processes must be like
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
    void attach() { mail_->attach(); }

    /// Node 0: starts a region on `members` nodes (at least 2); join() ends it.
    void fork(const Fork& fork, std::uint32_t members) noexcept;
    /// False: a signal handler of the program waits; to be called again. As finish_barrier().
    bool join() noexcept;
    void send_quit() noexcept;

    enum class Called { region, end, handlers };
    /// Other nodes: waits for the next region. `handlers`: signal handlers of the program wait.
    Called await_fork(Fork* fork) noexcept;
    /// On the program's stack, between regions: lets handlers run, and releases what they wrote.
    void run_handlers() noexcept;
    void set_members(std::uint32_t members) noexcept { members_ = members; }
    void arrive_at_join() noexcept;

    /// Every member: all writes of all members before begin_ are visible to all after finish_.
    void begin_barrier() noexcept;
    bool finish_barrier() noexcept;

    /// On the program's stack: calls `step` on the runtime's until it says true. While it says
    /// false, handlers of the program run in between, and other threads' releases know of it.
    template <class Step>
    void in_steps(Step&& step) noexcept;
    /// Within a step: waits; false when a handler of the program does, too, and it is not `ready`.
    template <class Ready>
    bool await(Ready&& ready) noexcept {
        mail_->wait_for([&] { return ready() || parts_.interruptions.are_pending(); });
        return ready();
    }

    void count_program_threads(int change) noexcept { program_threads_.fetch_add(change); }

private:
    enum class Kind : std::uint32_t { fork, barrier, gather, spread, join };
    struct Header {
        Kind kind;
        std::uint32_t phase;
        std::uint64_t region;
    };

    TeamLink(const Parts& parts, std::unique_ptr<net::kick::Mailboxes> mail);
    void release() noexcept;
    void acquire() noexcept;
    void all_nodes_know() noexcept;
    void region_runs(bool runs) noexcept;
    void send(std::uint32_t to, Kind kind, Bytes extra = {}) noexcept;
    /// Takes the next mail of `from`, waiting for it, which must be a `kind` of this region and
    /// phase.
    void receive(std::uint32_t from, Kind kind, MutableBytes extra = {}) noexcept;
    bool have_come(std::uint32_t from, std::uint32_t to) noexcept;
    /// From here on this thread counts as one of the program that runs.
    void run_beside_releases() noexcept {
        const std::scoped_lock still{still_};
        count_program_threads(+1);
    }
    void let_handlers_run() noexcept;
    void on_quit() noexcept;

    Parts parts_;
    std::uint32_t self_, members_ = 1;
    std::uint64_t region_ = 0;
    std::uint32_t phase_ = 0;  ///< barriers passed in this region
    std::unique_ptr<net::kick::Mailboxes> mail_;
    std::atomic<bool> over_{false}, in_region_{false};
    std::atomic<int> program_threads_{0};
    Latch still_;  ///< held by a release that takes the program for standing still
};

template <class Step>
void TeamLink::in_steps(Step&& step) noexcept {
    const RuntimeScope here;
    bool through = false;
    bool again = false;
    while (!through) {
        if (again) let_handlers_run();
        on_runtime_stack([&] {
            if (again) count_program_threads(-1);
            through = step();
            if (!through) run_beside_releases();
        });
        again = true;
    }
}

}  // namespace hiroba::omp
