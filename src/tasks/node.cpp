// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/node.hpp"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "tasks/stop.hpp"

namespace hiroba::tasks {
namespace {

/// Active messages, from Options::first_id on.
enum Message : std::uint8_t { task_ended = 0, task_sent = 1, control = 2, messages = 3 };
enum class Control : std::uint64_t { root_ended, over };

/// A message's payload, until it has left.
struct Letter {
    Entry entry;
    static void left(void* letter, net::Outcome outcome) noexcept {
        if (outcome == net::Outcome::peer_lost) stop("a node was lost to which a task was sent");
        delete static_cast<Letter*>(letter);
    }
};

void note_outcome(void*, net::Outcome outcome) noexcept {
    if (outcome == net::Outcome::peer_lost)
        stop("a node was lost that had tasks, or waited for them");
}

}  // namespace

Continuation* complete(detail::Join& join) noexcept {
    // Release, pairs with Worker::wait(); acquire: the last task resumes who waits, on behalf of
    // all. The Join may be gone behind this line, unless this was the last.
    if (join.balance.fetch_sub(1, std::memory_order_acq_rel) != 1) return nullptr;
    return static_cast<Continuation*>(join.waiter);
}

Node::Node(net::Network* network, const Options& options)
    : network_(network), options_(options), own_memory_(nullptr, &std::free) {
    if (network == nullptr) return;
    self_ = network->self();
    nodes_ = network->nodes();
    set_rank(self_.value);
}

Node::~Node() {
    const char* const wanted = std::getenv("HIROBA_STATS");
    if (wanted == nullptr || *wanted == 0 || std::strcmp(wanted, "0") == 0) return;
    const Counts all = counts();
    const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    say("%llu ran, %llu taken from other workers, %llu stolen from other nodes in %llu attempts, "
        "%llu received, %llu waits switched",
        number(all.tasks), number(all.taken), number(all.stolen), number(all.attempts),
        number(all.received), number(all.suspended));
}

bool Node::prepare(std::string* why) {
    const auto refuse = [why](const std::string& text) {
        if (why != nullptr) *why = "hiroba::tasks: " + text;
        return false;
    };
    if (options_.workers < 1 || options_.workers > 256)
        return refuse(std::to_string(options_.workers) +
                      " workers; there may be 1 to 256 (Options::workers)");
    if (options_.stack_bytes < std::size_t{16} << 10 || options_.stack_bytes > std::size_t{1} << 30)
        return refuse("stacks of " + std::to_string(options_.stack_bytes) +
                      " bytes; they may have 16 KiB to 1 GiB (Options::stack_bytes)");
    if (!std::has_single_bit(options_.offers) || options_.offers > 1u << 20)
        return refuse(std::to_string(options_.offers) +
                      " offers; a power of two up to 1048576 is wanted (Options::offers)");
    const std::size_t bytes = options_.workers * Offers::bytes_of(options_.offers);
    if (network_ == nullptr) {
        own_memory_.reset(static_cast<std::byte*>(std::aligned_alloc(64, bytes)));
        if (own_memory_ == nullptr) return refuse("no memory for offers");
        std::memset(own_memory_.get(), 0, bytes);
        return true;
    }
    if (options_.first_id.value + std::uint32_t{messages} > net::ActiveId::count)
        return refuse("active messages from " + std::to_string(options_.first_id.value) +
                      " on; the last is 63 (Options::first_id)");
    const auto handle = network_->allocate(bytes, why);
    if (!handle) return false;
    handle_ = *handle;
    const auto id = [this](Message which) {
        return net::ActiveId{static_cast<std::uint8_t>(options_.first_id.value + which)};
    };
    network_->on(id(task_ended), &Node::on_ended, this);
    network_->on(id(task_sent), &Node::on_task, this);
    network_->on(id(control), &Node::on_control, this);
    return true;
}

// --- a run ---------------------------------------------------------------------------------------

void Node::make_workers() {
    types_ = task_types();
    std::byte* memory = own_memory_.get();
    if (network_ != nullptr) {
        memory = network_->local(handle_).data();
        if (memory == nullptr) stop("Scheduler::run() before Network::connect()");
        check_programs();
    }
    for (std::uint32_t node = 0; nodes_ > 1 && node < nodes_; ++node) {
        std::byte* const there = network_->mapped(handle_, NodeId{node});
        if (there == nullptr) {
            mapped_.clear();
            break;
        }
        mapped_.push_back(there);
    }
    for (std::uint32_t i = 0; i < options_.workers; ++i) {
        TopByNetwork by;
        if (nodes_ > 1 && !maps_all()) by = {network_, offers_at(i)};
        workers_.push_back(
            std::make_unique<Worker>(*this, i, memory + i * Offers::bytes_of(options_.offers), by));
    }
}

void Node::check_programs() {
    struct Card {
        std::uint64_t types = 0, hash = 0xcbf29ce484222325;
        bool operator==(const Card&) const = default;
    } mine;
    mine.types = types_.size();
    for (const detail::TaskType* each : types_)
        mine.hash = (mine.hash ^ each->hash) * 0x100000001b3;
    std::vector<Card> all(nodes_);
    network_->all_gather(std::as_bytes(std::span<const Card, 1>(&mine, 1)),
                         std::as_writable_bytes(std::span<Card>(all)));
    for (std::uint32_t node = 0; node < nodes_; ++node) {
        if (all[node] == mine) continue;
        say("node %u has %llu kinds of tasks that may move, this one %llu or others: all nodes run "
            "the same program",
            node, static_cast<unsigned long long>(all[node].types),
            static_cast<unsigned long long>(mine.types));
        std::_Exit(78);
    }
}

void Node::run_root(void (*enter)(void*), void* argument) {
    if (Worker::here() != nullptr) stop("Scheduler::run() is called by a task");
    if (workers_.empty()) make_workers();
    over_.store(false, std::memory_order_relaxed);  // before the threads start
    if (enter != nullptr) {
        Stack* const stack = workers_[0]->stacks().take();
        stack->enter = enter;
        stack->closure = argument;
        root_.store(stack);
    } else {
        root_ended();
    }
    std::vector<std::thread> threads;
    for (std::uint32_t i = 1; i < workers(); ++i)
        threads.emplace_back([this, i] { workers_[i]->work(); });
    workers_[0]->work();
    for (std::thread& each : threads) each.join();
    // No node begins the next run while another is in this one.
    if (network_ != nullptr) network_->barrier();
}

void Node::share(std::span<std::byte> result) noexcept {
    if (network_ != nullptr) network_->broadcast(NodeId{0}, result);
}

void Node::root_ended() noexcept {
    if (self_.value == 0) return count_root();
    const std::uint64_t word = static_cast<std::uint64_t>(Control::root_ended);
    message(NodeId{0}, control, {&word, 1}, net::Urgency::wake_service);
}

void Node::end_run() noexcept {
    over_.store(true, std::memory_order_release);  // pairs with is_over()
    wake();
}

// --- messages ------------------------------------------------------------------------------------

void Node::message(NodeId to, std::uint8_t id, std::span<const std::uint64_t> arguments,
                   net::Urgency urgency) noexcept {
    const net::MessageParams params{.target = to,
                                    .id = {static_cast<std::uint8_t>(options_.first_id.value + id)},
                                    .arguments = arguments,
                                    .urgency = urgency,
                                    .on_complete = {&note_outcome, nullptr, nullptr}};
    if (network_->insist([&] { return network_->try_message_async(params); }) !=
        net::Submission::accepted)
        stop("a message is refused: %s", network_->why_refused(params).c_str());
}

void Node::send_task(NodeId to, const Entry& entry, const void* closure) {
    if (to.value >= nodes_) stop("a task is sent to node %u of %u", to.value, nodes_);
    if (to == self_) {
        Entry whole = entry;
        std::memcpy(whole.closure, closure, entry.bytes);
        inbox_.push(whole);
        return wake();
    }
    auto* const letter = new Letter{entry};
    std::memcpy(letter->entry.closure, closure, entry.bytes);
    const net::MessageParams params{
        .target = to,
        .id = {static_cast<std::uint8_t>(options_.first_id.value + task_sent)},
        .payload = network_->anywhere(&letter->entry),
        .payload_bytes = sizeof letter->entry,
        .on_complete = {&Letter::left, letter, nullptr}};
    if (network_->insist([&] { return network_->try_message_async(params); }) !=
        net::Submission::accepted)
        stop("a task is refused: %s", network_->why_refused(params).c_str());
}

void Node::on_task(void* node, NodeId, std::span<const std::uint64_t>,
                   std::span<const std::byte> payload) noexcept {
    Entry entry;
    if (payload.size() != sizeof entry) stop("a message of %zu bytes as a task", payload.size());
    std::memcpy(&entry, payload.data(), sizeof entry);
    static_cast<Node*>(node)->inbox_.push(entry);
}

void Node::on_ended(void* node, NodeId, std::span<const std::uint64_t> arguments,
                    std::span<const std::byte>) noexcept {
    auto& join = *reinterpret_cast<detail::Join*>(arguments[0]);
    if (join.result != nullptr)
        std::memcpy(join.result, arguments.data() + 1, (arguments.size() - 1) * 8);
    if (Continuation* const waiter = complete(join)) static_cast<Node*>(node)->ready_.push(waiter);
}

void Node::on_control(void* node, NodeId, std::span<const std::uint64_t> arguments,
                      std::span<const std::byte>) noexcept {
    auto& self = *static_cast<Node*>(node);
    if (Control{arguments[0]} == Control::over) return self.end_run();
    self.count_root();
}

void Node::count_root() noexcept {
    if (roots_ended_.fetch_add(1) + 1 < nodes_) return;
    roots_ended_.store(0);
    tell_over_.store(true, std::memory_order_release);  // pairs with tell_over()
    wake();
}

void Node::tell_over() noexcept {
    // Acquire, pairs with on_control(). A handler may not wait for room in queues; a worker may.
    if (!tell_over_.load(std::memory_order_relaxed) || !tell_over_.exchange(false)) return;
    const std::uint64_t word = static_cast<std::uint64_t>(Control::over);
    for (std::uint32_t other = 1; other < nodes_; ++other)
        message(NodeId{other}, control, {&word, 1}, net::Urgency::wake_service);
    end_run();
}

// --- tasks of all nodes --------------------------------------------------------------------------

const detail::TaskType& Node::type_of(const Entry& entry) const {
    if (entry.number >= types_.size() || types_[entry.number]->hash != entry.hash)
        stop(
            "a task of kind %u from node %u, which the program of this node does not have: code "
            "with tasks that may move is there before Scheduler::run()",
            entry.number, entry.home.value);
    return *types_[entry.number];
}

Continuation* Node::run(const Entry& entry) {
    const detail::TaskType& type = type_of(entry);
    auto* const join = reinterpret_cast<detail::Join*>(entry.join);
    if (entry.home == self_) {
        type.enter(entry.closure, join->result);
        return complete(*join);
    }
    alignas(16) std::byte result[result_bytes_max + 8];
    type.enter(entry.closure, result);
    std::uint64_t words[net::MessageParams::arguments_max] = {entry.join};
    const std::size_t count = (type.result_bytes + 7) / 8;
    std::memcpy(words + 1, result, type.result_bytes);
    message(entry.home, task_ended, {words, count + 1}, net::Urgency::when_polled);
    return nullptr;
}

Offers Node::mapped_offers(NodeId node, std::uint32_t worker) const noexcept {
    return {mapped_[node.value] + worker * Offers::bytes_of(options_.offers), options_.offers};
}

Counts Node::counts() const noexcept {
    Counts all;
    for (const auto& each : workers_) {
        const WorkerCounts& of = each->counts();
        all.tasks += of.tasks.load(std::memory_order_relaxed);
        all.taken += of.taken.load(std::memory_order_relaxed);
        all.stolen += of.stolen.load(std::memory_order_relaxed);
        all.attempts += of.attempts.load(std::memory_order_relaxed);
        all.received += of.received.load(std::memory_order_relaxed);
        all.suspended += of.suspended.load(std::memory_order_relaxed);
    }
    return all;
}

}  // namespace hiroba::tasks
