// SPDX-License-Identifier: BSD-3-Clause
// Role: see scheduler.hpp.
#include "net/provider/sim/scheduler.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/fatal.hpp"

namespace hiroba::net::sim {

namespace {
// A nap's number goes along with the turn that ends it.
constexpr unsigned nap_shift = 24;
constexpr std::uint32_t fibers_max = 1u << nap_shift;
constexpr std::size_t clean_stack_bytes = std::size_t{16} << 10;
constexpr std::uint64_t turn_event = std::uint64_t{1} << 63;  // in an event's `what`
}  // namespace

Scheduler::Scheduler(FiberStacks& stacks, const SchedulerOptions& options)
    : stacks_(stacks), options_(options), random_(options.seed) {}

Scheduler::~Scheduler() {
    for (const auto& fiber : fibers_) {
        if (fiber->stack_top != nullptr) stacks_.give(fiber->stack_top);
    }
}

Scheduler* Scheduler::current() noexcept { return static_cast<Scheduler*>(turns_of_this_thread()); }

// --- threads -------------------------------------------------------------------------------------

Fiber& Scheduler::spawn(NodeId node, std::function<void()> body) {
    HIROBA_INVARIANT(fibers_.size() < fibers_max, "%lu simulated threads", fibers_.size());
    Fiber& fiber = *fibers_.emplace_back(std::make_unique<Fiber>());
    fiber.index = static_cast<std::uint32_t>(fibers_.size() - 1);
    fiber.node = node;
    fiber.body = std::move(body);
    fiber.stack_top = stacks_.take();
    // Bytes that earlier runs left there would make equal states of two runs look different.
    if (options_.chooser != nullptr) {
        std::memset(fiber.stack_top - clean_stack_bytes, 0, clean_stack_bytes);
    }
    fiber.context.turns = this;
    fiber.context.global_thread = fiber.index;
    prepare_fiber(fiber, &Scheduler::enter, this);
    ++live_;
    turn_at(time_ns_ + random_.below(options_.turn_max_ns + 1), fiber);
    return fiber;
}

void Scheduler::enter(void* self) noexcept {
    auto& scheduler = *static_cast<Scheduler*>(self);
    Fiber& fiber = *scheduler.running_;
    fiber.body();
    fiber.ended = true;
    --scheduler.live_;
    for (Fiber* joiner : fiber.joiners) scheduler.wake(*joiner);
    scheduler.switch_away();
}

void Scheduler::switch_away() noexcept {
    switch_fiber(running_->stack_pointer, main_stack_pointer_);
}

void Scheduler::resume(Fiber& fiber) noexcept {
    running_ = &fiber;
    ThreadContext* const former = exchange_thread_context(&fiber.context);
    if (options_.memory != nullptr) options_.memory->enter(fiber.node, fiber.index);
    switch_fiber(main_stack_pointer_, fiber.stack_pointer);
    if (options_.memory != nullptr) options_.memory->leave(fiber.node, fiber.index);
    exchange_thread_context(former);
    running_ = nullptr;
    if (fiber.ended) stacks_.give(std::exchange(fiber.stack_top, nullptr));
}

void Scheduler::turn_at(std::uint64_t time_ns, Fiber& fiber) noexcept {
    at(time_ns, turn_event | fiber.index, &Scheduler::turn, this,
       fiber.naps << nap_shift | fiber.index);
}

void Scheduler::turn(void* self, std::uint64_t argument) noexcept {
    auto& scheduler = *static_cast<Scheduler*>(self);
    Fiber& fiber = *scheduler.fibers_[argument % fibers_max];
    ++fiber.naps;
    fiber.parked = false;
    scheduler.resume(fiber);
}

void Scheduler::pass() noexcept {
    if (choosing_ && running_->chosen) {
        make_ready(*running_);
        return switch_away();
    }
    work(options_.turn_min_ns + random_.below(options_.turn_max_ns - options_.turn_min_ns + 1));
}

void Scheduler::work(std::uint64_t ns) noexcept {
    turn_at(time_ns_ + ns, *running_);
    switch_away();
}

std::uint64_t Scheduler::now_ns() noexcept {
    return choosing_ ? chosen_time_ns_ : time_ns_ += options_.clock_ns;
}

void Scheduler::park(std::uint64_t deadline_ns) noexcept {
    if (deadline_ns != ~std::uint64_t{0}) turn_at(deadline_ns, *running_);
    running_->parked = true;
    switch_away();
}

void Scheduler::join(Fiber& fiber) noexcept {
    while (!fiber.ended) {
        fiber.joiners.push_back(running_);
        park(~std::uint64_t{0});
    }
}

void Scheduler::wake(Fiber& fiber) noexcept {
    if (!fiber.parked) return;
    fiber.parked = false;
    if (choosing_ && fiber.chosen) return make_ready(fiber);
    turn_at(time_ns_ + random_.below(options_.turn_max_ns + 1), fiber);
}

void Scheduler::crash(NodeId node) noexcept {
    for (const auto& fiber : fibers_) {
        if (fiber->node != node || fiber->ended) continue;
        fiber->ended = true;
        --live_;
        for (Fiber* joiner : fiber->joiners) wake(*joiner);
    }
    if (running_ != nullptr && running_->ended) switch_away();
}

// --- choice --------------------------------------------------------------------------------------

void Scheduler::make_ready(Fiber& fiber) noexcept {
    ready_.insert(
        std::upper_bound(ready_.begin(), ready_.end(), &fiber,
                         [](const Fiber* a, const Fiber* b) { return a->index < b->index; }),
        &fiber);
}

void Scheduler::step() noexcept {
    if (!choosing_ || !running_->chosen) return;
    make_ready(*running_);
    switch_away();
}

void Scheduler::begin_choice(std::uint32_t threads) noexcept {
    running_->chosen = true;
    make_ready(*running_);
    choice_begins_with_ = threads;
    switch_away();
}

/// One step of the thread chosen. False when the chooser stops the run.
bool Scheduler::let_choose() noexcept {
    Fiber* const next = options_.chooser->choose(ready_);
    if (next == nullptr) return false;
    ready_.erase(std::find(ready_.begin(), ready_.end(), next));
    ++events_;
    chosen_time_ns_ += options_.chosen_ns;
    resume(*next);
    choosing_ = !ready_.empty();
    return true;
}

// --- events --------------------------------------------------------------------------------------

void Scheduler::at(std::uint64_t time_ns, std::uint64_t what, Fire fire, void* context,
                   std::uint64_t argument) noexcept {
    if (queue_.size() >= queue_max_) drop_stale();
    queue_.push_back({time_ns, ++order_, what, fire, context, argument});
    std::push_heap(queue_.begin(), queue_.end());
}

/// Turns at the end of waits that ended before are most of what is queued: nothing else takes them
/// out until their time comes.
void Scheduler::drop_stale() noexcept {
    constexpr std::size_t queue_usual = 64;
    std::erase_if(queue_, [this](const Event& event) { return is_stale(event); });
    std::make_heap(queue_.begin(), queue_.end());
    queue_max_ = std::max(queue_usual, 2 * queue_.size());
}

/// A turn of a thread that has been woken otherwise since, or has ended.
bool Scheduler::is_stale(const Event& event) const noexcept {
    if (event.fire != &Scheduler::turn) return false;
    const Fiber& fiber = *fibers_[event.argument % fibers_max];
    return fiber.ended || event.argument >> nap_shift != fiber.naps;
}

void Scheduler::happen(const Event& event) {
    time_ns_ = std::max(time_ns_, event.time_ns);
    ++events_;
    trace_hash_ = (trace_hash_ ^ event.what ^ time_ns_ << 20) * 0x9E37'79B9'7F4A'7C15u + 1;
    event.fire(event.context, event.argument);
}

Scheduler::Outcome Scheduler::run() {
    while (live_ > 0) {
        if (stopping_) return Outcome::stopped;
        choosing_ |= !ready_.empty() && ready_.size() == choice_begins_with_;
        if (choosing_) {
            if (!let_choose()) return Outcome::stopped;
            continue;
        }
        if (queue_.empty()) return Outcome::stuck;
        std::pop_heap(queue_.begin(), queue_.end());
        const Event event = queue_.back();
        queue_.pop_back();
        if (is_stale(event)) continue;
        if (event.time_ns > options_.limit_ns) return Outcome::out_of_time;
        const std::uint64_t delay_ns =
            options_.delays != nullptr ? options_.delays->delay_ns(event.what) : 0;
        if (delay_ns != 0) {
            at(std::max(time_ns_, event.time_ns) + delay_ns, event.what, event.fire, event.context,
               event.argument);
            continue;
        }
        happen(event);
    }
    return Outcome::ended;
}

}  // namespace hiroba::net::sim
