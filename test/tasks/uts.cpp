// SPDX-License-Identifier: BSD-3-Clause
// Role: the unbalanced tree search with its known counts. Usage: tasks_uts t1|t1l|small [workers]
#include "tasks/uts.hpp"

#include <chrono>
#include <cstring>

#include "tasks/job.hpp"

int main(int words, char** word) {
    using namespace tasks_test;
    const char* const name = words > 1 ? word[1] : "small";
    const std::uint32_t workers = words > 2 ? static_cast<std::uint32_t>(std::atoi(word[2])) : 1;
    uts::Tree tree{4, 7, 19};
    std::uint64_t wanted = 0;
    if (std::strcmp(name, "t1") == 0) tree = uts::t1, wanted = 4'130'071;
    if (std::strcmp(name, "t1l") == 0) tree = uts::t1l, wanted = 102'181'082;
    Job job({.workers = workers});
    if (wanted == 0) wanted = uts::count_plainly(tree, uts::root_of(tree));
    job.network->barrier();
    const auto begin = std::chrono::steady_clock::now();
    const std::uint64_t found =
        job.scheduler->run([=] { return uts::count(tree, uts::root_of(tree)); });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    require(found == wanted, "the tree has " + std::to_string(found) + " nodes");
    const tasks::Counts counts = job.scheduler->counts();
    const std::uint64_t stolen = job.network->all_reduce(
        counts.stolen, [](std::uint64_t a, std::uint64_t b) { return a + b; });
    require(wanted < 100'000 || job.network->nodes() == 1 || stolen > 0, "nothing was stolen");
    if (job.is_first())
        std::printf(
            "%s on %u nodes of %u workers over %s: %llu nodes, right; %.3f s, %llu stolen\n", name,
            job.network->nodes(), workers, job.network->provider(),
            static_cast<unsigned long long>(found), took.count(),
            static_cast<unsigned long long>(stolen));
}
