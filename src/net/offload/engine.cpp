// SPDX-License-Identifier: BSD-3-Clause
// Role: see engine.hpp. First the requester's side, then the executor, then the completer.
#include "net/offload/engine.hpp"

#include <pthread.h>

#include <cstring>

#include "base/fatal.hpp"
#include "net/offload/narrow_atomic.hpp"
#include "net/wire/active_message.hpp"

namespace hiroba::net::offload {
namespace {

static_assert(wire::active_arguments_max == arguments_max);

OpId id_of(std::uint32_t index) { return OpId{std::uint64_t{index} << 1 | 1}; }

}  // namespace

/// The words and bytes of a message, while the provider looks at them.
struct Engine::Parts {
    wire::ActiveWords words;
    std::array<Bytes, 2> bytes;
};

Engine::Engine(Endpoint& endpoint, Mode mode, std::uint32_t queues, std::uint32_t executors)
    : endpoint_(endpoint),
      mode_(mode),
      executors_count_(std::min({executors, queues, endpoint.provider().limits().queue_pairs})),
      counts_(!endpoint.provider().limits().completes_inline &&
              endpoint.provider().requests_under_way() == nullptr),
      gathers_(endpoint.provider().limits().gathers && endpoint.provider().limits().parallel),
      under_way_(endpoint.provider().requests_under_way()) {
    if (under_way_ == nullptr) under_way_ = &in_flight_;
    HIROBA_INVARIANT(queues >= 1 && queues <= queues_max, "%u command queues; 1 to %u", queues,
                     queues_max);
    for (std::uint32_t i = 0; i < queues; ++i) queues_.push_back(std::make_unique<Queue>());
    if (queues == 1) sole_queue_ = queues_[0].get();
    endpoint.attach(*this);
}

// --- requester -----------------------------------------------------------------------------------

bool Engine::submit_by_mode(const Command& command, bool may_join) noexcept {
    if (may_join && mode_ == Mode::automatic) {
        const std::uint32_t under_way = under_way_->load();
        // Bytes that fill datagrams by themselves gain nothing, and would be copied before they can
        // leave.
        const bool is_small =
            command.kind != Work::Kind::put || command.bytes <= gathered_bytes_max;
        const bool gathers = gathers_ && is_small;
        // More would only pass through the queue on their way to the same slots.
        if (gathers && under_way >= gathered_max) return false;
        if (under_way != 0) return (gathers && gather(command)) || join(command);
    }
    Post outcome = Post::again;
    const auto call = [&] { return issue(command); };
    if (mode_ == Mode::never) {
        outcome = endpoint_.post(call);
    } else if (!endpoint_.try_post(call, outcome)) {
        return enqueue([&](Command& place) { place.assign(command); });
    }
    return outcome != Post::again;
}

std::uint32_t Engine::queue_of_thread() const noexcept {
    const auto self = static_cast<std::uint64_t>(pthread_self());
    return static_cast<std::uint32_t>((self * 0x9E37'79B9'7F4A'7C15u >> 32) % queues_.size());
}

void Engine::wake_service() noexcept {
    endpoint_.provider().wake(endpoint_.self(), Provider::Sleeper::service);
}

// As for join() nobody is woken; the provider sends it with the poll that brings an answer.
bool Engine::gather(const Command& command) noexcept {
    const bool is_bare = under_way_ != &in_flight_ && command.kind != Work::Kind::atomic;
    if ((is_bare ? issue_bare(command) : issue(command, true)) == Post::again) return false;
    // Relaxed, both: a hint for the service thread. Read first: the line stays shared.
    if (!gathered_.load(std::memory_order_relaxed))
        gathered_.store(true, std::memory_order_relaxed);
    return true;
}

// Wakes no thread: the poll that ends the last of what is under way takes it along. It lowers
// *under_way_ and then looks at joined_; here it is the other way round, so one of both sees the
// other (all four accesses are sequentially consistent).
bool Engine::join(const Command& command) noexcept {
    const auto write = [&](Command& place) { place.assign(command); };
    const std::uint32_t index = queue_of_thread();
    if (executor_of(index) != 0) return enqueue(write);
    const auto put = queues_[index]->put_quietly(write);
    if (put == Queue::Put::full) return false;
    joined_.store(true);
    if (under_way_->load() == 0) wake_service();
    return true;
}

bool Engine::submit_call(const CallParams& call) noexcept {
    const auto put = calls_.put([&](CallParams& place) { place = call; });
    if (put == decltype(calls_)::Put::full) return false;
    // Not by the queue's own flag: the thread may sleep for other reasons than an empty queue.
    wake_service();
    return true;
}

/// Hands a put or get to the provider, which keeps its callback: without a slot, whose claim would
/// wait for all stores before it, and which is out of the cache when its turn comes.
Post Engine::issue_bare(const Command& command) noexcept {
    if (!may_run_callback(this_thread())) return Post::again;
    Work work;
    work.kind = command.kind;
    work.id.value = OpId::bare;
    work.peer = command.peer;
    work.region = command.region;
    work.offset = command.offset;
    work.memory = command.local;
    work.bytes = command.bytes;
    work.then = command.on_complete;
    if (endpoint_.provider().post_with_next({&work, 1}, false) == 0) return Post::again;
    if (work.outcome == Post::done) {
        run_callback(this_thread(), work.then, Outcome::done);
        if (work.then.function != nullptr) endpoint_.wake_local();  // the caller may be no poll
    }
    return work.outcome;
}

/// Hands one request to the provider on this thread.
Post Engine::issue(const Command& command, bool with_next) noexcept {
    if (!may_run_callback(this_thread())) return Post::again;
    if (command.kind == Work::Kind::send && !endpoint_.may_send(command.peer)) return Post::again;
    const std::uint32_t index = slots_.claim();
    if (index == SlotTable::none) return Post::again;
    Work work;
    Parts parts;
    describe(index, command, work, parts);
    if (counts_) in_flight_.fetch_add(1);
    Provider& provider = endpoint_.provider();
    if ((with_next ? provider.post_with_next({&work, 1}, false) : provider.post({&work, 1})) == 0) {
        if (counts_) in_flight_.fetch_sub(1);
        slots_.release(index);
        return Post::again;
    }
    if (work.outcome == Post::done) {
        take_result(index);
        if (command.on_complete.function != nullptr) endpoint_.wake_local();  // issue_bare()
    }
    return work.outcome;
}

void Engine::describe(std::uint32_t index, const Command& command, Work& work,
                      Parts& parts) noexcept {
    Slot& slot = slots_[index];
    slot.command.assign(command);
    work.kind = command.kind;
    work.id = id_of(index);
    work.peer = command.peer;
    work.region = command.region;
    work.offset = command.offset;
    work.memory = command.local;
    work.bytes = command.bytes;
    if (command.kind == Work::Kind::send) {
        work.message = MessageKind::active;
        work.urgency = command.urgency;
        parts.bytes = {wire::encode_active({command.message, command.arguments_count},
                                           command.arguments, parts.words),
                       Bytes{command.local, command.bytes}};
        work.parts = parts.bytes;
    }
    if (command.kind != Work::Kind::atomic) return;
    work.op = command.op;
    work.operand = command.operand();
    work.expected = command.expected();
    work.old = &slot.old;
    if (command.width == 8) return;
    const unsigned shift = half_shift(command.offset);
    slot.guess = first_guess(command.op, static_cast<std::uint32_t>(command.expected()), shift);
    const WideAtomic wide =
        widen(command.op, static_cast<std::uint32_t>(command.operand()), slot.guess, shift);
    work.op = wide.op;
    work.operand = wide.operand;
    work.expected = wide.expected;
    work.offset = round_down(command.offset, 8);
}

// --- executor ------------------------------------------------------------------------------------

std::size_t Engine::progress() noexcept {
    std::size_t done = repeat_guesses();
    bool stuck = false;
    done += execute_queues(0, stuck);
    // Relaxed: only says how long to sleep.
    if (blocked_.load(std::memory_order_relaxed) != stuck)
        blocked_.store(stuck, std::memory_order_relaxed);
    return done;
}

// Busy producers would starve poll() otherwise.
std::size_t Engine::execute_queues(std::uint32_t executor, bool& stuck) noexcept {
    std::size_t done = 0;
    for (std::size_t i = executor; i < queues_.size(); i += executors_count_) {
        for (std::size_t batch = 0; batch < queue_capacity / batch_max; ++batch) {
            const std::size_t executed = execute_batch(*queues_[i], executor == 0, stuck);
            done += executed;
            if (executed < batch_max) break;
        }
    }
    return done;
}

std::size_t Engine::execute_batch(Queue& queue, bool with_next, bool& stuck) noexcept {
    std::array<Command*, batch_max> commands;
    const std::size_t count = queue.peek(commands);
    if (count == 0) return 0;
    std::array<Work, batch_max> works;
    std::array<Parts, batch_max> parts;
    std::array<std::uint32_t, batch_max> indexes;
    std::size_t described = 0;
    for (; described < count; ++described) {
        const Command& command = *commands[described];
        if (command.kind == Work::Kind::send && !endpoint_.may_send(command.peer)) break;
        indexes[described] = slots_.claim();
        if (indexes[described] == SlotTable::none) break;
        describe(indexes[described], command, works[described], parts[described]);
    }
    if (counts_) in_flight_.fetch_add(static_cast<std::uint32_t>(described));
    // Requests that are not wanted at once leave with the poll that follows.
    Provider& provider = endpoint_.provider();
    const auto list = std::span(works).first(described);
    const std::size_t taken =
        gathers_ && with_next ? provider.post_with_next(list, true) : provider.post(list);
    if (counts_) in_flight_.fetch_sub(static_cast<std::uint32_t>(described - taken));
    if (taken < described && commands[taken]->kind == Work::Kind::send) {
        // The target's threads may be busy with the program for long; its service thread is not.
        endpoint_.provider().wake(commands[taken]->peer, Provider::Sleeper::service);
    }
    for (std::size_t i = taken; i < described; ++i) slots_.release(indexes[i]);
    stuck = stuck || taken < count;
    queue.take(taken);
    for (std::size_t i = 0; i < taken; ++i) {
        if (works[i].outcome == Post::done) take_result(indexes[i]);
    }
    return taken;
}

std::size_t Engine::repeat_guesses() noexcept {
    // Acquire, pairs with guess_again().
    if (guesses_waiting_.load(std::memory_order_acquire) == 0) return 0;
    std::size_t repeated = 0;
    for (std::uint32_t index = 0; index < SlotTable::slots_max; ++index) {
        if (!guess_waits_[index].load(std::memory_order_acquire)) continue;  // guess_again()
        guess_waits_[index].store(false, std::memory_order_relaxed);
        guesses_waiting_.fetch_sub(1, std::memory_order_relaxed);
        guess_again(index);
        ++repeated;
    }
    return repeated;
}

// Takes one queue's length at most: busy producers would starve poll() otherwise.
void Engine::run_calls() noexcept {
    for (std::size_t i = 0; i < calls_capacity; ++i) {
        std::array<CallParams*, 1> first;
        if (calls_.peek(first) == 0) return;
        const CallParams call = *first[0];
        call.function(call.data);
        calls_.take(1);
        run_callback(this_thread(), call.on_complete, Outcome::done);
    }
}

// --- completer -----------------------------------------------------------------------------------

void Engine::completed(OpId id) noexcept {
    const auto index = static_cast<std::uint32_t>(id.value >> 1);
    HIROBA_INVARIANT(index < SlotTable::slots_max, "completion of slot %u of %u", index,
                     SlotTable::slots_max);
    take_result(index);
}

void Engine::failed(OpId id) noexcept {
    finish(static_cast<std::uint32_t>(id.value >> 1), Outcome::peer_lost);
}

void Engine::take_result(std::uint32_t index) noexcept {
    Slot& slot = slots_[index];
    const Command& command = slot.command;
    if (command.kind != Work::Kind::atomic) return finish(index, Outcome::done);
    if (command.width == 8) {
        if (command.local != nullptr) std::memcpy(command.local, &slot.old, sizeof slot.old);
        return finish(index, Outcome::done);
    }
    const unsigned shift = half_shift(command.offset);
    if (!is_decided(command.op, slot.guess, slot.old,
                    static_cast<std::uint32_t>(command.expected()), shift)) {
        slot.guess = slot.old;
        return guess_again(index);
    }
    const std::uint32_t half = half_of(slot.old, shift);
    if (command.local != nullptr) std::memcpy(command.local, &half, sizeof half);
    finish(index, Outcome::done);
}

void Engine::guess_again(std::uint32_t index) noexcept {
    Slot& slot = slots_[index];
    const Command& command = slot.command;
    const unsigned shift = half_shift(command.offset);
    const auto operand = static_cast<std::uint32_t>(command.operand());
    const auto expected = static_cast<std::uint32_t>(command.expected());
    Post outcome = Post::done;
    while (outcome == Post::done) {
        const WideAtomic wide = widen(command.op, operand, slot.guess, shift);
        outcome = endpoint_.provider().atomic(id_of(index), wide.op, command.peer, command.region,
                                              round_down(command.offset, 8), wide.operand,
                                              wide.expected, &slot.old);
        if (outcome != Post::done) break;
        if (is_decided(command.op, slot.guess, slot.old, expected, shift))
            return take_result(index);
        slot.guess = slot.old;
    }
    if (outcome == Post::posted) return;
    guess_waits_[index].store(true, std::memory_order_release);  // pairs with repeat_guesses()
    guesses_waiting_.fetch_add(1, std::memory_order_release);
}

void Engine::finish(std::uint32_t index, Outcome outcome) noexcept {
    const Completion callback = slots_[index].command.on_complete;
    slots_.release(index);
    if (counts_) in_flight_.fetch_sub(1);
    run_callback(this_thread(), callback, outcome);
}

}  // namespace hiroba::net::offload
