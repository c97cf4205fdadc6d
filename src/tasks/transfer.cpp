// SPDX-License-Identifier: BSD-3-Clause
// Role: reads and writes of other nodes' memory for which a task, not its worker, waits: the
// request's callback makes the task ready.
#include <atomic>

#include "hiroba/tasks.hpp"
#include "tasks/node.hpp"
#include "tasks/stop.hpp"
#include "tasks/worker.hpp"

namespace hiroba::tasks {
namespace {

/// One request, on the stack of the task that waits for it.
struct Transfer {
    explicit Transfer(Node& of) : node(of) { join.outstanding = 1; }

    Node& node;
    detail::Join join;
    std::atomic<bool> is_lost{false};

    net::Callback callback() noexcept { return {&Transfer::ended, this, nullptr}; }
    static void ended(void* transfer, net::Outcome outcome) noexcept {
        auto& self = *static_cast<Transfer*>(transfer);
        Node& node = self.node;
        // Relaxed: complete() releases.
        if (outcome == net::Outcome::peer_lost) self.is_lost.store(true, std::memory_order_relaxed);
        if (Continuation* const waiter = complete(self.join)) node.ready().push(waiter);
    }
    template <class Params, class Try>
    net::Ended run(net::Network& network, const Params& params, Try attempt, std::string* why) {
        if (network.insist(attempt) != net::Submission::accepted) {
            join.outstanding = 0;
            if (why != nullptr) *why = network.why_refused(params);
            return net::Ended::refused;
        }
        Worker::wait(join);
        return is_lost.load(std::memory_order_relaxed) ? net::Ended::peer_lost : net::Ended::done;
    }
};

Node& node_of_task(const net::Network& network) {
    Worker* const worker = Worker::here();
    if (worker == nullptr) stop("tasks::get() or put() is called outside of Scheduler::run()");
    if (worker->node().network() != &network)
        stop("tasks::get() or put() of another network than the scheduler's");
    return worker->node();
}

}  // namespace

net::Ended get(net::Network& network, NodeId source, net::RemoteAddress from,
               std::span<std::byte> to, std::string* why) {
    Transfer transfer(node_of_task(network));
    const net::ReadParams params{.source = source,
                                 .from = from,
                                 .to = network.anywhere(to.data()),
                                 .bytes = to.size(),
                                 .on_complete = transfer.callback()};
    return transfer.run(
        network, params, [&] { return network.try_read_async(params); }, why);
}

net::Ended put(net::Network& network, NodeId target, net::RemoteAddress to,
               std::span<const std::byte> from, std::string* why) {
    Transfer transfer(node_of_task(network));
    const net::WriteParams params{.target = target,
                                  .from = network.anywhere(from.data()),
                                  .to = to,
                                  .bytes = from.size(),
                                  .on_complete = transfer.callback()};
    return transfer.run(
        network, params, [&] { return network.try_write_async(params); }, why);
}

namespace detail {

std::atomic<std::uint64_t>& replies_found() noexcept {
    static std::atomic<std::uint64_t> found{0};
    return found;
}

}  // namespace detail
}  // namespace hiroba::tasks
