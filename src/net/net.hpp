// SPDX-License-Identifier: BSD-3-Clause
// Role: the face of the communication layer: messages with handlers, and waiting.
// Invariant: at most one thread polls the provider at a time (the progress role): a thread that
// waits inside hiroba while it waits, the service thread otherwise. What a waiter waits for is
// either in memory, and the thread that stores it wakes the waiter, or made by a handler, and the
// thread that polled wakes the waiter.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/latch.hpp"
#include "base/result.hpp"
#include "base/thread_context.hpp"
#include "net/bootstrap/job.hpp"
#include "net/outbox.hpp"
#include "net/progress_part.hpp"
#include "net/provider/provider.hpp"
#include "net/wait_budget.hpp"

namespace hiroba::net {

/// Runs on the polling thread; must not wait for another node and must not touch global memory
/// through the program's addresses. It may send. `body` is borrowed.
using Handler = void (*)(void* context, NodeId from, Bytes body) noexcept;

/// One node's end of the communication.
class Endpoint final : private Arrivals {
public:
    /// Picks the provider (setting HIROBA_PROVIDER, default shm) for the job. `control` must live
    /// until connect() has returned.
    static Result<std::unique_ptr<Endpoint>> open(const JobInfo& job, ControlChannel& control);
    /// As above; each of `further` devices carries the messages of one kind.
    static Result<std::unique_ptr<Endpoint>> open(const JobInfo& job, ControlChannel& control,
                                                  const FurtherDevices& further);
    /// As open(), over a provider made by the caller.
    static std::unique_ptr<Endpoint> over(NodeId self, std::uint32_t nodes,
                                          std::unique_ptr<Provider> provider);

    NodeId self() const noexcept { return self_; }
    std::uint32_t nodes() const noexcept { return nodes_; }
    Provider& provider() noexcept { return *provider_; }

    /// Registers the handler for a kind. Before connect().
    void on(MessageKind kind, Handler handler, void* context) noexcept;
    Result<void> connect();

    /// Sends; while the target's queue is full it polls, then yields, then sleeps, and has the
    /// target's service thread empty the queue. Any thread; any stack. From a handler it never
    /// waits: what finds the queue full leaves with later polls, the service thread's at the
    /// latest.
    /// @param parts together at most provider().limits().message_bytes_max bytes, copied; in
    ///              private memory, since a fault in the middle would meet a latch held
    void send(NodeId to, MessageKind kind, Urgency urgency, std::span<const Bytes> parts) noexcept;

    /// Sends a kick that provider().prepare() has prepared; waits for credits as send() does for
    /// room. Any thread; not from a handler.
    void kick(const PreparedKick& prepared, std::uint32_t offset, std::uint64_t value,
              bool more) noexcept;

    /// Posts one-sided work and returns when it is complete. Any thread; not from a handler, unless
    /// limits().completes_inline.
    /// @param posting  called with the OpId to post under, again and again while it says again
    template <class Posting>
    void complete(Posting&& posting) noexcept {
        complete_posted(
            [](void* p, OpId id) {
                return (*static_cast<std::remove_reference_t<Posting>*>(p))(id);
            },
            const_cast<void*>(static_cast<const void*>(&posting)));
    }

    /// Posts a list and returns when all of it is complete; the ids are ours. The list is given to
    /// the provider whole, so that what can travel together does. Any thread; not from a handler.
    /// @param list  at most list_max; nothing but puts, gets and atomics
    void complete_all(std::span<Work> list) noexcept;
    static constexpr std::size_t list_max = 144;

    /// Has `part` work whenever this node polls. Before connect(); the part outlives the service
    /// thread and the last wait.
    void attach(ProgressPart& part) noexcept { part_ = &part; }
    /// Calls the provider directly: as it is where limits().parallel or in a handler, else with the
    /// progress role, for which it waits briefly.
    template <class Call>
    Post post(Call&& call) noexcept {
        if (provider_->limits().parallel || in_handler()) return call();
        progress_.lock();
        const Post outcome = call();
        progress_.unlock();
        return outcome;
    }
    /// As post(), but returns false at once, without a call, while another thread has the role.
    template <class Call>
    bool try_post(Call&& call, Post& outcome) noexcept {
        const bool as_it_is = provider_->limits().parallel || in_handler();
        if (!as_it_is && !progress_.try_lock()) return false;
        outcome = call();
        if (!as_it_is) progress_.unlock();
        return true;
    }
    /// Returns false while messages of handlers wait for room at `to`: none may overtake them.
    bool may_send(NodeId to) const noexcept { return outbox_.empty(to); }

    /// The calling thread has the progress role: it runs a handler, or a callback under a poll.
    bool in_handler() const noexcept {
        // Relaxed: only the thread's own store can make this true for it.
        return poller_.load(std::memory_order_relaxed) == &this_thread();
    }

    /// Polls once if no other thread is polling. True if something was delivered.
    bool poll() noexcept;
    /// Tells what is complete of the calling thread's set of queues, beside the thread that polls.
    /// True if anything was. Where limits().queue_pairs is above 1.
    bool poll_own() noexcept;

    /// Waits until `ready(argument)`: polls and spins briefly, yields, then sleeps. Wakes on
    /// messages, on wake_local() and on a peer's wake(). Any thread; not from a handler.
    /// @param until_ns  of now_ns(): returns false if it is not ready by then
    bool wait(bool (*ready)(void*), void* argument, std::uint64_t until_ns = forever) noexcept;
    template <class Predicate>
    bool wait_until(Predicate&& predicate, std::uint64_t until_ns = forever) noexcept {
        return wait(
            [](void* p) { return (*static_cast<std::remove_reference_t<Predicate>*>(p))(); },
            const_cast<void*>(static_cast<const void*>(&predicate)), until_ns);
    }
    static constexpr std::uint64_t forever = ~std::uint64_t{0};
    /// How often a wait here looks before it yields: rarely where threads lack cores. Any thread.
    std::uint32_t spins() const noexcept { return shortage_.spins(); }
    /// Wakes waiters of this node after a store to local memory they may be waiting for.
    void wake_local() noexcept { provider_->wake(self_, Provider::Sleeper::waiter); }

    /// Wakes waiters on another node after a one-sided store they may be waiting for.
    void wake(NodeId node) noexcept { provider_->wake(node, Provider::Sleeper::waiter); }

    /// Waits until what this node has sent was received. Call it before leaving the job: only the
    /// sender repeats what was lost. Returns false when `timeout_ns` passed first. Any thread; not
    /// from a handler.
    bool drain(std::uint64_t timeout_ns) noexcept;

    /// The service role: sleeps until urgent messages come, polls, returns after stop().
    void serve() noexcept;
    void stop() noexcept;
    /// From now on nodes end when they like: what is under way to one that has gone never ends, and
    /// is no error. Any thread, handlers too.
    void note_job_over() noexcept { job_is_over_.store(true, std::memory_order_relaxed); }

private:
    Endpoint(NodeId self, std::uint32_t nodes, std::unique_ptr<Provider> provider);
    void message(NodeId from, MessageKind kind, Bytes body) noexcept override;
    void completed(OpId id) noexcept override;
    void failed(OpId id, NodeId peer) noexcept override;
    void ended(const Completion& then, Outcome outcome) noexcept override;
    [[noreturn]] void silent(NodeId peer) noexcept override;

    void complete_posted(Post (*posting)(void*, OpId), void* argument) noexcept;
    template <class Attempt>
    void insist(Attempt&& attempt) noexcept;
    template <class Sent>
    void wait_until_sent(NodeId to, Sent&& sent) noexcept;
    enum class Sleep : std::uint8_t { tick, until_room, until_needed };
    void sleep_service(Sleep how) noexcept;
    bool has_calls() const noexcept { return part_ != nullptr && part_->has_calls(); }
    void run_calls() noexcept;
    bool anything_blocked() const noexcept {
        return outbox_.any() || (part_ != nullptr && part_->blocked());
    }

    struct Registered {
        Handler handler = nullptr;
        void* context = nullptr;
    };
    NodeId self_;
    std::uint32_t nodes_;
    std::unique_ptr<Provider> provider_;
    ProgressPart* part_ = nullptr;
    Registered handlers_[message_kinds_max];
    Latch progress_;
    Outbox outbox_;
    std::atomic<const ThreadContext*> poller_{
        nullptr};  ///< who has the progress role; for in_handler() alone
    std::atomic<const ThreadContext*> server_{nullptr};  ///< the service thread
    std::atomic<std::uint64_t> polls_of_others_{0};      ///< than the service thread
    std::atomic<bool> stopping_{false};
    std::atomic<bool> job_is_over_{false};
    CoreShortage shortage_;
};

}  // namespace hiroba::net
