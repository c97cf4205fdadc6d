// SPDX-License-Identifier: BSD-3-Clause
// Role: see net.hpp: who polls, who waits, and why no thread is left asleep.
//
// No thread is stranded. A waiter sleeps only after it has announced itself and then found its
// predicate false and every queue empty (Provider::sleep). From then on: a message wakes it,
// because its sender looks for sleepers after publishing; what another thread's handler did wakes
// it, because poll() looks for sleepers after delivering; a store wakes it, because its author
// calls wake(). The timeout of a sleep is a safety net for bugs of others, not part of the
// argument.
#include "net/net.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "base/held_signals.hpp"
#include "base/settings.hpp"
#include "base/short_slice.hpp"
#include "net/provider/registry.hpp"

namespace hiroba::net {
namespace {

constexpr std::size_t poll_count_max = 64;
constexpr std::uint64_t sleep_ns = 100'000'000;  // the safety net
constexpr std::uint64_t tick_ns = 200'000;       // of the service thread beside pollers
constexpr std::uint64_t contested_core_ns = 1'000'000'000;
constexpr std::uint64_t full_queue_sleep_ns = 1'000'000;  // room in a queue is not announced

bool never(void*) { return false; }

std::uint64_t ns_until(std::uint64_t end_ns) {
    if (end_ns == Endpoint::forever) return end_ns;
    const std::uint64_t now = now_ns();
    return now < end_ns ? end_ns - now : 0;
}

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::open(const JobInfo& job, ControlChannel& control) {
    return open(job, control, FurtherDevices{});
}

Result<std::unique_ptr<Endpoint>> Endpoint::open(const JobInfo& job, ControlChannel& control,
                                                 const FurtherDevices& further) {
    ProviderSetup setup{
        .self = job.self,
        .nodes = job.nodes,
        .job_key = job.job_key,
        .exchange = [&control](Bytes mine, int fd) { return control.all_gather(mine, fd); },
        .job_key_high = job.job_key_high,
        .network = job.network,
        .one_host = job.hosts == 1};
    if (job.nodes > 1 && job.control_fd < 0) {
        return Error{ErrorKind::internal,
                     "a job of " + std::to_string(job.nodes) + " nodes without a launcher"};
    }
    // The launcher refuses shm over several hosts when it was asked for: here it is the default.
    std::string_view name = setting("HIROBA_PROVIDER");
    if (job.hosts > 1 && name == "shm") name = "auto";
    auto provider = make_provider(name, std::move(setup), further);
    if (!provider) return provider.error();
    return over(job.self, job.nodes, std::move(*provider));
}

std::unique_ptr<Endpoint> Endpoint::over(NodeId self, std::uint32_t nodes,
                                         std::unique_ptr<Provider> provider) {
    return std::unique_ptr<Endpoint>(new Endpoint(self, nodes, std::move(provider)));
}

Endpoint::Endpoint(NodeId self, std::uint32_t nodes, std::unique_ptr<Provider> provider)
    : self_(self), nodes_(nodes), provider_(std::move(provider)), outbox_(nodes) {}

void Endpoint::on(MessageKind kind, Handler handler, void* context) noexcept {
    const auto index = static_cast<std::size_t>(kind);
    HIROBA_INVARIANT(index < std::size(handlers_), "message kind %lu", index);
    handlers_[index] = {handler, context};
}

Result<void> Endpoint::connect() { return provider_->connect(); }

// --- progress ------------------------------------------------------------------------------------

bool Endpoint::poll() noexcept {
    if (!progress_.try_lock()) return false;
    const ThreadContext* const poller = &this_thread();
    poller_.store(poller, std::memory_order_relaxed);
    // Relaxed: only the holder of the role writes, and the service thread takes it as a hint.
    if (poller != server_.load(std::memory_order_relaxed)) {
        polls_of_others_.store(polls_of_others_.load(std::memory_order_relaxed) + 1,
                               std::memory_order_relaxed);
    }
    // Queued requests go first: they take along the acknowledgements that a poll which finds
    // nothing would have to send on their own.
    std::size_t delivered = part_ != nullptr ? part_->progress() : 0;
    delivered += provider_->poll(*this, poll_count_max);
    while (part_ != nullptr && part_->take_joined()) delivered += part_->progress();
    if (outbox_.any()) outbox_.flush(*provider_);
    poller_.store(nullptr, std::memory_order_relaxed);
    progress_.unlock();
    // Should no one else poll, the service thread keeps at it.
    if (outbox_.any()) provider_->wake(self_, Provider::Sleeper::service);
    if (delivered == 0) return false;
    // Another waiter's predicate may have become true by a handler, with the queues empty again
    // before it looked at them.
    wake_local();
    return true;
}

bool Endpoint::poll_own() noexcept {
    if (provider_->poll_own(*this, poll_count_max) == 0) return false;
    wake_local();
    return true;
}

void Endpoint::message(NodeId from, MessageKind kind, Bytes body) noexcept {
    const Registered& registered = handlers_[static_cast<std::size_t>(kind)];
    HIROBA_INVARIANT(registered.handler != nullptr, "no handler for kind %u, sent by node %u",
                     static_cast<unsigned>(kind), from.value);
    registered.handler(registered.context, from, body);
}

void Endpoint::completed(OpId id) noexcept {
    if ((id.value & 1) != 0) return part_->completed(id);  // an address is even
    // Release, pairs with the load in complete_posted(): the waiter sees what the operation
    // brought.
    reinterpret_cast<std::atomic<bool>*>(id.value)->store(true, std::memory_order_release);
}

void Endpoint::ended(const Completion& then, Outcome outcome) noexcept {
    part_->ended(then, outcome);
}

// The job cannot go on without a node's memory; the launcher ends the others. Behind its last
// message a node goes when it likes, and what others still ask of it goes with them.
void Endpoint::failed(OpId id, NodeId peer) noexcept {
    if ((id.value & 1) != 0) return part_->failed(id);
    if (job_is_over_.load(std::memory_order_relaxed)) return;  // a flag alone
    die(exit_environment, "node %u is lost: an operation on its memory cannot complete",
        peer.value);
}

void Endpoint::silent(NodeId peer) noexcept {
    die(exit_environment,
        "node %u is lost: nothing was heard of it for longer than HIROBA_PEER_TIMEOUT seconds",
        peer.value);
}

// --- posting -------------------------------------------------------------------------------------

void Endpoint::send(NodeId to, MessageKind kind, Urgency urgency,
                    std::span<const Bytes> parts) noexcept {
    HIROBA_INVARIANT(to.value < nodes_, "message to node %u of %u", to.value, nodes_);
    const auto try_send = [&] { return provider_->send(to, kind, urgency, parts); };
    const auto sent = [&] { return outbox_.empty(to) && post(try_send) != Post::again; };
    if (sent()) [[likely]]
        return;
    if (in_handler()) return outbox_.append(to, kind, urgency, parts);
    wait_until_sent(to, sent);
}

void Endpoint::kick(const PreparedKick& prepared, std::uint32_t offset, std::uint64_t value,
                    bool more) noexcept {
    const auto try_kick = [&] { return provider_->kick(prepared, offset, value, more); };
    const auto sent = [&] { return post(try_kick) != Post::again; };
    if (sent()) [[likely]]
        return;
    HIROBA_INVARIANT(!in_handler(), "kick to node %u from a handler, without credits",
                     prepared.to.value);
    wait_until_sent(prepared.to, sent);
}

/// Makes room at `to`, and tries again and again.
template <class Sent>
void Endpoint::wait_until_sent(NodeId to, Sent&& sent) noexcept {
    WaitBudget budget{shortage_};
    do {
        if (poll()) continue;
        // The target's threads may be busy with the program for long; its service thread is not.
        provider_->wake(to, Provider::Sleeper::service);
        if (budget.pass()) continue;
        provider_->sleep(Provider::Sleeper::waiter, full_queue_sleep_ns, never, nullptr);
        budget.slept();
    } while (!sent());
}

/// Tries again and again while the provider has no room; `attempt` says when there was.
template <class Attempt>
void Endpoint::insist(Attempt&& attempt) noexcept {
    WaitBudget budget{shortage_};
    while (!attempt()) {
        if (poll() || budget.pass()) continue;
        provider_->sleep(Provider::Sleeper::waiter, full_queue_sleep_ns, never, nullptr);
        budget.slept();
    }
}

void Endpoint::complete_posted(Post (*posting)(void*, OpId), void* argument) noexcept {
    alignas(8) std::atomic<bool> done{false};  // its address is even
    const OpId id{reinterpret_cast<std::uintptr_t>(&done)};
    Post outcome = Post::again;
    insist([&] {
        outcome = post([&] { return posting(argument, id); });
        return outcome != Post::again;
    });
    if (outcome == Post::done) return;
    wait_until([&] { return done.load(std::memory_order_acquire); });  // pairs with completed()
}

void Endpoint::complete_all(std::span<Work> list) noexcept {
    HIROBA_INVARIANT(list.size() <= list_max, "a list of %lu; at most %lu", list.size(), list_max);
    struct alignas(8) Done {  // its address is even
        std::atomic<bool> yet{false};
    } done[list_max];
    for (std::size_t i = 0; i < list.size(); ++i) {
        list[i].id = OpId{reinterpret_cast<std::uintptr_t>(&done[i])};
    }
    std::size_t posted = 0;
    insist([&] {
        post([&] {
            const std::size_t taken = provider_->post(list.subspan(posted));
            for (std::size_t i = posted; i < posted + taken; ++i) {
                // Relaxed: no other thread stores to it when it is done already.
                if (list[i].outcome == Post::done)
                    done[i].yet.store(true, std::memory_order_relaxed);
            }
            posted += taken;
            return Post::done;
        });
        return posted == list.size();
    });
    for (std::size_t i = 0; i < list.size(); ++i) {
        // Acquire, pairs with completed().
        wait_until([&] { return done[i].yet.load(std::memory_order_acquire); });
    }
}

// --- waiting -------------------------------------------------------------------------------------

// Where requests gather, what other threads ask before this one polls leaves with that poll, in one
// datagram. Without the turn, threads that share a core would each wait out their answer before the
// next one asks.
bool Endpoint::wait(bool (*ready)(void*), void* argument, std::uint64_t until_ns) noexcept {
    if (ready(argument)) return true;
    WaitBudget budget{shortage_};
    const bool turned = part_ != nullptr && part_->awaits_few_answers() &&
                        provider_->limits().gathers && budget.give_turn();
    if (turned && ready(argument)) return true;
    do {
        const std::uint64_t left_ns = ns_until(until_ns);
        if (left_ns == 0) return false;
        if (poll()) {
            budget.renew();
            continue;
        }
        if (budget.pass()) continue;
        const std::uint64_t sleep_max_ns = anything_blocked() ? full_queue_sleep_ns : sleep_ns;
        provider_->sleep(Provider::Sleeper::waiter, std::min(sleep_max_ns, left_ns), ready,
                         argument);
        obey_deadly_signals();
        budget.slept();
    } while (!ready(argument));
    return true;
}

bool Endpoint::drain(std::uint64_t timeout_ns) noexcept {
    const std::uint64_t end_ns = now_ns() + timeout_ns;
    const auto drained = [&] { return !outbox_.any() && provider_->drained(); };
    while (!wait_until(drained, std::min(end_ns, now_ns() + full_queue_sleep_ns))) {
        if (now_ns() >= end_ns) return false;
    }
    return true;
}

// While other threads poll, they carry out what is queued and answer peers: then the service thread
// neither stays up beside them, which would cost them their core, nor asks to be woken by each
// request, but looks every now and then whether they still do. Once they do not, they compute or
// sleep, and it stays up for a moment after each piece of work of its own, unless somebody wants
// its core: to yield to a thread that computes is to wait for the end of its slice, while a sleeper
// that is woken goes first (ask_for_short_slices).
void Endpoint::serve() noexcept {
    ask_for_short_slices(ShortSlice::of_service);
    server_.store(&this_thread(), std::memory_order_relaxed);  // for poll(), on this thread alone
    CoreShortage shortage;
    WaitBudget budget{shortage};
    std::uint64_t stays_up_from_ns = 0, polls_seen = 0;
    bool worked = false;  // since it slept
    const auto sleep = [&](Sleep how) {
        sleep_service(how);
        budget.slept();
        worked = false;
    };
    while (!stopping_.load(std::memory_order_acquire)) {  // pairs with stop()
        if (has_calls()) run_calls();
        if (poll()) {
            worked = true;
            continue;
        }
        const std::uint64_t polls = polls_of_others_.load(std::memory_order_relaxed);
        const bool others_poll = std::exchange(polls_seen, polls) != polls;
        const bool queued = part_ != nullptr && part_->queued_since_last_asked();
        if (!anything_blocked() && others_poll && queued) {
            sleep(Sleep::tick);
            continue;
        }
        // A thread that hands over one request has more: stay up for a while.
        const bool may_stay_up =
            anything_blocked() ||
            (part_ != nullptr && worked && !others_poll && now_ns() > stays_up_from_ns);
        if (may_stay_up && budget.pass()) {
            if (shortage.spins() != CoreShortage::spins_min) continue;
            stays_up_from_ns = now_ns() + contested_core_ns;
            shortage.forget();
            continue;
        }
        sleep(anything_blocked() ? Sleep::until_room : Sleep::until_needed);
    }
}

void Endpoint::sleep_service(Sleep how) noexcept {
    const auto stopping = [](void* p) {
        auto* self = static_cast<Endpoint*>(p);
        return self->stopping_.load(std::memory_order_acquire) || self->has_calls();  // stop()
    };
    const auto needed = [](void* p) {
        auto* self = static_cast<Endpoint*>(p);
        return self->stopping_.load(std::memory_order_acquire) || self->outbox_.any() ||
               self->has_calls() || (self->part_ != nullptr && !self->part_->may_sleep());
    };
    switch (how) {
        case Sleep::tick:
            return provider_->sleep(Provider::Sleeper::service, tick_ns, stopping, this);
        case Sleep::until_room:  // the targets do not report that they have room
            return provider_->sleep(Provider::Sleeper::service, full_queue_sleep_ns, stopping,
                                    this);
        case Sleep::until_needed: break;
    }
    const std::uint64_t before_ns = now_ns();
    provider_->sleep(Provider::Sleeper::service, sleep_ns, needed, this);
    if (part_ != nullptr) part_->awake();
    // Returns at once while another thread is emptying the queues; then leave it the core.
    if (now_ns() - before_ns < shared_core_yield_ns()) yield();
}

// Foreign calls bear nothing beside them, so the thread waits for the role instead of trying.
void Endpoint::run_calls() noexcept {
    progress_.lock();
    poller_.store(&this_thread(), std::memory_order_relaxed);
    part_->run_calls();
    poller_.store(nullptr, std::memory_order_relaxed);
    progress_.unlock();
    wake_local();
}

void Endpoint::stop() noexcept {
    stopping_.store(true, std::memory_order_release);  // pairs with serve()
    provider_->wake(self_, Provider::Sleeper::service);
}

}  // namespace hiroba::net
