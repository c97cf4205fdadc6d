// SPDX-License-Identifier: BSD-3-Clause
// Role: what the templates of hiroba/tasks.hpp call, and the list of the kinds of tasks that may
// move. It is made before main(), in an order that is the same in all processes of one program.
#include <cstdint>

#include "hiroba/tasks.hpp"
#include "tasks/node.hpp"
#include "tasks/stop.hpp"
#include "tasks/worker.hpp"

namespace hiroba::tasks {
namespace {

constinit detail::TaskType* first_type = nullptr;
constinit std::uint32_t types = 0;

/// The caller's worker. What is not a task ends the process.
Worker& worker_of(const char* call) {
    Worker* const found = Worker::here();
    if (found == nullptr) [[unlikely]]
        stop("%s is called outside of Scheduler::run()", call);
    return *found;
}

Entry entry_of(Node& node, const detail::TaskType& type, std::size_t bytes, detail::Join& join) {
    Entry made;
    made.number = type.number;
    made.hash = type.hash;
    made.home = node.self();
    made.bytes = static_cast<std::uint32_t>(bytes);
    made.join = reinterpret_cast<std::uintptr_t>(&join);
    return made;
}

}  // namespace

std::vector<const detail::TaskType*> task_types() {
    std::vector<const detail::TaskType*> all(types);
    for (const detail::TaskType* each = first_type; each != nullptr; each = each->next)
        all[each->number] = each;
    return all;
}

namespace detail {

TaskType::TaskType(Enter enter_, std::size_t result_bytes_, const char* name) noexcept
    : enter(enter_), result_bytes(result_bytes_), next(first_type), number(types) {
    hash = 0x811c9dc5;  // FNV-1a
    for (const char* each = name; *each != 0; ++each)
        hash = (hash ^ static_cast<unsigned char>(*each)) * 0x01000193;
    first_type = this;
    ++types;
}

Child begin_child() {
    Stack* const stack = worker_of("async() or Group::run()").stacks().take();
    return {stack, stack->room()};
}

void run_child(const Child& child, void (*enter)(void*), Join& join) {
    Worker::run_child(static_cast<Stack*>(child.stack), enter, join);
}

void offer(const TaskType& type, const void* closure, std::size_t bytes, Join& join) {
    Worker& worker = worker_of("async(anywhere, ...)");
    worker.run_or_offer(entry_of(worker.node(), type, bytes, join), closure, join);
}

void send(NodeId to, const TaskType& type, const void* closure, std::size_t bytes, Join& join) {
    Node& node = worker_of("async(on(node), ...)").node();
    ++join.outstanding;
    node.send_task(to, entry_of(node, type, bytes, join), closure);
}

void wait(Join& join) { Worker::wait(join); }

}  // namespace detail

NodeId here() noexcept { return worker_of("here()").node().self(); }

std::uint32_t worker() noexcept { return worker_of("worker()").index(); }

bool yield() {
    const bool others = worker_of("yield()").has_other_work();
    Worker::yield();
    return others;
}

std::unique_ptr<Scheduler> Scheduler::open(net::Network* network, const Options& options,
                                           std::string* why) {
    auto made = std::make_unique<Node>(network, options);
    if (!made->prepare(why)) return nullptr;
    return made;
}

}  // namespace hiroba::tasks
