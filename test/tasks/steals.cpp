// SPDX-License-Identifier: BSD-3-Clause
// Role: what a steal from another node takes: one node offers tasks and runs none of them, the
// other takes one after the other. Usage: tasks_steals [tasks]
#include <atomic>
#include <chrono>

#include "tasks/job.hpp"

namespace tasks_test {
namespace {

/// Where the tasks of the node they run on count.
std::atomic<std::uint64_t>* ran_here = nullptr;

void measure(Job& job, const net::Handle& memory, std::uint64_t count) {
    const NodeId thief{1};
    const auto ran_there = [&] {
        std::uint64_t found = 0;
        require(job.network->read_value(thief, {memory, 0}, found) == net::Ended::done, "a read");
        return found;
    };
    tasks::Group group;
    const auto begin = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < count; ++i)
        group.run(tasks::anywhere, [] { ran_here->fetch_add(1); });
    // Until the last is gone this task does not wait for the group, which would run them here.
    while (ran_there() < count) job.network->pause();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    require(ran_here->load() == 0, "a task ran where it was offered");
    std::printf("%llu steals over %s: %.2f us each\n", static_cast<unsigned long long>(count),
                job.network->provider(), took.count() / static_cast<double>(count));
}

}  // namespace
}  // namespace tasks_test

int main(int words, char** word) {
    using namespace tasks_test;
    const std::uint64_t count = words > 1 ? std::strtoull(word[1], nullptr, 10) : 1000;
    std::string why;
    auto network = net::Network::open(&why);
    if (network == nullptr) wrong(why);
    const auto memory = network->allocate(64, &why);
    if (!memory) wrong(why);
    Job job(std::move(network), {});
    require(job.network->nodes() == 2 && count <= tasks::Options{}.offers, "two nodes, few tasks");
    ran_here = reinterpret_cast<std::atomic<std::uint64_t>*>(job.network->local(*memory).data());
    job.network->barrier();
    job.scheduler->run([&] { measure(job, *memory, count); });
    if (!job.is_first())
        require(job.scheduler->counts().stolen == count, "not all tasks were stolen");
}
