// SPDX-License-Identifier: BSD-3-Clause
// Role: threads, regions and implicit tasks, as a tool hears of them.
// Invariant: on the node of the thread that meets a region, that thread tells of it. On another,
// the node's leader does for its own tool, as if it had met the region; the others wait for that
// before they tell of their implicit tasks. The end of a worker's implicit task is told when the
// thread is next awake in the program's name: at its next region, or its end.
#include "base/clock.hpp"
#include "base/latch.hpp"
#include "base/own_libraries.hpp"
#include "base/program_call.hpp"
#include "net/net.hpp"
#include "omp/team/told_apart.hpp"
#include "omp/tool/tool_runtime.hpp"

namespace hiroba::omp {

using ompt::Event;
using ompt::Scope;
using ompt::State;

namespace {
/// How long the end of the program waits for its threads to say that they end.
constexpr std::uint64_t patience_ns = 2'000'000'000;
constexpr std::uint32_t program_team =
    ompt::parallel_flag::invoker_program | ompt::parallel_flag::team;

/// The process's: a region's function is given nothing else to know it by.
std::atomic<ToolRuntime*> the_runtime{nullptr};
ToolRuntime* running() noexcept { return the_runtime.load(std::memory_order_acquire); }
}  // namespace

Result<std::unique_ptr<Runtime>> create_runtime(Parts parts, ompt::Lookup lookup) {
    const bool several = parts.endpoint != nullptr;
    const std::uint32_t node = several ? parts.endpoint->self().value : 0;
    const std::uint32_t nodes = several ? parts.endpoint->nodes() : 1;
    ToolLog log;
    auto candidates = find_tools(log, node, nodes);
    if (candidates.empty()) {
        log.close();
        return Runtime::create(parts);
    }
    auto tool = std::make_unique<Tool>(std::move(candidates), log, lookup, node);
    auto runtime = std::make_unique<ToolRuntime>(std::move(tool), nodes);
    parts.observer = runtime.get();
    // It may tell threads apart in whatever way, and keep of each what it has seen.
    program_tells_threads_apart.store(true);
    auto core = Runtime::create(parts);
    if (!core) return core.error();
    runtime->take_core(std::move(*core));
    the_runtime.store(runtime.get(), std::memory_order_release);
    return std::unique_ptr<Runtime>(std::move(runtime));
}

// --- threads -------------------------------------------------------------------------------------

ToolThread& ToolRuntime::meet(ompt::Thread kind) noexcept {
    ToolThread*& kept = thread_part().tool;
    if (kept == nullptr) {
        const RuntimeScope here;
        auto* const made = new ToolThread;
        made->kind = kind;
        kept = made;
    }
    return *kept;
}

ToolThread* ToolRuntime::thread() noexcept {
    ToolThread* known = tool_thread_if_known();
    if (known == nullptr || !known->begun) [[unlikely]] {
        if (!tool_->start()) return nullptr;
        known = &meet(core_->is_initial_thread() ? ompt::Thread::initial : ompt::Thread::other);
        begin(*known);
    }
    return tool_->is_on() ? known : nullptr;
}

void ToolRuntime::begin(ToolThread& thread) noexcept {
    if (thread.begun) return;
    thread.begun = true;
    if (thread.kind == ompt::Thread::worker || thread.leads) tool_->workers_alive.fetch_add(1);
    tool_->tell(Event::thread_begin, static_cast<int>(thread.kind), &thread.data);
    if (thread.kind == ompt::Thread::worker) return;
    ToolTeam& team = tool_->take_team();
    team.size = 1;
    team.met_by = nullptr;
    thread.initial.team = &team;
    thread.initial.flags = ompt::task_flag::initial;
    thread.task = &thread.initial;
    tool_->tell(Event::implicit_task, static_cast<int>(Scope::begin), &team.data,
                &thread.initial.data, 1, 1, ompt::task_flag::initial);
}

void ToolRuntime::work(std::uint32_t local_thread) noexcept {
    const bool leads = tool_->node() != 0 && local_thread == 0;
    meet(leads ? ompt::Thread::initial : ompt::Thread::worker).leads = leads;
    core_->work(local_thread);
}

void ToolRuntime::thread_ends() noexcept {
    ToolThread* const thread = tool_thread_if_known();
    if (thread == nullptr) return;
    thread_part().tool = nullptr;
    const bool counted = thread->begun && (thread->kind == ompt::Thread::worker || thread->leads);
    const bool is_told = tool_->is_private() || tool_->node() == 0;
    if (thread->begun && tool_->is_on() && is_told) {
        thread_part().tool = thread;
        end_member(*thread);
        tool_->tell_of_ended();
        if (thread->kind != ompt::Thread::worker)
            tool_->tell(Event::implicit_task, static_cast<int>(Scope::end), nullptr,
                        &thread->initial.data, 0, 1, ompt::task_flag::initial);
        tool_->tell(Event::thread_end, &thread->data);
        thread_part().tool = nullptr;
    }
    if (counted) tool_->workers_alive.fetch_sub(1);
    // The ToolThread is not freed: a signal handler of the tool in this thread may look at it until
    // the thread is gone.
}

void ToolRuntime::forget_thread() noexcept {
    core_->forget_thread();
    thread_ends();
}

/// A tool that is the program's own keeps what it keeps in the job's memory, which is there until
/// the nodes are sent home.
void ToolRuntime::quit() noexcept {
    if (tool_->is_on() && !tool_->is_private()) {
        thread_ends();
        tool_->finalize();
    }
    core_->quit();
}

void ToolRuntime::finish_tool(bool threads_end) noexcept {
    if (!tool_->is_on()) return;
    if (threads_end) {
        if (nodes_ == 1) core_->quit();
        const std::uint64_t until_ns = now_ns() + patience_ns;
        Backoff backoff;
        while (tool_->workers_alive.load() != 0 && now_ns() < until_ns) backoff.pause();
        thread_ends();
    }
    if (!tool_->is_private() && tool_->node() != 0) return;
    tool_->tell_of_ended();
    tool_->finalize();
}

void ToolRuntime::note_caller(const void* code) noexcept {
    ToolThread* const own = thread();
    if (own == nullptr) return;
    own->code = code;
    if (own->task == nullptr) return;
    own->task->frame.enter_frame.pointer = __builtin_frame_address(0);
    own->task->frame.enter_flags = ompt::frame_flag::runtime | ompt::frame_flag::stack_address;
}

int ToolRuntime::control_tool(int command, int modifier, void* argument) noexcept {
    const ToolThread* const own = thread();
    if (own == nullptr) return -2;
    if (!tool_->hears(Event::control_tool)) return -1;
    return tool_->tell(Event::control_tool, static_cast<std::uint64_t>(command),
                       static_cast<std::uint64_t>(modifier), argument, own->code);
}

// --- regions -------------------------------------------------------------------------------------

void ToolRuntime::begin_parallel(ToolThread& thread, Region& region) noexcept {
    region.team = &tool_->take_team();
    region.id = region.team->id = tool_->unique_id();
    region.node = tool_->node();
    region.team->met_by = thread.task;
    region.code = thread.code;
    tool_->tell(Event::parallel_begin, &thread.task->data, &thread.task->frame, &region.team->data,
                region.requested, program_team, region.code);
}

void ToolRuntime::end_parallel(ToolThread& thread, Region& region) noexcept {
    tool_->tell_of_ended();
    tool_->tell(Event::parallel_end, &region.team->data, &thread.task->data, program_team,
                region.code);
    tool_->give_back(*region.team);
    thread.task->frame.enter_frame.value = 0;
}

template <class Run>
auto ToolRuntime::with_region(Region region, std::uint32_t threads, Run&& run) noexcept {
    ToolThread* const own = thread();
    if (own == nullptr) return run(region.function, region.data);
    end_single(*own);
    region.requested = threads != 0 ? threads : core_->icvs().threads;
    begin_parallel(*own, region);
    const auto finish = [&] {
        end_member(*own);
        end_parallel(*own, region);
    };
    if constexpr (std::is_void_v<decltype(run(region.function, region.data))>) {
        run(&ToolRuntime::enter, static_cast<void*>(&region));
        finish();
    } else {
        const auto result = run(&ToolRuntime::enter, static_cast<void*>(&region));
        finish();
        return result;
    }
}

void ToolRuntime::parallel(OutlinedFunction function, void* data, std::uint32_t threads) noexcept {
    const void* const code = reinterpret_cast<const void*>(function);
    with_region({function, data}, threads, [&](OutlinedFunction run, void* with) {
        core_->parallel_at(code, run, with, threads);
    });
}

void ToolRuntime::parallel_at(const void* code, OutlinedFunction function, void* data,
                              std::uint32_t threads) noexcept {
    with_region({function, data}, threads, [&](OutlinedFunction run, void* with) {
        core_->parallel_at(code, run, with, threads);
    });
}

void ToolRuntime::parallel_loop(OutlinedFunction function, void* data, std::uint32_t threads,
                                const Loop& loop, std::uint32_t threads_max) noexcept {
    Region region{function, data};
    region.work = loop.sections ? ompt::Work::sections : ompt::Work::loop;
    region.count = IterationSpace{loop}.count();
    with_region(region, threads, [&](OutlinedFunction run, void* with) {
        core_->parallel_loop(run, with, threads, loop, threads_max);
    });
}

std::uint32_t ToolRuntime::parallel_reductions(OutlinedFunction function, void* data,
                                               std::uint32_t threads,
                                               std::uintptr_t* reductions) noexcept {
    return with_region({function, data}, threads, [&](OutlinedFunction run, void* with) {
        return core_->parallel_reductions(run, with, threads, reductions);
    });
}

void ToolRuntime::enter(void* region) noexcept {
    running()->run_member(*static_cast<const Region*>(region));
}

void ToolRuntime::run_member(const Region& region) noexcept {
    const TeamPosition place = core_->place();
    ToolThread& own = meet(ompt::Thread::worker);
    // The thread's last region is over, or the thread would not be here.
    end_member(own);
    ToolTeam& team = team_of(region, own);
    begin(own);
    ToolTask& task =
        begin_implicit(own, team, place.thread, place.team_size, ompt::task_flag::implicit);
    if (region.work != ompt::Work{}) begin_work(own, region.work, region.count);
    task.frame.exit_frame.pointer = __builtin_frame_address(0);
    task.frame.exit_flags = ompt::frame_flag::runtime | ompt::frame_flag::stack_address;
    call_program(region.function, region.data);
    task.frame.exit_frame.value = 0;
    reach_end(own);
}

ToolTeam& ToolRuntime::team_of(const Region& region, ToolThread& thread) noexcept {
    ToolTeam* team = region.node == tool_->node() ? region.team : nullptr;
    if (team == nullptr && thread.leads) {
        tool_->start();
        begin(thread);
        team = &tool_->take_team();
        team->id = region.id;
        team->met_by = thread.task;
        tool_->tell(Event::parallel_begin, &thread.task->data, &thread.task->frame, &team->data,
                    region.requested, program_team, region.code);
        spread_ = team;
        spread_id_.store(region.id, std::memory_order_release);  // pairs with the load below
    }
    if (team != nullptr) return *team;
    // The leader is woken with the others and waits for none of them.
    Backoff backoff;
    while (spread_id_.load(std::memory_order_acquire) != region.id) backoff.pause();
    return *spread_;
}

ToolTask& ToolRuntime::begin_implicit(ToolThread& thread, ToolTeam& team, std::uint32_t number,
                                      std::uint32_t size, int flags) noexcept {
    ToolTask* task = nullptr;
    {
        const RuntimeScope here;
        task = new ToolTask;
    }
    task->flags = flags;
    task->team = &team;
    task->thread = number;
    task->below = thread.task;
    team.size = size;
    thread.task = task;
    thread.state = size > 1 ? State::work_parallel : State::work_serial;
    tool_->tell(Event::implicit_task, static_cast<int>(Scope::begin), &team.data, &task->data, size,
                number, flags);
    return *task;
}

/// The thread is at the barrier that ends its region.
void ToolRuntime::reach_end(ToolThread& thread) noexcept {
    ToolTask& task = *thread.task;
    end_single(thread);
    end_work(thread);
    thread.state = State::wait_barrier_implicit_parallel;
    task.at_end = true;
    const auto kind = static_cast<int>(ompt::Sync::barrier_implicit_parallel);
    for (const Event event : {Event::sync_region, Event::sync_region_wait})
        tool_->tell(event, kind, static_cast<int>(Scope::begin), &task.team->data, &task.data,
                    nullptr);
}

/// Ends the thread's implicit task, if that stands at its end. The region may be over, too.
void ToolRuntime::end_member(ToolThread& thread) noexcept {
    ToolTask* const task = thread.task;
    if (task == nullptr || !task->at_end) return;
    const auto kind = static_cast<int>(ompt::Sync::barrier_implicit_parallel);
    for (const Event event : {Event::sync_region_wait, Event::sync_region})
        tool_->tell(event, kind, static_cast<int>(Scope::end), nullptr, &task->data, nullptr);
    thread.state = State::overhead;
    tool_->tell(Event::implicit_task, static_cast<int>(Scope::end), nullptr, &task->data, 0,
                task->thread, task->flags);
    thread.task = task->below;
    thread.state = thread.task != nullptr ? State::work_serial : State::idle;
    // Another node's region, which this thread told of.
    if (thread.leads && spread_ != nullptr && task->team == spread_) {
        tool_->tell_of_ended();
        tool_->tell(Event::parallel_end, &spread_->data, &thread.initial.data, program_team,
                    nullptr);
        tool_->give_back(*spread_);
        spread_ = nullptr;
    }
    const RuntimeScope here;
    delete task;
}

// --- regions of one thread, in two halves; leagues -----------------------------------------------

void ToolRuntime::begin_alone() noexcept {
    if (ToolThread* const own = thread(); own != nullptr) {
        Region region;
        region.requested = 1;
        begin_parallel(*own, region);
        begin_implicit(*own, *region.team, 0, 1, ompt::task_flag::implicit);
    }
    core_->begin_alone();
}

void ToolRuntime::end_alone() noexcept {
    ToolThread* const own = thread();
    if (own == nullptr || own->task == nullptr) return core_->end_alone();
    Region region;
    region.team = own->task->team;
    region.code = own->code;
    reach_end(*own);
    core_->end_alone();
    end_member(*own);
    end_parallel(*own, region);
}

/// A team of the league; they run one after the other on this thread.
void ToolRuntime::enter_team(void* at) noexcept {
    const Region& region = *static_cast<const Region*>(at);
    ToolRuntime& here = *running();
    ToolThread& own = here.meet(ompt::Thread::other);
    const Icvs& icvs = here.core_->icvs();
    ToolTask& task = here.begin_implicit(own, *region.team, icvs.team_number, icvs.league_size,
                                         ompt::task_flag::initial);
    task.frame.exit_frame.pointer = __builtin_frame_address(0);
    call_program(region.function, region.data);
    here.end_single(own);
    here.tool_->tell(Event::implicit_task, static_cast<int>(Scope::end), nullptr, &task.data, 0,
                     task.thread, task.flags);
    own.task = task.below;
    const RuntimeScope allocating;
    delete &task;
}

void ToolRuntime::league(OutlinedFunction function, void* data, std::uint32_t teams,
                         std::uint32_t thread_limit) noexcept {
    ToolThread* const own = thread();
    if (own == nullptr) return core_->league(function, data, teams, thread_limit);
    constexpr std::uint32_t flags =
        ompt::parallel_flag::invoker_program | ompt::parallel_flag::league;
    Region region{function, data};
    region.team = &tool_->take_team();
    region.team->met_by = own->task;
    region.code = own->code;
    tool_->tell(Event::parallel_begin, &own->task->data, &own->task->frame, &region.team->data,
                teams, flags, region.code);
    core_->league(&ToolRuntime::enter_team, &region, teams, thread_limit);
    tool_->tell(Event::parallel_end, &region.team->data, &own->task->data, flags, region.code);
    tool_->give_back(*region.team);
}

}  // namespace hiroba::omp
