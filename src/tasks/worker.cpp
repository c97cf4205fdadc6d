// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/worker.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "tasks/node.hpp"
#include "tasks/stop.hpp"

namespace hiroba::tasks {
namespace {

constinit thread_local Worker* worker_here = nullptr;
/// Bytes of the loop's stack: handlers of the network run on it.
constexpr std::size_t loop_stack_bytes = std::size_t{1} << 20;

}  // namespace

Worker* Worker::here() noexcept {
    // Not inlined, and not known to be without effects: a caller that has switched asks anew.
    asm volatile("" ::: "memory");
    return worker_here;
}

Worker::Worker(Node& node, std::uint32_t index, std::byte* offers, const TopByNetwork& by)
    : node_(node),
      index_(index),
      stacks_(node.options().stack_bytes),
      own_(map_stack(loop_stack_bytes)),
      offers_(offers, node.options().offers, by),
      random_(0x9e3779b97f4a7c15 * (node.self().value * 256ull + index + 1)) {
    if (node.nodes() > 1 && !node.maps_all())
        remote_ = std::make_unique<RemoteSteal>(*node.network());
}

Worker::~Worker() { unmap_stack(own_); }

std::uint32_t Worker::random(std::uint32_t below) noexcept {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return static_cast<std::uint32_t>((random_ >> 32) * below >> 32);
}

// --- tasks begin and end -------------------------------------------------------------------------

void Worker::run_child(Stack* stack, void (*enter)(void*), detail::Join& join) {
    Worker* const worker = here();
    const StackPlace* const place = worker->place_;
    Continuation mine;
    mine.join = &join;
    ++join.outstanding;
    stack->enter = enter;
    stack->closure = stack->room();
    stack->join = &join;
    stack->parent = &mine;
    start(mine.context, *place, stack->place, stack->top(), &Worker::enter_child, stack);
    here()->place_ = place;
}

void* Worker::enter_child(void* of) noexcept {
    arrive();
    auto* const stack = static_cast<Stack*>(of);
    Worker* const worker = here();
    worker->place_ = &stack->place;
    // Not before now: the parent's context is kept only since this stack is run on.
    stack->is_parent_published = worker->continuations_.push(stack->parent);
    stack->enter(stack->closure);
    return end_child(stack);
}

void* Worker::end_child(Stack* stack) {
    Worker& worker = *here();
    WorkerCounts::add(worker.counts_.tasks);
    detail::Join* const join = stack->join;
    Continuation* const parent =
        stack->is_parent_published ? worker.continuations_.pop() : stack->parent;
    // A worker that has a task's continuation alone has the task's variables, the Join too.
    if (parent != nullptr && parent->join == join) [[likely]] {
        --join->outstanding;
        worker.stacks_.give(stack);
        return hand_back(parent->context);
    }
    Continuation* const waiter = complete(*join);
    worker.stacks_.give(stack);
    worker.go_on(parent, waiter);
}

void* Worker::enter_entry(void* of) noexcept {
    arrive();
    auto* const stack = static_cast<Stack*>(of);
    here()->place_ = &stack->place;
    Continuation* const waiter = here()->node_.run(*reinterpret_cast<Entry*>(stack->room()));
    Worker& worker = *here();
    WorkerCounts::add(worker.counts_.tasks);
    worker.stacks_.give(stack);
    worker.go_on(worker.continuations_.pop(), waiter);
}

void* Worker::enter_root(void* of) noexcept {
    arrive();
    auto* const stack = static_cast<Stack*>(of);
    here()->place_ = &stack->place;
    stack->enter(stack->closure);
    Worker& worker = *here();
    WorkerCounts::add(worker.counts_.tasks);
    worker.stacks_.give(stack);
    worker.node_.root_ended();
    worker.go_on(worker.continuations_.pop(), nullptr);
}

void Worker::go_on(Continuation* own, Continuation* waiter) {
    if (own != nullptr) {
        if (waiter != nullptr) node_.ready().push(waiter);
        resume(own);
    }
    if (waiter != nullptr) resume(waiter);
    own_->place.renew_fiber();
    leave_for(own_->place, own_->top(), &Worker::again, this);
}

void Worker::resume(Continuation* of) {
    idle_rounds_ = 0;
    jump(of->context);
}

void Worker::run_or_offer(const Entry& head, const void* closure, detail::Join& join) {
    ++join.outstanding;
    if (offers_.push(head, closure)) [[likely]]
        return;
    Entry entry = head;
    std::memcpy(entry.closure, closure, entry.bytes);
    node_.type_of(entry).enter(entry.closure, join.result);
    --join.outstanding;
    WorkerCounts::add(here()->counts_.tasks);
}

// --- tasks wait ----------------------------------------------------------------------------------

void Worker::wait(detail::Join& join) {
    // Acquire, pairs with complete().
    while (join.balance.load(std::memory_order_acquire) != -join.outstanding) {
        Worker* worker = here();
        Entry entry;
        if (worker->offers_.newest() == reinterpret_cast<std::uintptr_t>(&join) &&
            worker->offers_.pop(entry)) {
            worker->node_.type_of(entry).enter(entry.closure, join.result);
            WorkerCounts::add(here()->counts_.tasks);
            --join.outstanding;
            continue;
        }
        Continuation mine;
        join.waiter = &mine;
        const StackPlace* const place = worker->place_;
        WorkerCounts::add(worker->counts_.suspended);
        worker->own_->place.renew_fiber();
        start(mine.context, *place, worker->own_->place, worker->own_->top(),
              &Worker::register_wait, &join);
        here()->place_ = place;
        break;
    }
    join.outstanding = 0;
    join.balance.store(0, std::memory_order_relaxed);  // no other task knows of it
}

void* Worker::register_wait(void* of) {
    arrive();
    auto& join = *static_cast<detail::Join*>(of);
    auto* const waiter = static_cast<Continuation*>(join.waiter);
    const std::int64_t outstanding = join.outstanding;
    // From here on another thread may resume the task, whose variable the Join is.
    if (join.balance.fetch_add(outstanding, std::memory_order_acq_rel) + outstanding == 0)
        here()->resume(waiter);
    here()->loop();
}

void Worker::yield() {
    Worker* const worker = here();
    const StackPlace* const place = worker->place_;
    Continuation mine;
    mine.has_yielded = true;
    worker->own_->place.renew_fiber();
    start(mine.context, *place, worker->own_->place, worker->own_->top(), &Worker::register_yield,
          &mine);
    here()->place_ = place;
}

void* Worker::register_yield(void* continuation) {
    arrive();
    Worker& worker = *here();
    worker.node_.ready().push(static_cast<Continuation*>(continuation));
    worker.loop();
}

bool Worker::has_other_work() const noexcept {
    return !continuations_.is_empty() || !offers_.is_empty() || !node_.inbox().is_empty() ||
           node_.ready().has_news();
}

// --- the loop ------------------------------------------------------------------------------------

void Worker::work() {
    worker_here = this;
    if (__tsan_get_current_fiber != nullptr) thread_place_.fiber = __tsan_get_current_fiber();
    own_->place.renew_fiber();
    start(thread_, thread_place_, own_->place, own_->top(), &Worker::first_loop, this);
    worker_here = nullptr;
}

void* Worker::first_loop(void* worker) {
    auto& self = *static_cast<Worker*>(worker);
    arrive(&self.thread_place_);
    self.loop();
}

void* Worker::again(void* worker) {
    arrive();
    static_cast<Worker*>(worker)->loop();
}

void Worker::loop() {
    stacks_.trim();
    while (true) {
        ++rounds_;
        if (rounds_ % 32 == 0 && node_.network() != nullptr) node_.network()->pause();
        if (remote_ != nullptr && !remote_->is_idle() && remote_->has_answer()) {
            if (const auto entry = remote_->step()) {
                WorkerCounts::add(counts_.stolen);
                begin(*entry);
            }
        }
        // By turns, so that tasks that yield keep no others from running, nor the other way round.
        if (rounds_ % 2 == 0) run_ready();
        run_own();
        if (rounds_ % 2 != 0) run_ready();
        take_from_others();
        node_.tell_over();
        if (node_.is_over() && (remote_ == nullptr || remote_->is_idle())) jump(thread_);
        steal();
        rest();
    }
}

void Worker::begin(const Entry& entry) {
    idle_rounds_ = 0;
    Stack* const stack = stacks_.take();
    std::memcpy(stack->room(), &entry, sizeof entry);
    leave_for(stack->place, stack->top(), &Worker::enter_entry, stack);
}

void Worker::run_ready() {
    if (Continuation* const found = node_.ready().pop()) resume(found);
}

void Worker::run_own() {
    if (Continuation* const found = continuations_.pop()) resume(found);
    Entry entry;
    if (offers_.pop(entry)) begin(entry);
    if (Stack* const root = node_.take_root()) {
        idle_rounds_ = 0;
        leave_for(root->place, root->top(), &Worker::enter_root, root);
    }
    if (node_.inbox().pop(entry)) {
        WorkerCounts::add(counts_.received);
        begin(entry);
    }
}

void Worker::take_from_others() {
    const std::uint32_t all = node_.workers();
    const std::uint32_t first = random(all);
    for (std::uint32_t i = 0; i < all; ++i) {
        Worker& other = node_.worker((first + i) % all);
        if (&other == this) continue;
        if (Continuation* const found = other.continuations_.take()) {
            WorkerCounts::add(counts_.taken);
            resume(found);
        }
        Entry entry;
        if (other.offers_.take(entry)) {
            WorkerCounts::add(counts_.taken);
            begin(entry);
        }
    }
}

void Worker::steal() {
    if (node_.nodes() == 1) return;
    // A steal over a wire takes the victim's time: fewer of them when they come to nothing.
    if (remote_ != nullptr && (!remote_->is_idle() || node_.is_over() || idle_rounds_ % 4 != 0))
        return;
    WorkerCounts::add(counts_.attempts);
    const std::uint32_t other = random(node_.nodes() - 1);
    const NodeId victim{other + (other >= node_.self().value ? 1 : 0)};
    const std::uint32_t worker = random(node_.workers());
    if (remote_ != nullptr)
        return remote_->begin(victim, node_.offers_at(worker), node_.options().offers);
    Entry entry;
    if (!node_.mapped_offers(victim, worker).take(entry)) return;
    WorkerCounts::add(counts_.stolen);
    begin(entry);
}

void Worker::rest() {
    constexpr std::uint32_t rounds_awake = 64;
    net::Network* const network = node_.network();
    ++idle_rounds_;
    if (idle_rounds_ < rounds_awake) {
        if (network != nullptr) return network->pause();
        return std::this_thread::yield();
    }
    const std::uint32_t longer = std::min((idle_rounds_ - rounds_awake) / 8, 4u);
    const std::uint64_t rest_ns = std::uint64_t{12'000} << longer;
    if (network == nullptr) return std::this_thread::sleep_for(std::chrono::nanoseconds(rest_ns));
    network->wait_until(
        [this] {
            return node_.is_over() || node_.is_to_tell_over() || !node_.ready().is_empty() ||
                   !node_.inbox().is_empty() ||
                   (remote_ != nullptr && !remote_->is_idle() && remote_->has_answer());
        },
        rest_ns);
}

}  // namespace hiroba::tasks
