// SPDX-License-Identifier: BSD-3-Clause
// Role: tasks between nodes: which node has work, which wants some, handing it over, and what
// became of it (docs/layers/tasks.md has the protocol).
// Invariant: a node releases after it has chosen the tasks it gives and before it sends them, and
// after a guest's body has ended and before it says so; it acquires before it enters in its books
// what came. So a stolen task sees all that was done before it was created, and a thread that
// waited for it sees all that it did. News leave out what every node knows behind the barriers that
// their sender has passed: tasks from behind one wait until this node has passed it, too. Handlers
// only copy mails; a thread that waits reads them, or the clerk, a thread that does nothing else
// and runs no code of the program.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "base/bell.hpp"
#include "base/latch.hpp"
#include "net/net.hpp"
#include "omp/omp.hpp"
#include "omp/task/task_book.hpp"
#include "omp/task/task_mail.hpp"
#include "omp/team/lost_singles.hpp"
#include "omp/team/single_turn.hpp"

namespace hiroba::omp {

class TaskPool;

/// Thread: any, unless said otherwise.
class TaskExchange {
public:
    /// Registers a handler; before Endpoint::connect().
    TaskExchange(const Parts& parts, TaskPool& pool);
    TaskExchange(const TaskExchange&) = delete;
    TaskExchange& operator=(const TaskExchange&) = delete;
    ~TaskExchange();
    /// Starts the clerk.
    void attach();

    /// The region's number over the whole job, and its nodes: 0 to members - 1. While no thread of
    /// this node runs a part of it.
    void begin_region(std::uint64_t region, std::uint32_t members) noexcept;

    /// In the region that runs this node has passed one more barrier of all members, and has
    /// acquired what they told it there. By the thread that takes the barrier's mails.
    void pass_barrier() noexcept;

    bool has_work() const noexcept {
        return !inbox_.empty() || attention_.load(std::memory_order_acquire);
    }
    /// Reads mails and gives tasks to the nodes that want some. On any stack.
    void attend() noexcept;
    /// The two halves of that. A thread that looks for a task takes its own in between.
    void take_in() noexcept;
    void hand_out() noexcept;
    void call_clerk() noexcept;
    /// After a change of the books, which have made `offers` offers. `attends`: the caller calls
    /// attend() next, so the clerk need not be called.
    void see_offers(std::uint64_t offers, bool attends) noexcept;

    /// The calling thread has nothing to do: asks the next node that may have something.
    void ask_any() noexcept;
    /// The calling thread waits for descendants of one of its tasks, `away` among them: asks for
    /// those. Called again each time the thread's patience ends.
    void ask_for(std::span<const TaskHandle> away) noexcept;
    /// Reports the ends of guests, with all this node has written, before the program's thread goes
    /// on.
    /// `goes_on`: this node has more to execute, and more to tell soon. Then a node that computes
    /// is left alone, and reads at its next task; but for once in a while.
    void tell(std::span<const GuestReport> reports, bool goes_on) noexcept;
    void fulfill_elsewhere(TaskHandle event) noexcept;
    /// Cancellation orders no memory: no news go along.
    void tell_cancelled(const TaskBook::Cancelled& cancelled) noexcept;

    /// What has nothing to do with tasks, but with what travels the same way: before attach(),
    /// where the node's threads note which singles they got.
    void answer_singles_of(std::span<SingleTurn> turns) noexcept { turns_ = turns; }
    /// Acquires what threads of other nodes have stored in those constructs up to now, and at least
    /// what they store at once: asks all, since only who executes one knows it. In the region that
    /// runs; with nothing held.
    void acquire_singles(const LostSingles& lost) noexcept;

    /// Tasks that have come, and have gone.
    std::uint64_t tasks_taken() const noexcept { return taken_.load(std::memory_order_relaxed); }

private:
    enum class Asked : std::uint8_t { no, waits_for_answer, remembered_there };
    struct Peer {
        std::uint64_t offers_in_region = 0;  ///< the region in which it said that it has tasks
        Asked asked = Asked::no;
        bool wants_any = false, wants_answer = false;
        std::vector<TaskHandle> wants;   ///< away from it, and it waits for what descends from them
        std::uint64_t woken_ns = 0;      ///< when it was told of an end, and woken for that
        std::uint64_t wants_single = 0;  ///< 1 + the number it has asked for; in any region
    };
    struct Parcel {
        NodeId to;
        std::vector<GivenTask> tasks;
    };

    static void on_mail(void* exchange, NodeId from, Bytes body) noexcept;
    void read_mails() noexcept;
    void read_what_came() noexcept;
    void read_early() noexcept;
    bool polls_now() noexcept;
    net::Urgency urgency_of_report(NodeId origin, bool goes_on) noexcept;
    void apply(const TaskInbox::Mail& mail, TaskBook& book, std::vector<void*>& arguments);
    void serve() noexcept;
    void choose(TaskBook& book, std::vector<Parcel>& parcels);
    void tell_here() noexcept;
    void send(NodeId to, TaskMailHeader::Kind kind, net::Urgency urgency, Bytes records = {},
              std::size_t count = 0, Bytes news = {}) noexcept;
    template <class Record>
    void send(NodeId to, TaskMailHeader::Kind kind, net::Urgency urgency,
              std::span<const Record> records, Bytes news = {}) noexcept {
        send(to, kind, urgency, std::as_bytes(records), records.size(), news);
    }
    std::vector<std::byte> news() noexcept;
    void want_attention() noexcept;
    std::uint32_t members() noexcept;
    void work_as_clerk() noexcept;
    bool may_have_singles(std::uint64_t first) noexcept;
    void answer_singles() noexcept;
    void ask_for_singles(const LostSingles& lost) noexcept;
    template <class Ready>
    void await_mails(Ready&& ready) noexcept;

    Parts parts_;
    TaskPool& pool_;
    const NodeId self_;

    TaskInbox inbox_;
    Latch reading_;  ///< held while reading mails, in the order they came
    struct Early {
        TaskInbox
            mails;     ///< of nodes that have passed a barrier, or begun a region, before this one
        Latch taking;  ///< held while taking them out
    } early_;
    std::atomic<std::uint64_t> barriers_passed_{0};

    Latch peers_latch_;  ///< the next four. Taken within the books' latch, never the other way
    std::vector<Peer> peers_;
    std::atomic<std::uint64_t> region_{0};  ///< begun last; read without it, too
    std::uint32_t members_ = 1;
    std::uint32_t serve_first_ = 0;
    std::atomic<std::uint32_t> wanting_{0};  ///< peers that want something
    std::atomic<std::uint64_t> offers_seen_{0}, told_region_{0}, current_region_{0};
    std::atomic<bool> attention_{false};
    std::atomic<std::uint64_t> taken_{0};
    std::atomic<bool> expects_mail_{false};  ///< in this region, so its threads poll
    std::atomic<std::uint64_t> poll_next_ns_{0};
    std::atomic<std::uint32_t> polling_{0};  ///< threads that read the inbox right after

    std::span<SingleTurn> turns_;
    struct {
        Latch asking;                       ///< held by the one thread that waits for answers
        std::atomic<std::uint64_t> end{0};  ///< of the constructs of which all is acquired
        std::atomic<std::uint32_t> answers_missing{0};
        std::atomic<bool> wanted{false};  ///< by a peer
    } singles_;

    struct {
        std::atomic<bool> called{false}, stopping{false};
        Bell bell;
        std::thread thread;
    } clerk_;
};

}  // namespace hiroba::omp
