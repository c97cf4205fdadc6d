// SPDX-License-Identifier: BSD-3-Clause
// Role: fork-join and future tasks on user-level threads, over the workers of a node and the nodes
// of a job: continuations are stolen within a node, tasks that have not begun between nodes.
// Source: Endo & Taura, DSM with logical timestamps, section 3.5 (misses hidden by user-level
// threads); MGAS-2, section 1 (tasks that move).
//
// A program that uses it is started with `hiroba run --spmd -n N ./program`: every node enters
// main. Link with hiroba::tasks. First page: docs/tutorials/tasks.md; contracts and pitfalls:
// docs/layers/user-level-tasks.md; examples: examples/tasks_*.cpp. C++20.
#pragma once

#if __cplusplus < 202002L
#error "hiroba needs C++20: compile with -std=c++20 (pkg-config and find_package say so)"
#endif

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "hiroba/net.hpp"
#include "hiroba/tasks_base.hpp"

namespace hiroba::tasks {

struct Options {
    /// Threads that run tasks, 1 to 256; the same on all nodes. The thread that calls run() is one.
    std::uint32_t workers = 1;
    /// Bytes of a task's stack, 16 KiB to 1 GiB; used as touched. A guard page lies below.
    std::size_t stack_bytes = std::size_t{256} << 10;
    /// Tasks that a worker keeps for other nodes, a power of two; the same on all nodes. Those that
    /// find no room run at once.
    std::uint32_t offers = 2048;
    /// Active messages first_id to first_id + 2 of the network are the scheduler's.
    net::ActiveId first_id{61};
};

/// What the workers of this node have done since open().
struct Counts {
    std::uint64_t tasks = 0;      ///< that ran here
    std::uint64_t taken = 0;      ///< continuations and tasks that a worker took from another one
    std::uint64_t stolen = 0;     ///< tasks that came from another node by a steal
    std::uint64_t attempts = 0;   ///< steals from other nodes that were begun
    std::uint64_t received = 0;   ///< tasks that were sent here: async(on(...))
    std::uint64_t suspended = 0;  ///< waits at which another task got the worker
};

/// A scheduler's place in a job. One at a time runs in a process.
class Scheduler {
public:
    /// Before network->connect(), in the same place on every node; nullptr for the network: one
    /// node alone. The network outlives the scheduler. On failure: nullptr, and `*why` says what to
    /// change.
    static std::unique_ptr<Scheduler> open(net::Network* network, const Options& options,
                                           std::string* why);
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;
    virtual ~Scheduler() = default;

    /// Collective: runs function() as a task of node 0, and what it starts on all nodes; returns
    /// its result on every node when all tasks have ended. The same call on every node, after
    /// connect(), not from a task. The result is trivially copyable, or void.
    template <class F>
    auto run(F&& function) {
        return run_as(function, false);
    }
    /// As run(), with a first task on each node, whose result that node gets.
    template <class F>
    auto run_everywhere(F&& function) {
        return run_as(function, true);
    }
    virtual Counts counts() const noexcept = 0;

protected:
    Scheduler() = default;
    /// Runs enter(argument), if that is not null, as a task; ends when all nodes' tasks have.
    virtual void run_root(void (*enter)(void*), void* argument) = 0;
    virtual bool is_first() const noexcept = 0;
    virtual void share(std::span<std::byte> result) noexcept = 0;

private:
    template <class F>
    auto run_as(F& function, bool everywhere) {
        using R = detail::ResultOf<F>;
        using Value = detail::Stored<R>;
        static_assert(std::is_void_v<R> || std::is_trivially_copyable_v<Value>);
        struct Root {
            F& function;
            Value value{};
        } root{function};
        const auto enter = [](void* of) {
            auto& here = *static_cast<Root*>(of);
            if constexpr (std::is_void_v<R>)
                here.function();
            else
                here.value = here.function();
        };
        run_root(everywhere || is_first() ? +enter : nullptr, &root);
        if constexpr (!std::is_void_v<R>) {
            if (!everywhere) share(std::as_writable_bytes(std::span<Value, 1>(&root.value, 1)));
            return root.value;
        }
    }
};

// --- from here on: inside of tasks ---------------------------------------------------------------
// A task that throws ends the process. A task may go on in another thread after each call of this
// file: thread_local variables, their addresses and held std::mutexes do not come along.

/// Where a task runs. `anywhere`: on any worker of the job. on(node): on that one.
struct Anywhere {};
inline constexpr Anywhere anywhere{};
struct On {
    NodeId node;
};
inline On on(NodeId node) noexcept { return {node}; }
/// The node that has the page of `place`, a gas::ptr of `space`, as far as this node knows; it asks
/// for what it does not. Source: MGAS-2, section 1.
template <class Space, class Pointer>
On at(Space& space, Pointer place) noexcept {
    std::uint32_t rank = space.owner_hint(place.address());
    if (rank == Space::none && space.prefetch(place, 1)) rank = space.owner_hint(place.address());
    return {NodeId{rank == Space::none ? space.rank() : rank}};
}

/// The node and the worker, 0 to workers - 1, that run the caller at this moment.
NodeId here() noexcept;
std::uint32_t worker() noexcept;
/// Lets another task run. @return false: there was none that can do anything but that
bool yield();

/// Tasks that one task starts and waits for. Not movable; destroyed, it waits.
class Group {
public:
    Group() = default;
    ~Group() { wait(); }

    /// Runs function() as a task, at once on this worker; the caller goes on when it ends, waits,
    /// or another worker of the node takes the caller. The closure is copied or moved; up to 1,024
    /// bytes.
    template <class F>
    void run(F&& function) {
        using Function = std::decay_t<F>;
        static_assert(sizeof(Function) <= detail::local_closure_bytes_max, "capture by reference");
        const detail::Child child = detail::begin_child();
        ::new (child.place) Function(std::forward<F>(function));
        detail::run_child(child, &enter<Function>, join_);
    }
    /// Runs function() later, on any worker of the job; the newest first on this worker, the oldest
    /// on others. The closure and its captures are values: no addresses of this node's memory.
    template <class F>
    void run(Anywhere, const F& function) {
        detail::require_movable<F>();
        detail::offer(detail::type_of<F>, &function, sizeof function, join_);
    }
    /// Runs function() on a node.
    template <class F>
    void run(On where, const F& function) {
        detail::require_movable<F>();
        detail::send(where.node, detail::type_of<F>, &function, sizeof function, join_);
    }
    /// Returns when all of them have ended. Then it may be used again.
    void wait() {
        if (join_.outstanding != 0) detail::wait(join_);
    }

private:
    template <class Function>
    static void enter(void* closure) {
        auto& function = *static_cast<Function*>(closure);
        function();
        function.~Function();
    }
    detail::Join join_;
};

/// The result of one task, perhaps not there yet. Not movable, since the task knows where it lies;
/// destroyed, it waits.
template <class R>
class [[nodiscard]] Future {
public:
    template <class F>
    explicit Future(F&& function) {
        using Function = std::decay_t<F>;
        static_assert(sizeof(Function) <= detail::local_closure_bytes_max, "capture by reference");
        const detail::Child child = detail::begin_child();
        struct Local {
            Function function;
            Future* future;
        };
        ::new (child.place) Local{std::forward<F>(function), this};
        detail::run_child(
            child,
            [](void* closure) {
                auto& local = *static_cast<Local*>(closure);
                if constexpr (std::is_void_v<R>)
                    local.function();
                else
                    ::new (static_cast<void*>(local.future->bytes_)) R(local.function());
                local.~Local();
            },
            join_);
    }
    template <class F>
    Future(Anywhere, const F& function) {
        detail::require_movable<F>();
        join_.result = bytes_;
        detail::offer(detail::type_of<F>, &function, sizeof function, join_);
    }
    template <class F>
    Future(On where, const F& function) {
        detail::require_movable<F>();
        join_.result = bytes_;
        detail::send(where.node, detail::type_of<F>, &function, sizeof function, join_);
    }
    Future(const Future&) = delete;
    Future& operator=(const Future&) = delete;
    ~Future() {
        wait();
        if constexpr (!std::is_void_v<R>) std::launder(reinterpret_cast<Value*>(bytes_))->~Value();
    }

    void wait() {
        if (join_.outstanding != 0) detail::wait(join_);
    }
    /// Waits, and returns the result, which stays here.
    auto& get() requires(!std::is_void_v<R>) {
        wait();
        return *std::launder(reinterpret_cast<Value*>(bytes_));
    }
    void get() requires(std::is_void_v<R>) { wait(); }

private:
    using Value = detail::Stored<R>;
    detail::Join join_;
    /// Results come from other nodes in words.
    alignas(Value) alignas(8) std::byte bytes_[(sizeof(Value) + 7) / 8 * 8];
};

/// As Group::run(), of a single task with a result: `auto child = async([&] { return f(n - 1); });`
template <class F>
auto async(F&& function) {
    return Future<std::invoke_result_t<std::decay_t<F>&>>(std::forward<F>(function));
}
template <class F>
auto async(Anywhere, const F& function) {
    return Future<std::invoke_result_t<const F&>>(anywhere, function);
}
template <class F>
auto async(On where, const F& function) {
    return Future<std::invoke_result_t<const F&>>(where, function);
}

/// Reads `to.size()` bytes of another node's memory; the worker runs other tasks until they are
/// there. `to` may be any memory of this process. `network` is the scheduler's.
/// @return refused: nothing was done, and `*why` says which argument is wrong
net::Ended get(net::Network& network, NodeId source, net::RemoteAddress from,
               std::span<std::byte> to, std::string* why = nullptr);
/// Writes likewise; returns when the bytes are visible at the target.
net::Ended put(net::Network& network, NodeId target, net::RemoteAddress to,
               std::span<const std::byte> from, std::string* why = nullptr);
template <class T>
net::Ended get_value(net::Network& network, NodeId source, net::RemoteAddress from, T& to,
                     std::string* why = nullptr) {
    static_assert(std::is_trivially_copyable_v<T>);
    return get(network, source, from, std::as_writable_bytes(std::span<T, 1>(&to, 1)), why);
}
template <class T>
net::Ended put_value(net::Network& network, NodeId target, net::RemoteAddress to, const T& from,
                     std::string* why = nullptr) {
    static_assert(std::is_trivially_copyable_v<T>);
    return put(network, target, to, std::as_bytes(std::span<const T, 1>(&from, 1)), why);
}

namespace detail {

template <class Last>
void invoke_in(Group&, Last& last) {
    last();
}
template <class First, class... Rest>
requires(sizeof...(Rest) > 0) void invoke_in(Group& group, First& first, Rest&... rest) {
    group.run([&first] { first(); });
    invoke_in(group, rest...);
}

}  // namespace detail

/// Runs all functions, the last by this task itself; returns when all have ended.
template <class... F>
requires(sizeof...(F) > 0) void invoke(F&&... functions) {
    Group group;
    detail::invoke_in(group, functions...);
}

/// Calls body(first, last) for parts of [first, last) of at most `grain` elements, as tasks of this
/// node.
template <class Index, class Body>
void parallel_for(Index first, Index last, std::type_identity_t<Index> grain, const Body& body) {
    Group group;
    while (last - first > (grain < 1 ? 1 : grain)) {
        const Index middle = first + (last - first) / 2;
        // The upper half is this task's own: another worker takes all of it.
        group.run([=, &body] { parallel_for(first, middle, grain, body); });
        first = middle;
    }
    if (first < last) body(first, last);
}
/// The same on all nodes: `body` is copied, and captures values alone.
template <class Index, class Body>
void parallel_for(Anywhere, Index first, Index last, std::type_identity_t<Index> grain,
                  const Body& body) {
    Group group;
    while (last - first > (grain < 1 ? 1 : grain)) {
        const Index middle = first + (last - first) / 2;
        group.run(anywhere, [=] { parallel_for(anywhere, middle, last, grain, body); });
        last = middle;
    }
    if (first < last) body(first, last);
}

}  // namespace hiroba::tasks
