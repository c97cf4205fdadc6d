// SPDX-License-Identifier: BSD-3-Clause
#include "omp/tool/tool.hpp"

namespace hiroba::omp {

std::atomic<Tool*> Tool::current_{nullptr};

namespace {
/// OpenMP 5.2, as gcc's runtime gives it in _OPENMP.
constexpr unsigned openmp_version = 202111;
constexpr const char* runtime_name = "hiroba";
}  // namespace

Tool::Tool(std::vector<ToolCandidate> candidates, ToolLog log, ompt::Lookup lookup,
           std::uint32_t node)
    : candidates_(std::move(candidates)), log_(log), lookup_(lookup), node_(node) {
    current_.store(this, std::memory_order_release);
    detail::tool_listens.store(true);
}

Tool::~Tool() {
    detail::tool_listens.store(false);
    current_.store(nullptr);
}

int Tool::call(void* function, void* const* words, std::size_t count) const noexcept {
    // Synchronization in the tool's callback is not the program's.
    const SyncPlace place = this_thread().place;
    void* result = nullptr;
    if (is_library_) {
        const CallsOfOwnLibrary of_tool;
        result = call_program_with(function, words, count);
    } else {
        result = call_program_with(function, words, count);
    }
    this_thread().place = place;
    return static_cast<int>(reinterpret_cast<std::intptr_t>(result));
}

bool Tool::initialize(const ToolCandidate& candidate) noexcept {
    is_library_ = candidate.is_library();
    const char* const name = is_library_ ? candidate.path.c_str() : "the program";
    void* const start[] = {as_word(openmp_version), as_word(runtime_name)};
    const auto call_pointer = [this](void* function, void* const* words, std::size_t count) {
        if (!is_library_) return call_program_with(function, words, count);
        const CallsOfOwnLibrary of_tool;
        return call_program_with(function, words, count);
    };
    result_ = static_cast<ompt::StartResult*>(
        call_pointer(reinterpret_cast<void*>(candidate.start), start, 2));
    if (result_ == nullptr) {
        log_.line("%s: ompt_start_tool returned NULL", name);
        return false;
    }
    void* const words[] = {reinterpret_cast<void*>(lookup_), as_word(0),
                           as_word(&result_->tool_data)};
    const int wanted = static_cast<int>(reinterpret_cast<std::intptr_t>(
        call_pointer(reinterpret_cast<void*>(result_->initialize), words, 3)));
    log_.line("%s: ompt_initialize returned %d", name, wanted);
    if (wanted == 0) result_ = nullptr;
    return true;  // This tool was asked; no other is.
}

bool Tool::start() noexcept {
    if (phase_.load(std::memory_order_acquire) == Phase::on) [[likely]]
        return true;
    const std::scoped_lock guard{starting_};
    if (phase_.load() != Phase::not_begun) return is_on();
    phase_.store(Phase::beginning);
    for (const ToolCandidate& candidate : candidates_)
        if (initialize(candidate)) break;
    log_.close();
    phase_.store(result_ != nullptr ? Phase::on : Phase::off, std::memory_order_release);
    if (result_ == nullptr) detail::tool_listens.store(false);
    return result_ != nullptr;
}

void Tool::finalize() noexcept {
    Phase on = Phase::on;
    if (!phase_.compare_exchange_strong(on, Phase::off)) return;
    detail::tool_listens.store(false);
    void* const words[] = {as_word(&result_->tool_data)};
    if (result_->finalize != nullptr) call(reinterpret_cast<void*>(result_->finalize), words, 1);
}

ompt::Set Tool::set_callback(int event, ompt::Callback callback) noexcept {
    if (event < 1 || event >= ompt::events) return ompt::Set::error;
    if (!ompt::is_told(event) && !ompt::is_of_devices(event)) return ompt::Set::never;
    callbacks_[static_cast<std::size_t>(event)].store(callback);
    return ompt::Set::always;
}

ToolTeam& Tool::take_team() noexcept {
    const RuntimeScope here;
    const std::scoped_lock guard{teams_latch_};
    if (free_teams_.empty()) free_teams_.push_back(new ToolTeam);
    ToolTeam& team = *free_teams_.back();
    free_teams_.pop_back();
    team.data.value = 0;
    return team;
}

void Tool::give_back(ToolTeam& team) noexcept {
    const RuntimeScope here;
    const std::scoped_lock guard{teams_latch_};
    free_teams_.push_back(&team);
}

void Tool::let_go(ToolTask& task) noexcept {
    if (task.held.fetch_sub(1) != 1) return;
    const RuntimeScope here;
    delete &task;
}

void Tool::note_ended(ToolTask& task, ompt::TaskStatus status) noexcept {
    const RuntimeScope here;
    const std::scoped_lock guard{ended_latch_};
    ended_.push_back({&task, status});
    any_ended_.store(true, std::memory_order_release);  // pairs with tell_of_ended()
}

void Tool::tell_of_ended() noexcept {
    if (!any_ended_.load(std::memory_order_acquire)) return;
    std::vector<Ended> ended;
    {
        const RuntimeScope here;
        const std::scoped_lock guard{ended_latch_};
        ended.swap(ended_);
        any_ended_.store(false, std::memory_order_relaxed);
    }
    for (const Ended& each : ended) {
        tell(ompt::Event::task_schedule, &each.task->data, static_cast<int>(each.status), nullptr);
        if (each.status == ompt::TaskStatus::late_fulfill) let_go(*each.task);
    }
}

}  // namespace hiroba::omp
