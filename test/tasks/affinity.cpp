// SPDX-License-Identifier: BSD-3-Clause
// Role: tasks run where the page of a global pointer is, at first and after it has moved, and
// accesses by tasks to pages that move meanwhile are right. Usage: tasks_affinity
#include "hiroba/gas.hpp"
#include "hiroba/tasks_gas.hpp"
#include "tasks/job.hpp"

namespace tasks_test {
namespace {

namespace gas = hiroba::gas;
using Place = gas::ptr<std::uint64_t>;

/// Tasks that move find the space of the node they run on here.
gas::space* space_here = nullptr;

struct Found {
    std::uint32_t node;
    bool is_local;
};

Found look(Place place) {
    auto there = tasks::async(tasks::at(*space_here, place), [place] {
        const auto view = space_here->local(place, 1);
        return Found{tasks::here().value, static_cast<bool>(view)};
    });
    return there.get();
}

void follow_pages(Place first, std::uint64_t pages) {
    const auto each = static_cast<std::int64_t>(space_here->page_bytes() / 8);
    const std::uint32_t ranks = space_here->ranks();
    for (std::uint64_t page = 0; page < pages; ++page) {
        const Place place = first + static_cast<std::int64_t>(page) * each;
        const Found found = look(place);
        require(found.is_local, "a task runs where its page is not");
        const std::uint32_t next = (found.node + 1) % ranks;
        auto moved = tasks::async(tasks::on(NodeId{next}),
                                  [place] { return static_cast<bool>(space_here->own(place, 1)); });
        require(moved.get(), "own() failed");
        const Found after = look(place);
        require(after.is_local && after.node == next, "a task does not follow its page");
    }
}

/// Tasks of all nodes add to words whose pages move meanwhile; none is lost.
void add_while_pages_move(Place first, std::uint64_t pages) {
    const auto each = static_cast<std::int64_t>(space_here->page_bytes() / 8);
    tasks::parallel_for(
        tasks::anywhere, std::uint64_t{0}, pages * 16, 1,
        [=](std::uint64_t from, std::uint64_t to) {
            for (std::uint64_t i = from; i < to; ++i) {
                const Place place = first + static_cast<std::int64_t>(i % pages) * each;
                std::uint64_t old = 0;
                if (i % 5 == 0) require(static_cast<bool>(space_here->own(place, 1)), "own()");
                require(static_cast<bool>(space_here->fetch_add(place, 1, old)),
                        "an atomic failed");
                // A word of this element alone, by the calls that let others run.
                const Place mine = place + 1 + static_cast<std::int64_t>(i / pages);
                require(static_cast<bool>(tasks::put(*space_here, mine, i)), "put()");
                std::uint64_t found = 0;
                require(static_cast<bool>(tasks::get(*space_here, mine, found)) && found == i,
                        "a word is not what was put");
            }
        });
    std::uint64_t all = 0;
    for (std::uint64_t page = 0; page < pages; ++page) {
        std::uint64_t count = 0;
        require(static_cast<bool>(
                    tasks::get(*space_here, first + static_cast<std::int64_t>(page) * each, count)),
                "a get failed");
        all += count;
    }
    require(all == pages * 16, "additions are lost: " + std::to_string(all));
}

}  // namespace
}  // namespace tasks_test

int main() {
    using namespace tasks_test;
    Job job({.workers = 2});
    std::string why;
    const auto space = gas::space::open(&why);
    if (space == nullptr) wrong(why);
    space_here = space.get();
    const std::uint64_t pages = 8 * space->ranks();
    const auto first = space->allocate_together<std::uint64_t>(pages * space->page_bytes() / 8,
                                                               gas::Distribution::block());
    job.scheduler->run([=] { follow_pages(first, pages); });
    job.scheduler->run([=] { add_while_pages_move(first, pages); });
    if (job.is_first())
        std::printf("tasks follow %llu pages on %u nodes over %s: right\n",
                    static_cast<unsigned long long>(pages), space->ranks(),
                    job.network->provider());
}
