// SPDX-License-Identifier: BSD-3-Clause
// Role: a get that misses a page while it moves joins the move. Rank 0 holds a view of the page, so
// rank 1's own() cannot end, and gives the view back only once rank 2, which has never asked for
// the page, has read it: a get that waited for the move's end would wait for ever. What the new
// owner writes then is what rank 2 reads next. Usage: gas_join, on 3 ranks
#include <unistd.h>

#include <cstdint>
#include <cstdio>

#include "base/clock.hpp"
#include "gas/check.hpp"

namespace {

using namespace hiroba::gas;
using gas_test::insist;
using Word = std::uint64_t;

constexpr std::uint64_t pages = 8;
constexpr std::uint64_t waits_ns_max = 15'000'000'000;
constexpr useconds_t until_it_moves_us = 20'000;

/// Rank 0: holds the page until `reads` is `wanted`.
void hold(space& space, ptr<Word> page, ptr<Word> reads, Word wanted) {
    auto view = space.local(page, 1);
    insist(static_cast<bool>(view), "a view of the own page");
    view.span()[0] = 100 + wanted;
    space.barrier();
    const std::uint64_t until_ns = hiroba::now_ns() + waits_ns_max;
    Word found = 0;
    while (found != wanted) {
        insist(space.get(reads, found), "get of the number of reads");
        insist(hiroba::now_ns() < until_ns, "a get waited for the end of a move");
    }
}

/// Rank 2: reads the page while it moves.
void miss(space& space, ptr<Word> page, ptr<Word> reads, Word wanted) {
    space.barrier();
    ::usleep(until_it_moves_us);
    Word found = 0, before = 0;
    insist(space.get(page, found), "get of a page that moves");
    insist(found == 100 + wanted, "a wrong value of a page that moves");
    insist(space.fetch_add(reads, 1, before), "counting a read");
}

void move(space& space, ptr<Word> page, Word wanted) {
    space.barrier();
    insist(space.own(page, 1), "own");
    insist(space.put(page, 200 + wanted), "put by the new owner");
}

}  // namespace

int main() {
    const auto space = gas_test::join();
    const auto step = static_cast<std::int64_t>(space->page_bytes() / sizeof(Word));
    const auto memory =
        space->allocate_together<Word>(pages * static_cast<Word>(step), Distribution::on(0));
    const auto reads = space->allocate_together<Word>(1, Distribution::on(1));
    insist(memory && reads, "allocation");
    for (Word i = 0; i < pages; ++i) {
        const ptr<Word> page = memory + static_cast<std::int64_t>(i) * step;
        if (space->rank() == 0) hold(*space, page, reads, i + 1);
        if (space->rank() == 1) move(*space, page, i + 1);
        if (space->rank() == 2) miss(*space, page, reads, i + 1);
        space->barrier();
        Word found = 0;
        insist(space->get(page, found), "get of the moved page");
        insist(found == 200 + i + 1, "an old value of a page that has moved");
        space->barrier();
    }
    if (space->rank() == 0) std::printf("%lu moves joined: right\n", pages);
    return 0;
}
