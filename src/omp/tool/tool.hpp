// SPDX-License-Identifier: BSD-3-Clause
// Role: a first-party tool of this process: its callbacks, and what is kept for it of threads,
// regions and tasks.
// Invariant: each node has its own, with its own threads; what one node's tool hears is a whole by
// itself. Everything here is private to the node. A thread alone writes and reads its ToolThread,
// maybe in a signal handler: so a record that is linked is never unmapped.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/latch.hpp"
#include "base/program_call.hpp"
#include "base/thread_context.hpp"
#include "omp/thread_part.hpp"
#include "omp/tool/ompt.hpp"
#include "omp/tool/tool_library.hpp"

namespace hiroba::omp {

struct ToolTask;

/// A team as this node's tool knows it.
struct ToolTeam {
    ompt::Data data{0};
    std::uint64_t id = 0;  ///< over the job, never the same twice
    std::uint32_t size = 1;
    ToolTask* met_by =
        nullptr;  ///< the task that met the region; on other nodes, what stands for it
};

struct ToolTask {
    ompt::Data data{0};
    ompt::Frame frame;
    int flags = 0;
    ToolTeam* team = nullptr;
    std::uint32_t thread = 0;   ///< number in the team of the one that executes it
    ToolTask* below = nullptr;  ///< what its thread executed before, and will again
    bool at_end = false;        ///< implicit: stands at the end of its region
    bool detached = false;
    enum class Stage : std::uint8_t { runs, ended, fulfilled };
    std::atomic<Stage> stage{Stage::runs};  ///< of a detached one
    ompt::Work work{};                      ///< the construct it is in; {}: none
    std::uint64_t work_count = 0;
    bool in_single = false;  ///< as the executor
    bool nowait = false;     ///< a target task of a construct with that clause
    /// Counts the thread that executes the task, and each dependence that is still to be told of.
    std::atomic<std::uint32_t> held{1};
};

/// One thread of this node.
struct ToolThread {
    ompt::Data data{0};
    ompt::Thread kind = ompt::Thread::worker;
    bool begun = false;
    bool leads = false;  ///< on other nodes than 0 it stands for the one that meets regions
    ToolTask* task = nullptr;
    ToolTask initial;  ///< of threads that are no workers
    ompt::State state = ompt::State::work_serial;
    std::uint64_t wait_id = 0;
    const void* code = nullptr;  ///< from where the program called the construct
    bool barrier_is_implicit = false, reduces = false, yields = false;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> nested_holds;  ///< key, how often
    std::vector<ToolTask*> waited_for;  ///< by the task it is making; held
};

namespace detail {
inline std::atomic<bool> tool_listens{false};
}
/// Whether there is a tool, or may be one: what entry points look at.
inline bool tool_listens() noexcept { return detail::tool_listens.load(std::memory_order_relaxed); }

class Tool {
public:
    /// @param candidates  as find_tools() has them, at least one
    /// @param lookup      given to the tool
    Tool(std::vector<ToolCandidate> candidates, ToolLog log, ompt::Lookup lookup,
         std::uint32_t node);
    Tool(const Tool&) = delete;
    Tool& operator=(const Tool&) = delete;
    ~Tool();

    /// The process's, or null. The interface names none: a process has one tool, by the standard.
    static Tool* here() noexcept { return current_.load(std::memory_order_acquire); }

    /// Initializes the first candidate that wants to be; once. True: there is a tool.
    bool start() noexcept;
    /// Whether what it keeps is this node's own, and not the job's: it came from a library.
    bool is_private() const noexcept { return is_library_; }
    /// Whether it has been initialized and not finalized.
    bool is_on() const noexcept { return phase_.load(std::memory_order_acquire) == Phase::on; }
    void finalize() noexcept;

    bool hears(ompt::Event event) const noexcept {
        return callbacks_[static_cast<std::size_t>(event)].load(std::memory_order_relaxed) !=
               nullptr;
    }
    /// Calls the tool, if it wants to know; on the program's stack, or where a callback may be.
    template <class... Arguments>
    int tell(ompt::Event event, Arguments... arguments) const noexcept {
        const ompt::Callback callback =
            callbacks_[static_cast<std::size_t>(event)].load(std::memory_order_relaxed);
        if (callback == nullptr || !is_on()) return 0;
        void* const words[] = {as_word(arguments)...};
        return call(reinterpret_cast<void*>(callback), words, sizeof...(arguments));
    }
    ompt::Set set_callback(int event, ompt::Callback callback) noexcept;
    ompt::Callback callback(int event) const noexcept {
        return callbacks_[static_cast<std::size_t>(event)].load(std::memory_order_relaxed);
    }

    /// Different on every node, every time.
    std::uint64_t unique_id() noexcept {
        return std::uint64_t{node_} << node_shift | next_id_.fetch_add(1);
    }
    std::uint32_t node() const noexcept { return node_; }

    ToolTeam& take_team() noexcept;
    void give_back(ToolTeam& team) noexcept;

    /// Gives back what is kept of a task when no thread holds it any more.
    void let_go(ToolTask& task) noexcept;
    /// Keeps the end of a task, of which the calling thread may not tell, until tell_of_ended().
    void note_ended(ToolTask& task, ompt::TaskStatus status) noexcept;
    void tell_of_ended() noexcept;

    std::atomic<std::uint32_t> workers_alive{0};

private:
    static constexpr unsigned node_shift = 48;
    enum class Phase : std::uint8_t { not_begun, beginning, on, off };

    template <class Argument>
    static void* as_word(Argument argument) noexcept {
        if constexpr (std::is_pointer_v<Argument>)
            return const_cast<void*>(reinterpret_cast<const void*>(argument));
        else if constexpr (std::is_same_v<Argument, ompt::Data>)
            return argument.pointer;
        else if constexpr (std::is_same_v<Argument, std::nullptr_t>)
            return nullptr;
        else
            return reinterpret_cast<void*>(static_cast<std::uintptr_t>(argument));
    }
    int call(void* function, void* const* words, std::size_t count) const noexcept;
    bool initialize(const ToolCandidate& candidate) noexcept;

    static std::atomic<Tool*> current_;

    std::vector<ToolCandidate> candidates_;
    ToolLog log_;
    ompt::Lookup lookup_;
    const std::uint32_t node_;
    std::atomic<Phase> phase_{Phase::not_begun};
    std::mutex starting_;
    bool is_library_ = false;
    ompt::StartResult* result_ = nullptr;
    std::array<std::atomic<ompt::Callback>, ompt::events> callbacks_{};
    std::atomic<std::uint64_t> next_id_{1};

    Latch teams_latch_;
    std::vector<ToolTeam*> free_teams_;
    struct Ended {
        ToolTask* task;
        ompt::TaskStatus status;
    };
    Latch ended_latch_;
    std::vector<Ended> ended_;
    std::atomic<bool> any_ended_{false};
};

/// The calling thread's, or null when the tool has not heard of it.
inline ToolThread* tool_thread_if_known() noexcept {
    ThreadContext* const context = this_thread_if_known();
    return context != nullptr ? thread_part(*context).tool : nullptr;
}

}  // namespace hiroba::omp
