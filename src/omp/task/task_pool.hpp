// SPDX-License-Identifier: BSD-3-Clause
// Role: one node's tasks as its threads see them: the books under their latch, memory for
// arguments, and waiting for what may happen to tasks. Invariant: no thread touches the program's
// memory, waits or sends while holding the latch, so that a fault or a handler never meets it held
// by its own thread. A thread that changes the books wakes the waiting ones; each of those has read
// events() before it looked for something to do.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/latch.hpp"
#include "base/thread_context.hpp"
#include "omp/omp.hpp"
#include "omp/task/task_book.hpp"
#include "omp/task/task_exchange.hpp"
#include "omp/team/gate.hpp"

namespace hiroba::omp {

class TaskPool {
public:
    /// Registers handlers on several nodes; before Endpoint::connect().
    explicit TaskPool(const Parts& parts);
    /// After Endpoint::connect().
    void attach();
    /// Null on one node.
    TaskExchange* exchange() noexcept { return exchange_.get(); }

    /// Calls change(book), alone. Short; touches no memory of the program.
    template <class Change>
    auto with_books(Change&& change) noexcept {
        const Held held{*this};
        return change(book_);
    }
    /// The same at a task scheduling point of the program: what other nodes wait for is handed to
    /// them here, by the calling thread, and not by one that has to be woken.
    template <class Change>
    void with_books_and_attend(Change&& change) noexcept {
        {
            const Held held{*this, true};
            change(book_);
        }
        attend();
    }
    std::uint64_t events() const noexcept { return events_.load(std::memory_order_acquire); }
    /// So many tasks wait that a thread that makes further ones had better execute them itself.
    bool has_enough() const noexcept { return has_enough_.load(std::memory_order_relaxed); }
    TaskTeam& everywhere() noexcept { return book_.everywhere(); }
    /// No task of the team that this node created is left.
    static bool quiet(const TaskTeam& team) noexcept {
        return team.live.load(std::memory_order_acquire) == 0;  // pairs with TaskBook::finish()
    }
    bool quiet() const noexcept { return quiet(book_.everywhere()); }

    /// Something has happened since events() was `seen`, or a mail is to be read.
    bool stirs(std::uint64_t seen) const noexcept {
        return events() != seen || (exchange_ != nullptr && exchange_->has_work());
    }
    /// Does what other nodes have asked for or told.
    void attend() noexcept {
        if (exchange_ != nullptr && exchange_->has_work()) exchange_->attend();
    }
    /// Calls choose(book) and returns what it chose, between reading what other nodes have sent and
    /// handing out what they want: of two nodes that wait for one task, neither gives it away
    /// unless its own threads have no use for it. Else it would travel to and fro, and no thread
    /// would execute it.
    template <class Choose>
    Task* choose_first(Choose&& choose) noexcept {
        if (exchange_ != nullptr) exchange_->take_in();
        Task* const task = with_books(choose);
        if (exchange_ != nullptr) exchange_->hand_out();
        return task;
    }

    /// While one lives, its thread waits and looks at stirs() now and then.
    class Waiting {
    public:
        explicit Waiting(TaskPool& pool) noexcept : pool_(pool) { pool.waiting_.fetch_add(1); }
        Waiting(const Waiting&) = delete;
        Waiting& operator=(const Waiting&) = delete;
        ~Waiting();
        /// The waiting thread goes to attend(): the clerk need not be called.
        void will_attend() noexcept { will_attend_ = true; }

    private:
        TaskPool& pool_;
        bool will_attend_ = false;
    };
    bool has_waiting() const noexcept { return waiting_.load() != 0; }
    /// On one node: returns when something has happened since events() was `seen`, or was rung.
    template <class Ready>
    void wait_here(std::uint64_t seen, const Patience& patience, Ready&& ready) noexcept {
        Waiting waiting{*this};
        for (;;) {
            const std::uint32_t rung = bell_.value();
            if (stirs(seen) || ready()) return;
            bell_.pass(rung, patience);
        }
    }
    /// Wakes waiting threads after a store of another kind that they look at.
    void ring() noexcept;

    /// Memory that every node reaches; never null.
    void* allocate_argument(std::size_t bytes, std::size_t alignment) noexcept;
    void free_argument(void* argument) noexcept;

private:
    /// Holds the latch, and tells of what was changed.
    class Held {
    public:
        explicit Held(TaskPool& pool, bool attends = false) noexcept
            : pool_(pool), attends_(attends) {
            pool.latch_.lock();
        }
        Held(const Held&) = delete;
        Held& operator=(const Held&) = delete;
        ~Held() { pool_.end_change(attends_); }

    private:
        TaskPool& pool_;
        const bool attends_;  ///< to what the change leads to
        RuntimeScope here_;
    };
    void end_change(bool attends) noexcept;

    Parts parts_;
    Patience patience_;
    Latch latch_;
    TaskBook book_;
    std::size_t ready_max_ = 0;             ///< tasks that wait here
    std::atomic<std::uint64_t> events_{0};  // of the book, for those without the latch
    std::atomic<bool> has_enough_{false};   // a hint
    std::atomic<std::uint32_t> waiting_{0};
    Gate bell_;  ///< on one node
    std::unique_ptr<TaskExchange> exchange_;
};

}  // namespace hiroba::omp
