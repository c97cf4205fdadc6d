// SPDX-License-Identifier: BSD-3-Clause
// Role: what the templates of hiroba/tasks.hpp stand on: the count of tasks that a wait is for, the
// kinds of tasks that may move, and the calls of the library. Not for programs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "hiroba/ids.hpp"

namespace hiroba::tasks {

class Scheduler;

/// Bytes that a task which may run on another node takes along, and brings back.
inline constexpr std::size_t closure_bytes_max = 96;
inline constexpr std::size_t result_bytes_max = 40;

namespace detail {

/// Tasks that a wait is for. It belongs to one task, which alone touches `outstanding`.
///
/// `balance` falls by one with each task that ends elsewhere, from 0. Who begins to wait adds
/// `outstanding`: so only then can it come to 0 by falling, and the task that makes it so resumes
/// `waiter`. Any other task touches the Join no more behind that.
struct Join {
    std::atomic<std::int64_t> balance{0};
    std::int64_t outstanding = 0;  ///< started, and not known to the owner to have ended
    void* waiter = nullptr;        ///< the context that waits, of the library
    std::byte* result = nullptr;   ///< where the result goes that comes from elsewhere

    Join() = default;
    Join(const Join&) = delete;
    Join& operator=(const Join&) = delete;
};

/// A kind of task that may run on another node: known by its number, the same on all nodes since
/// all run one program.
struct TaskType {
    using Enter = void (*)(const std::byte* closure, std::byte* result);
    TaskType(Enter enter_, std::size_t result_bytes_, const char* name) noexcept;
    Enter enter;
    std::size_t result_bytes;
    TaskType* next;
    std::uint32_t number = 0;
    std::uint32_t hash = 0;
};

/// The stack of a task that is about to begin, and room for its closure there.
struct Child {
    void* stack;
    void* place;
};
inline constexpr std::size_t local_closure_bytes_max = 1024;

/// Ends the process with a line unless a task of a Scheduler calls it.
Child begin_child();
/// Runs enter(child.place) at once, on its own stack; returns when another worker took this task
/// over or the child has ended or waits.
void run_child(const Child& child, void (*enter)(void*), Join& join);
/// Lets enter(closure) run, on this worker or any other of the job.
void offer(const TaskType& type, const void* closure, std::size_t bytes, Join& join);
/// Lets it run on `node`.
void send(NodeId node, const TaskType& type, const void* closure, std::size_t bytes, Join& join);
/// Returns when all tasks of `join` have ended; meanwhile the worker runs others.
void wait(Join& join);

/// How many replies tasks of this process have found that looked for them between yields.
std::atomic<std::uint64_t>& replies_found() noexcept;

template <class F>
using ResultOf = std::invoke_result_t<F&>;

struct Nothing {};
/// What a task of result R leaves; of void nothing.
template <class R>
using Stored = std::conditional_t<std::is_void_v<R>, Nothing, R>;

template <class F>
void enter_moved(const std::byte* closure, std::byte* result) {
    using R = ResultOf<F>;
    F function = *std::launder(reinterpret_cast<const F*>(closure));
    if constexpr (std::is_void_v<R>) {
        function();
    } else {
        const R value = function();
        if (result != nullptr) std::memcpy(result, &value, sizeof value);
    }
}

template <class F>
const char* name_of() noexcept {
    return __PRETTY_FUNCTION__;
}
/// Before main(), in every process that has such a task in its code.
template <class F>
inline TaskType type_of{
    &enter_moved<F>, std::is_void_v<ResultOf<F>> ? 0 : sizeof(Stored<ResultOf<F>>), name_of<F>()};

/// What a closure has to be that other nodes may run.
template <class F>
constexpr void require_movable() noexcept {
    using R = ResultOf<F>;
    static_assert(std::is_trivially_copyable_v<F> && std::is_trivially_destructible_v<F>,
                  "a task that may move captures values that are trivially copyable");
    static_assert(sizeof(F) <= closure_bytes_max && alignof(F) <= 16,
                  "a task that may move captures at most 96 bytes");
    static_assert(std::is_void_v<R> || (std::is_trivially_copyable_v<Stored<R>> &&
                                        sizeof(Stored<R>) <= result_bytes_max),
                  "a task that may move returns at most 40 bytes that are trivially copyable");
}

}  // namespace detail
}  // namespace hiroba::tasks
