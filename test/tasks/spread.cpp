// SPDX-License-Identifier: BSD-3-Clause
// Role: tasks on several nodes: results that come from elsewhere are right, all nodes take part,
// groups wait for tasks of all sorts, runs come one after the other.
// Usage: tasks_spread [workers] [rounds] [plain], or WHAT for a mistake that ends it.
#include <signal.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "tasks/job.hpp"

namespace tasks_test {
namespace {

std::uint64_t fib(int n) {
    if (n < 2) return static_cast<std::uint64_t>(n);
    auto child = tasks::async(tasks::anywhere, [n] { return fib(n - 1); });
    const std::uint64_t other = fib(n - 2);
    return child.get() + other;
}

struct Answer {
    std::uint64_t number;
    std::uint32_t node;
    std::uint8_t odd[13];  ///< a size that is no multiple of a word
};

/// Computes for a while, so that others come to steal.
std::uint64_t compute(std::uint64_t rounds) {
    std::uint64_t value = rounds;
    for (std::uint64_t i = 0; i < rounds * 1000; ++i) {
        value = value * 6364136223846793005 + 1442695040888963407;
        asm volatile("" : "+r"(value));
    }
    return value;
}

void visit_each(Job& job, int round) {
    const std::uint32_t nodes = job.network->nodes();
    const std::uint64_t sum = job.scheduler->run([=] {
        std::uint64_t all = 0;
        for (std::uint32_t node = 0; node < nodes; ++node) {
            auto sent = tasks::async(tasks::on(NodeId{node}), [node, round] {
                Answer answer{
                    node * 1000u + static_cast<std::uint32_t>(round), tasks::here().value, {}};
                for (std::size_t i = 0; i < sizeof answer.odd; ++i)
                    answer.odd[i] = static_cast<std::uint8_t>(i + node);
                return answer;
            });
            const Answer& answer = sent.get();
            require(answer.node == node, "a task runs on another node than it was sent to");
            for (std::size_t i = 0; i < sizeof answer.odd; ++i)
                require(answer.odd[i] == static_cast<std::uint8_t>(i + node), "bytes of a result");
            all += answer.number;
        }
        return all;
    });
    std::uint64_t wanted = 0;
    for (std::uint32_t node = 0; node < nodes; ++node)
        wanted += node * 1000u + static_cast<std::uint32_t>(round);
    require(sum == wanted, "the sum of what nodes answer");
}

std::atomic<std::uint64_t> here_ran{0};

/// Every node begins tasks for all; each is run once.
void everywhere(Job& job) {
    constexpr std::uint64_t each = 60;
    const std::uint32_t nodes = job.network->nodes();
    here_ran = 0;
    job.scheduler->run_everywhere([nodes] {
        tasks::Group group;
        for (std::uint64_t i = 0; i < each; ++i) {
            if (i % 3 == 0) group.run([] { here_ran += 1; });
            if (i % 3 == 1) group.run(tasks::anywhere, [] { compute(20), here_ran += 1; });
            if (i % 3 == 2)
                group.run(tasks::on(NodeId{static_cast<std::uint32_t>(i) % nodes}),
                          [] { here_ran += 1; });
        }
    });
    const std::uint64_t all = job.network->all_reduce(
        here_ran.load(), [](std::uint64_t a, std::uint64_t b) { return a + b; });
    require(all == each * nodes, "tasks of all nodes ran " + std::to_string(all) + " times");
}

/// All nodes get something to do.
void spread(Job& job) {
    const std::uint32_t nodes = job.network->nodes();
    const auto before = job.scheduler->counts().tasks;
    job.scheduler->run([=] {
        tasks::parallel_for(tasks::anywhere, 0, 100 * static_cast<int>(nodes), 1,
                            [](int, int) { compute(1500); });
    });
    const auto ran = job.scheduler->counts().tasks - before;
    require(ran > 0, "this node ran no task");
    // Once more, until nothing is left of a slow start.
    if (!job.is_first() && ran > 0)
        require(job.scheduler->counts().stolen + job.scheduler->counts().received > 0,
                "tasks ran that came from nowhere");
}

int run(std::uint32_t workers, int rounds, bool plain) {
    Job job({.workers = workers, .offers = 64});
    for (int round = 0; round < rounds; ++round) {
        visit_each(job, round);
        const std::uint64_t found = job.scheduler->run([] { return fib(15); });
        require(found == 610, "fib(15) is " + std::to_string(found));
        everywhere(job);
    }
    if (!plain) spread(job);
    if (job.is_first())
        std::printf("%d rounds of tasks on %u nodes of %u workers over %s: right\n", rounds,
                    job.network->nodes(), workers, job.network->provider());
    return 0;
}

int mistake(const char* what) {
    tasks::Options options, others;
    if (std::strcmp(what, "workers") == 0) others.workers = 2;
    if (std::strcmp(what, "first_id") == 0) options.first_id = others.first_id = net::ActiveId{62};
    Job job(options, others);
    if (std::strcmp(what, "no_node") == 0)
        job.scheduler->run([] { auto sent = tasks::async(tasks::on(NodeId{7}), [] {}); });
    if (std::strcmp(what, "killed") == 0)
        job.scheduler->run([] {
            auto sent = tasks::async(tasks::on(NodeId{1}), [] { ::raise(SIGKILL); });
            sent.wait();
        });
    job.scheduler->run([] {});
    std::printf("nothing was wrong with %s\n", what);
    return 0;
}

}  // namespace
}  // namespace tasks_test

int main(int count, char** words) {
    if (count == 2 && words[1][0] > '9') return tasks_test::mistake(words[1]);
    return tasks_test::run(count > 1 ? static_cast<std::uint32_t>(std::atoi(words[1])) : 1,
                           count > 2 ? std::atoi(words[2]) : 3, count > 3);
}
