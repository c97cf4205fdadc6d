// SPDX-License-Identifier: BSD-3-Clause
// Role: see network.hpp.
#include "abi/net/network.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/thread_context.hpp"
#include "base/turns.hpp"
#include "net/thread_part.hpp"

namespace hiroba::net {
namespace {

/// How long a node that leaves looks after what it sent.
constexpr std::uint64_t drain_ns = 1'000'000'000;
/// How long a wait takes before a node that has left is named.
constexpr std::uint64_t told_after_s = 5;

offload::Mode mode_of(Offload offload) noexcept {
    switch (offload) {
        case Offload::always: return offload::Mode::always;
        case Offload::never: return offload::Mode::never;
        case Offload::automatic: return offload::Mode::automatic;
        case Offload::as_set: break;
    }
    return Async::mode_of_setting();
}

/// Writes to `why` unless it is null.
template <class Value>
bool tell(const Result<Value>& result, std::string* why) {
    if (result) return true;
    if (why != nullptr) *why = result.error().text;
    return false;
}

}  // namespace

void refuse_in_handler(const Endpoint& endpoint) noexcept {
    // A callback of a request that ends in its own call runs outside of every poll.
    if (!endpoint.in_handler() && !is_in_callback()) return;
    fatal(
        "node %u waits in a handler, a callback or a foreign call: make requests there, with a "
        "callback each, and wait in the program's own threads",
        endpoint.self().value);
}

void end_with_requests(std::uint32_t requests) noexcept {
    fatal(
        "a Pending is destroyed with %u request%s still under way: Network::wait() for it first, "
        "or let it outlive them",
        requests, requests == 1 ? "" : "s");
}

NetworkOver::NetworkOver(std::unique_ptr<Endpoint> endpoint, Surroundings surroundings)
    : endpoint_(std::move(endpoint)), surroundings_(std::move(surroundings)) {
    self_ = endpoint_->self();
    nodes_ = endpoint_->nodes();
}

Result<std::unique_ptr<NetworkOver>> NetworkOver::make(std::unique_ptr<Endpoint> endpoint,
                                                       const Options& options,
                                                       Surroundings surroundings) {
    if (options.queues < 1 || options.queues > offload::Engine::queues_max) {
        return Error{ErrorKind::usage,
                     std::to_string(options.queues) + " command queues; there may be 1 to " +
                         std::to_string(offload::Engine::queues_max) + " (Options::queues)"};
    }
    if (options.executors < 1 || options.executors > options.queues) {
        return Error{ErrorKind::usage, std::to_string(options.executors) + " executors of " +
                                           std::to_string(options.queues) +
                                           " command queues; there may be 1 to as many as queues "
                                           "(Options::executors)"};
    }
    std::unique_ptr<NetworkOver> made(
        new NetworkOver(std::move(endpoint), std::move(surroundings)));
    made->departures_ = std::make_unique<Departures>(*made->endpoint_);
    auto collectives = Collectives::make(*made->endpoint_, made->job_key());
    if (!collectives) return collectives.error();
    made->collectives_ = std::move(*collectives);
    made->async_ = std::make_unique<Async>(*made->endpoint_, mode_of(options.offload),
                                           options.queues, options.executors);
    made->questions_ = std::make_unique<Questions>(*made->async_);
    made->served_ = std::make_unique<ServedMemory>(*made->questions_);
    made->async_->serve_by(*made->served_);
    auto later = LaterMemory::make(*made->async_, *made->served_);
    if (!later) return later.error();
    made->later_ = std::move(*later);
    made->teams_ = std::make_unique<Teams>(*made->async_);
    made->questions_->on(Questions::About::procedure, &NetworkOver::answer_procedure, made.get());
    return made;
}

NetworkOver::~NetworkOver() {
    if (!connected_) return;
    endpoint_->wait_until([this] { return idle(); });
    departures_->leave();
    collectives_->leave();
    if (surroundings_.leave) surroundings_.leave();
    endpoint_->drain(drain_ns);
    endpoint_->stop();
    surroundings_.join();
}

void NetworkOver::await_connect(const char* call) const noexcept {
    if (connected_) [[likely]]
        return;
    fatal("node %u %s before Network::connect(): connect first", self_.value, call);
}

std::optional<Handle> NetworkOver::allocate(std::size_t bytes, std::string* why) {
    if (bytes == 0) {
        if (why != nullptr) *why = "memory of 0 bytes: allocate 1 or more";
        return std::nullopt;
    }
    if (connected_) {
        const Result<Handle> made = later_->allocate(bytes, together());
        return tell(made, why) ? std::optional(*made) : std::nullopt;
    }
    const Result<Handle> made = async_->allocate(bytes);
    if (!tell(made, why)) return std::nullopt;
    allocated_.push_back(*made);
    return *made;
}

bool NetworkOver::connect(std::string* why) { return tell(begin(), why); }

Result<void> NetworkOver::begin() {
    if (connected_) return Error{ErrorKind::usage, "connect() is called a second time"};
    if (auto done = endpoint_->connect(); !done) return with_allocations(done.error());
    async_->attach();
    collectives_->attach();
    later_->attach();
    for (const auto& part : parts_)
        if (auto done = part(); !done) return done;
    surroundings_.start([this] { endpoint_->serve(); });
    connected_ = true;
    if (surroundings_.meet)
        if (auto met = surroundings_.meet(); !met) return met;
    return has_board_ ? set_up_.compare(self_, nodes_, *collectives_) : Result<void>{};
}

// Providers name regions, some of which are those of collectives and kicks.
Error NetworkOver::with_allocations(Error error) const {
    constexpr std::size_t named_max = 8;
    if (error.text.find("region") == std::string::npos) return error;
    error.text += "; allocate() made here:";
    if (allocated_.empty()) error.text += " nothing";
    for (std::size_t i = 0; i < allocated_.size() && i < named_max; ++i) {
        const auto made = async_->allocated(allocated_[i]);
        error.text += (i == 0 ? " region " : ", region ") + std::to_string(made->region.value) +
                      " of " + std::to_string(made->bytes);
    }
    if (allocated_.size() > named_max) error.text += ", ...";
    error.text += ". Make the same calls in the same order on every node";
    return error;
}

std::optional<Handle> NetworkOver::register_local(std::span<std::byte> memory, std::string* why) {
    const Result<Handle> made = async_->register_local(memory);
    return tell(made, why) ? std::optional(*made) : std::nullopt;
}

// Another thread may have seen the request in the count, and sleep until it is 0.
void NetworkOver::take_off(std::atomic<std::uint32_t>& count) noexcept {
    const bool was_last = count.fetch_sub(1, std::memory_order_release) == 1;  // Pending::done()
    if (was_last && connected_) endpoint_->wake_local();
}

bool NetworkOver::wait_for(bool (*ready)(void*), void* argument,
                           std::uint64_t timeout_ns) noexcept {
    if (ready(argument)) return true;
    await_connect("waits");
    refuse_in_handler(*endpoint_);
    if (timeout_ns != forever) return endpoint_->wait(ready, argument, now_ns() + timeout_ns);
    ShortWait first{ready, argument};
    async_->wait_until(first);
    if (!first.is_ready()) wait_on({"in Network::wait_until()", ready, nullptr, argument});
    return true;
}

void NetworkOver::wait_on(const WaitFor& wait) noexcept {
    const std::uint64_t since_ns = now_ns() - second_ns, limit_s = wait_limit_s();
    const bool is_known = wait.awaited != nullptr;
    std::vector<NodeId> awaited;
    const auto gone = [&] {
        return std::find_if(awaited.begin(), awaited.end(),
                            [&](NodeId node) { return departures_->has_left(node); });
    };
    while (true) {
        awaited.clear();
        if (is_known) {
            wait.awaited(wait.argument, awaited);
        } else {
            for (std::uint32_t rank = 0; rank < nodes_; ++rank)
                if (rank != self_.value) awaited.push_back(NodeId{rank});
        }
        for (const NodeId node : awaited) departures_->ask(node);
        bool is_ready = false;
        const auto over = [&] {
            is_ready = is_ready || wait.ready(wait.argument);
            return is_ready || (is_known && gone() != awaited.end());
        };
        endpoint_->wait_until(over, now_ns() + second_ns);
        const auto left = gone();
        // What came before a departure is looked at after it.
        if (is_ready || wait.ready(wait.argument)) return;
        const std::uint64_t waited_s = (now_ns() - since_ns) / second_ns;
        if (is_known && left != awaited.end())
            fatal("node %u waits %s node %u, which left: its network is being destroyed",
                  self_.value, wait.what, left->value);
        if (!is_known && left != awaited.end() && waited_s >= told_after_s)
            tell_of_departure(wait.what);
        if (limit_s == 0 || waited_s < limit_s) continue;
        if (!is_known)
            fatal("node %u has waited %lu s %s; HIROBA_WAIT_TIMEOUT allows %lu", self_.value,
                  waited_s, wait.what, limit_s);
        if (!awaited.empty())
            fatal("node %u has waited %lu s %s node %u; HIROBA_WAIT_TIMEOUT allows %lu",
                  self_.value, waited_s, wait.what, awaited[0].value, limit_s);
    }
}

void NetworkOver::tell_of_departure(const char* what) noexcept {
    if (told_of_departure_.exchange(true, std::memory_order_relaxed)) return;
    for (std::uint32_t rank = 0; rank < nodes_; ++rank) {
        if (!departures_->has_left(NodeId{rank})) continue;
        say("node %u waits %s, and node %u has left: it answers requests and messages, and does no "
            "more by itself. A node that gives up calls std::exit(status), which ends the job",
            self_.value, what, rank);
        return;
    }
}

void NetworkOver::make_room() noexcept {
    await_connect("repeats a request");
    refuse_in_handler(*endpoint_);
    if (!endpoint_->poll()) yield();
}

void NetworkOver::reduce(std::span<std::byte> values, std::size_t value_bytes, Each each,
                         void* with) noexcept {
    together().reduce_bytes(values, value_bytes,
                            [=](std::byte* into, const std::byte* other, std::size_t count) {
                                each(with, into, other, count);
                            });
}

}  // namespace hiroba::net
