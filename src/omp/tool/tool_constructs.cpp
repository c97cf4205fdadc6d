// SPDX-License-Identifier: BSD-3-Clause
// Role: what the program's threads meet inside regions, as a tool hears of it: barriers, waits,
// worksharing, mutual exclusion, flushes, cancellation.
// Invariant: each beginning has its end on the same thread, in the order of a stack. Where code of
// gcc does not say that a single construct ends, it ends at the thread's next construct.
#include <algorithm>

#include "omp/tool/tool_runtime.hpp"

namespace hiroba::omp {

using ompt::Event;
using ompt::Mutex;
using ompt::Scope;
using ompt::State;
using ompt::Sync;
using ompt::Work;

namespace {
int number(Scope scope) noexcept { return static_cast<int>(scope); }

State state_of(Sync kind) noexcept {
    switch (kind) {
        case Sync::taskwait: return State::wait_taskwait;
        case Sync::taskgroup: return State::wait_taskgroup;
        case Sync::barrier_implicit_workshare: return State::wait_barrier_implicit_workshare;
        case Sync::barrier_implementation: return State::wait_barrier_implementation;
        default: return State::wait_barrier_explicit;
    }
}

}  // namespace

class ToolRuntime::Synchronizing {
public:
    /// `begins`: the region, and not only waiting in it.
    Synchronizing(ToolRuntime& runtime, Sync kind, bool begins = true) noexcept
        : runtime_(runtime), thread_(runtime.thread()), kind_(kind) {
        if (thread_ == nullptr || thread_->task == nullptr) return;
        task_ = thread_->task;
        if (kind != Sync::taskwait && kind != Sync::taskgroup) runtime.end_single(*thread_);
        code_ = thread_->code;
        before_ = thread_->state;
        thread_->state = state_of(kind);
        if (begins) tell(Event::sync_region, Scope::begin);
        tell(Event::sync_region_wait, Scope::begin);
    }
    Synchronizing(const Synchronizing&) = delete;
    Synchronizing& operator=(const Synchronizing&) = delete;
    ~Synchronizing() {
        if (task_ == nullptr) return;
        tell(Event::sync_region_wait, Scope::end);
        tell(Event::sync_region, Scope::end);
        thread_->state = before_;
        task_->frame.enter_frame.value = 0;
        runtime_.tool_->tell_of_ended();
    }

private:
    void tell(Event event, Scope scope) noexcept {
        runtime_.tool_->tell(event, static_cast<int>(kind_), number(scope), &task_->team->data,
                             &task_->data, code_);
    }
    ToolRuntime& runtime_;
    ToolThread* thread_;
    ToolTask* task_ = nullptr;
    Sync kind_;
    State before_{};
    const void* code_ = nullptr;
};

// --- barriers and waits --------------------------------------------------------------------------

void ToolRuntime::barrier() noexcept {
    ToolThread* const own = thread();
    const bool implicit = own != nullptr && std::exchange(own->barrier_is_implicit, false);
    const Synchronizing here{*this,
                             implicit ? Sync::barrier_implicit_workshare : Sync::barrier_explicit};
    core_->barrier();
}

bool ToolRuntime::barrier_cancel() noexcept {
    const Synchronizing here{*this, Sync::barrier_explicit};
    return core_->barrier_cancel();
}

void ToolRuntime::task(const NewTask& wanted) noexcept {
    core_->task(wanted);
    if (ToolThread* const own = tool_thread_if_known(); own != nullptr && own->task != nullptr)
        own->task->frame.enter_frame.value = 0;
}

void ToolRuntime::task_wait() noexcept {
    const Synchronizing here{*this, Sync::taskwait};
    core_->task_wait();
}

void ToolRuntime::task_wait_for(std::vector<Dependence> dependences) noexcept {
    const Synchronizing here{*this, Sync::taskwait};
    core_->task_wait_for(std::move(dependences));
}

void ToolRuntime::task_yield() noexcept {
    ToolThread* const own = thread();
    if (own == nullptr) return core_->task_yield();
    own->yields = true;
    core_->task_yield();
    own->yields = false;
}

void ToolRuntime::taskgroup_start() noexcept {
    if (ToolThread* const own = thread(); own != nullptr && own->task != nullptr)
        tool_->tell(Event::sync_region, static_cast<int>(Sync::taskgroup), number(Scope::begin),
                    &own->task->team->data, &own->task->data, own->code);
    core_->taskgroup_start();
}

void ToolRuntime::taskgroup_end() noexcept {
    const Synchronizing here{*this, Sync::taskgroup, false};
    core_->taskgroup_end();
}

void ToolRuntime::task_loop(NewTask& wanted, const TaskLoop& loop) noexcept {
    ToolThread* const own = thread();
    if (own == nullptr || own->task == nullptr) return core_->task_loop(wanted, loop);
    tell_work(*own, Work::taskloop, Scope::begin, loop.count);
    core_->task_loop(wanted, loop);
    tell_work(*own, Work::taskloop, Scope::end, loop.count);
}

void ToolRuntime::end_shared_reductions(bool cancelled) noexcept {
    const Synchronizing here{*this, Sync::barrier_implicit_workshare};
    core_->end_shared_reductions(cancelled);
}

// --- worksharing ---------------------------------------------------------------------------------

void ToolRuntime::tell_work(ToolThread& thread, Work work, Scope scope,
                            std::uint64_t count) noexcept {
    tool_->tell(Event::work, static_cast<int>(work), number(scope), &thread.task->team->data,
                &thread.task->data, count, thread.code);
}

void ToolRuntime::begin_work(ToolThread& thread, Work work, std::uint64_t count) noexcept {
    end_single(thread);
    end_work(thread);
    thread.task->work = work;
    thread.task->work_count = count;
    tell_work(thread, work, Scope::begin, count);
}

void ToolRuntime::end_work(ToolThread& thread) noexcept {
    if (thread.task == nullptr || thread.task->work == Work{}) return;
    tell_work(thread, thread.task->work, Scope::end, thread.task->work_count);
    thread.task->work = Work{};
}

void ToolRuntime::end_single(ToolThread& thread) noexcept {
    if (thread.task == nullptr || !std::exchange(thread.task->in_single, false)) return;
    tell_work(thread, Work::single_executor, Scope::end, 1);
}

void ToolRuntime::loop_start(const Loop& loop) noexcept {
    if (ToolThread* const own = thread(); own != nullptr && own->task != nullptr)
        begin_work(*own, loop.sections ? Work::sections : Work::loop, IterationSpace{loop}.count());
    core_->loop_start(loop);
}

void ToolRuntime::tell_dispatch(ToolThread& thread, std::uint64_t first) noexcept {
    const auto kind =
        thread.task->work == Work::sections ? ompt::Dispatch::section : ompt::Dispatch::iteration;
    tool_->tell(Event::dispatch, &thread.task->team->data, &thread.task->data,
                static_cast<int>(kind), first);
}

bool ToolRuntime::loop_next(std::uint64_t* first, std::uint64_t* end) noexcept {
    const bool got = core_->loop_next(first, end);
    if (ToolThread* const own = tool_thread_if_known();
        got && own != nullptr && own->task != nullptr)
        tell_dispatch(*own, *first);
    return got;
}

bool ToolRuntime::loop_next_closed(LoopChunk* chunk) noexcept {
    const bool got = core_->loop_next_closed(chunk);
    if (ToolThread* const own = tool_thread_if_known();
        got && own != nullptr && own->task != nullptr)
        tell_dispatch(*own, chunk->first);
    return got;
}

void ToolRuntime::loop_end(bool wait) noexcept {
    if (ToolThread* const own = thread(); own != nullptr) end_work(*own);
    if (!wait) return core_->loop_end(false);
    const Synchronizing here{*this, Sync::barrier_implicit_workshare};
    core_->loop_end(true);
}

bool ToolRuntime::loop_end_cancel() noexcept {
    if (ToolThread* const own = thread(); own != nullptr) end_work(*own);
    const Synchronizing here{*this, Sync::barrier_implicit_workshare};
    return core_->loop_end_cancel();
}

void ToolRuntime::doacross_start(std::span<const std::uint64_t> counts, Schedule schedule,
                                 std::uint64_t chunk) noexcept {
    if (ToolThread* const own = thread(); own != nullptr && own->task != nullptr)
        begin_work(*own, Work::loop, counts[0]);
    core_->doacross_start(counts, schedule, chunk);
}

void ToolRuntime::tell_iteration(ToolThread& thread, const std::uint64_t* at, int kind) noexcept {
    if (thread.task == nullptr || !tool_->hears(Event::dependences)) return;
    constexpr std::size_t most = 64;
    ompt::Dependence told[most];
    const std::size_t count = std::min(core_->doacross_dimensions(), most);
    for (std::size_t i = 0; i < count; ++i) told[i] = {{.value = at[i]}, kind};
    tool_->tell(Event::dependences, &thread.task->data, &told[0], static_cast<int>(count));
}

void ToolRuntime::doacross_post(const std::uint64_t* at) noexcept {
    core_->doacross_post(at);
    if (ToolThread* const own = thread(); own != nullptr)
        tell_iteration(*own, at, ompt::dependence_kind::source);
}

void ToolRuntime::doacross_wait(const std::uint64_t* at) noexcept {
    core_->doacross_wait(at);
    if (ToolThread* const own = thread(); own != nullptr)
        tell_iteration(*own, at, ompt::dependence_kind::sink);
}

bool ToolRuntime::single_start() noexcept {
    ToolThread* const own = thread();
    const bool executes = core_->single_start();
    if (own == nullptr || own->task == nullptr) return executes;
    end_single(*own);
    const Work kind = executes ? Work::single_executor : Work::single_other;
    tell_work(*own, kind, Scope::begin, 1);
    if (!executes) tell_work(*own, kind, Scope::end, 1);
    own->task->in_single = executes;
    return executes;
}

// The threads that do not execute the single learn that only behind its barrier.
void* ToolRuntime::single_copy_start() noexcept {
    ToolThread* const own = thread();
    void* const given = core_->single_copy_start();
    if (own == nullptr || own->task == nullptr) return given;
    end_single(*own);
    own->task->in_single = given == nullptr;
    tell_work(*own, given == nullptr ? Work::single_executor : Work::single_other, Scope::begin, 1);
    if (given == nullptr) return given;
    tell_work(*own, Work::single_other, Scope::end, 1);
    const Synchronizing passed{*this, Sync::barrier_implicit_workshare};
    return given;
}

void ToolRuntime::single_copy_end(void* data) noexcept {
    const Synchronizing here{*this, Sync::barrier_implicit_workshare};
    core_->single_copy_end(data);
}

void* ToolRuntime::pass_on(void* data, bool gives) noexcept {
    const Synchronizing here{*this, Sync::barrier_implementation};
    return core_->pass_on(data, gives);
}

// --- mutual exclusion ----------------------------------------------------------------------------

/// Entry points have said what they are (base/sync_place.hpp).
ToolRuntime::Exclusion ToolRuntime::exclusion_at(std::uint64_t key, bool test) noexcept {
    if (key == atomic_key) return {Mutex::atomic, State::wait_atomic};
    if (!test && this_thread().place.kind == SyncKind::critical)
        return {Mutex::critical, State::wait_critical};
    return {test ? Mutex::test_lock : Mutex::lock, State::wait_lock};
}

void ToolRuntime::tell_acquire(ToolThread& thread, Exclusion what, std::uint64_t key) noexcept {
    constexpr unsigned hint = 0, implementation = 0;
    thread.state = what.waits;
    thread.wait_id = key;
    tool_->tell(Event::mutex_acquire, static_cast<int>(what.kind), hint, implementation, key,
                thread.code);
}

void ToolRuntime::tell_acquired(ToolThread& thread, Mutex kind, std::uint64_t key) noexcept {
    tool_->tell(Event::mutex_acquired, static_cast<int>(kind), key, thread.code);
}

void ToolRuntime::lock(std::uint64_t key) noexcept {
    ToolThread* const own = thread();
    if (own == nullptr || own->reduces) return core_->lock(key);
    const Exclusion what = exclusion_at(key, false);
    const State before = own->state;
    tell_acquire(*own, what, key);
    core_->lock(key);
    own->state = before;
    tell_acquired(*own, what.kind, key);
}

bool ToolRuntime::try_lock(std::uint64_t key) noexcept {
    ToolThread* const own = thread();
    if (own == nullptr) return core_->try_lock(key);
    const State before = own->state;
    tell_acquire(*own, exclusion_at(key, true), key);
    const bool got = core_->try_lock(key);
    own->state = before;
    if (got) tell_acquired(*own, Mutex::test_lock, key);
    return got;
}

void ToolRuntime::unlock(std::uint64_t key) noexcept {
    const Exclusion what = exclusion_at(key, false);
    core_->unlock(key);
    ToolThread* const own = thread();
    if (own == nullptr || own->reduces) return;
    tool_->tell(Event::mutex_released, static_cast<int>(what.kind), key, own->code);
}

void ToolRuntime::tell_nested(ToolThread& thread, Mutex kind, std::uint64_t key,
                              std::uint32_t count) noexcept {
    if (count == 1) {
        const RuntimeScope here;
        thread.nested_holds.emplace_back(key, 1);
    }
    for (auto& hold : thread.nested_holds)
        if (hold.first == key) hold.second = count;
    if (count == 1) return tell_acquired(thread, kind, key);
    tool_->tell(Event::nest_lock, number(Scope::begin), key, thread.code);
}

std::uint32_t ToolRuntime::lock_nested(std::uint64_t key) noexcept {
    ToolThread* const own = thread();
    if (own == nullptr) return core_->lock_nested(key);
    const State before = own->state;
    tell_acquire(*own, {Mutex::nest_lock, State::wait_lock}, key);
    const std::uint32_t count = core_->lock_nested(key);
    own->state = before;
    tell_nested(*own, Mutex::nest_lock, key, count);
    return count;
}

std::uint32_t ToolRuntime::try_lock_nested(std::uint64_t key) noexcept {
    ToolThread* const own = thread();
    if (own == nullptr) return core_->try_lock_nested(key);
    const State before = own->state;
    tell_acquire(*own, {Mutex::test_nest_lock, State::wait_lock}, key);
    const std::uint32_t count = core_->try_lock_nested(key);
    own->state = before;
    if (count != 0) tell_nested(*own, Mutex::test_nest_lock, key, count);
    return count;
}

void ToolRuntime::unlock_nested(std::uint64_t key) noexcept {
    core_->unlock_nested(key);
    ToolThread* const own = thread();
    if (own == nullptr) return;
    auto& holds = own->nested_holds;
    const auto hold = std::ranges::find_if(holds, [key](auto& each) { return each.first == key; });
    if (hold == holds.end()) return;
    if (--hold->second != 0) {
        tool_->tell(Event::nest_lock, number(Scope::end), key, own->code);
        return;
    }
    {
        const RuntimeScope here;
        holds.erase(hold);
    }
    tool_->tell(Event::mutex_released, static_cast<int>(Mutex::nest_lock), key, own->code);
}

void ToolRuntime::ordered_start() noexcept {
    ToolThread* const own = thread();
    if (own == nullptr) return core_->ordered_start();
    const State before = own->state;
    tell_acquire(*own, {Mutex::ordered, State::wait_ordered}, ordered_key);
    core_->ordered_start();
    own->state = before;
    tell_acquired(*own, Mutex::ordered, ordered_key);
}

void ToolRuntime::ordered_end() noexcept {
    core_->ordered_end();
    if (ToolThread* const own = thread(); own != nullptr)
        tool_->tell(Event::mutex_released, static_cast<int>(Mutex::ordered), ordered_key,
                    own->code);
}

// --- the rest ------------------------------------------------------------------------------------

void ToolRuntime::flush() noexcept {
    core_->flush();
    if (ToolThread* const own = thread(); own != nullptr)
        tool_->tell(Event::flush, &own->data, own->code);
}

namespace {
int cancel_kind(Cancel what) noexcept {
    switch (what) {
        case Cancel::parallel: return ompt::cancel_flag::parallel;
        case Cancel::loop: return ompt::cancel_flag::loop;
        case Cancel::sections: return ompt::cancel_flag::sections;
        case Cancel::taskgroup: return ompt::cancel_flag::taskgroup;
    }
    return 0;
}
}  // namespace

bool ToolRuntime::cancel(Cancel what) noexcept {
    const bool active = core_->cancel(what);
    if (ToolThread* const own = thread(); active && own != nullptr && own->task != nullptr)
        tool_->tell(Event::cancel, &own->task->data,
                    cancel_kind(what) | ompt::cancel_flag::activated, own->code);
    return active;
}

bool ToolRuntime::cancellation_point(Cancel what) noexcept {
    const bool cancelled = core_->cancellation_point(what);
    if (ToolThread* const own = thread(); cancelled && own != nullptr && own->task != nullptr)
        tool_->tell(Event::cancel, &own->task->data,
                    cancel_kind(what) | ompt::cancel_flag::detected, own->code);
    return cancelled;
}

void ToolRuntime::tell_error(bool fatal, const char* text, std::size_t length) noexcept {
    ToolThread* const own = thread();
    if (own == nullptr) return;
    const auto severity = fatal ? ompt::Severity::fatal : ompt::Severity::warning;
    tool_->tell(Event::error, static_cast<int>(severity), text, length, own->code);
}

/// Tells the tool of things that entry points do without the runtime.
void ToolRuntime::tell_tool(ToolReport what, std::uint64_t value) noexcept {
    ToolThread* const own = thread();
    if (own == nullptr || own->task == nullptr) return;
    ompt::Data* const team = &own->task->team->data;
    ompt::Data* const task = &own->task->data;
    const auto tell_reduction = [&](Scope scope) {
        tool_->tell(Event::reduction, static_cast<int>(Sync::reduction), number(scope), team, task,
                    own->code);
    };
    switch (what) {
        case ToolReport::loop_begins: return begin_work(*own, Work::loop, value);
        case ToolReport::sections_begin: return begin_work(*own, Work::sections, value);
        case ToolReport::distribute_begins: return begin_work(*own, Work::distribute, value);
        case ToolReport::work_ends: return end_work(*own);
        case ToolReport::single_ends: return end_single(*own);
        case ToolReport::masked_begins:
            tool_->tell(Event::masked, number(Scope::begin), team, task, own->code);
            break;
        case ToolReport::masked_ends:
            tool_->tell(Event::masked, number(Scope::end), team, task, own->code);
            break;
        case ToolReport::reduction_begins:
            tell_reduction(Scope::begin);
            own->reduces = true;
            break;
        case ToolReport::reduction_ends:
            own->reduces = false;
            tell_reduction(Scope::end);
            break;
        case ToolReport::lock_made:
            tool_->tell(Event::lock_init, static_cast<int>(Mutex::lock), 0, 0, value, own->code);
            break;
        case ToolReport::nested_lock_made:
            tool_->tell(Event::lock_init, static_cast<int>(Mutex::nest_lock), 0, 0, value,
                        own->code);
            break;
        case ToolReport::lock_gone:
            tool_->tell(Event::lock_destroy, static_cast<int>(Mutex::lock), value, own->code);
            break;
        case ToolReport::nested_lock_gone:
            tool_->tell(Event::lock_destroy, static_cast<int>(Mutex::nest_lock), value, own->code);
            break;
        case ToolReport::barrier_is_implicit: own->barrier_is_implicit = true; break;
    }
}

}  // namespace hiroba::omp
