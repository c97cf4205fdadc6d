// SPDX-License-Identifier: BSD-3-Clause
// Role: target constructs, as a tool hears of them: the only device is the host.
// Invariant: told where the construct's code is executed, by the thread that does. Nothing is
// mapped, submitted or transferred, so that there is nothing else to tell.
#include "omp/tool/tool_runtime.hpp"

namespace hiroba::omp {

using ompt::Event;
using ompt::Scope;
using ompt::Target;

namespace {
constexpr int host = 0;  ///< omp_get_initial_device()

constexpr Target target_of(TargetData what) noexcept {
    switch (what) {
        case TargetData::enter: return Target::enter_data;
        case TargetData::exit: return Target::exit_data;
        case TargetData::update: return Target::update;
    }
    return Target::update;
}
}  // namespace

class ToolRuntime::InTarget {
public:
    /// `task`: the one that its thread executes, a target task or the one that met the construct.
    InTarget(Tool& tool, ToolTask& task, Target kind, bool nowait, const void* code) noexcept
        : tool_(tool),
          target_task_((task.flags & ompt::task_flag::target) != 0 ? &task : nullptr),
          kind_(static_cast<int>(kind) + (nowait ? ompt::target_nowait : 0)),
          code_(code) {
        // The task that met a deferred construct may be over.
        const bool met_here = target_task_ != nullptr && task.below != nullptr &&
                              (task.flags & ompt::task_flag::undeferred) != 0;
        task_ = met_here ? task.below : &task;
        id_ = tool.unique_id();
        tell(Scope::begin);
    }
    InTarget(const InTarget&) = delete;
    InTarget& operator=(const InTarget&) = delete;
    ~InTarget() { tell(Scope::end); }

private:
    /// A tool that listens to both hears the one that says more.
    void tell(Scope scope) noexcept {
        const int endpoint = static_cast<int>(scope);
        if (tool_.hears(Event::target_emi))
            tool_.tell(Event::target_emi, kind_, endpoint, host, &task_->data,
                       target_task_ != nullptr ? &target_task_->data : nullptr, &data_, code_);
        else
            tool_.tell(Event::target, kind_, endpoint, host, &task_->data, id_, code_);
    }
    Tool& tool_;
    ToolTask* task_ = nullptr;
    ToolTask* const target_task_;
    const int kind_;
    const void* const code_;
    std::uint64_t id_ = 0;
    ompt::Data data_{0};
};

void ToolRuntime::run_apart(OutlinedFunction function, void* data, std::uint32_t limit) noexcept {
    ToolThread* const own = thread();
    if (own == nullptr || own->task == nullptr) return core_->run_apart(function, data, limit);
    const InTarget here{*tool_, *own->task, Target::region, own->task->nowait, own->code};
    core_->run_apart(function, data, limit);
}

void ToolRuntime::tell_target_data(TargetData what, bool nowait) noexcept {
    ToolThread* const own = thread();
    if (own == nullptr || own->task == nullptr) return;
    const InTarget here{*tool_, *own->task, target_of(what), nowait, own->code};
}

}  // namespace hiroba::omp
