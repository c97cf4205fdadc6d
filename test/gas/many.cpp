// SPDX-License-Identifier: BSD-3-Clause
// Role: more ranks than a word has bits: all share pages, which move to ranks at the ends of words
// of sharers; every rank's next access finds them there. Usage: gas_many [rounds]
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "gas/check.hpp"

namespace {

using namespace hiroba::gas;
using gas_test::insist;
using Word = std::uint64_t;

constexpr std::uint64_t pages = 3;

/// Every rank reads what the last mover stored, and adds one to the counter behind it.
void look(space& space, ptr<Word> memory, Word wanted) {
    for (std::uint64_t page = 0; page < pages; ++page) {
        const ptr<Word> at =
            memory + static_cast<std::int64_t>(page * (space.page_bytes() / sizeof(Word)));
        Word found = 0, before = 0;
        insist(space.get(at, found), "get");
        insist(found == wanted, "a get found what was there before the page moved");
        insist(space.fetch_add(at + 1, 1, before), "fetch_add");
    }
}

/// The mover has what every rank has added, and stores anew.
void move(space& space, ptr<Word> memory, Word added, Word next) {
    const std::uint64_t words = space.page_bytes() / sizeof(Word);
    insist(space.own(memory, pages * words), "own");
    const auto view = space.local(memory, pages * words);
    insist(static_cast<bool>(view), "what was just owned is not here");
    for (std::uint64_t page = 0; page < pages; ++page) {
        insist(view[page * words + 1] == added, "an addition is missing");
        view[page * words] = next;
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t rounds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
    const auto space = gas_test::join();
    const std::uint32_t ranks = space->ranks();
    insist(ranks > 64, "wanted more than 64 ranks");
    const auto memory = space->allocate_together<Word>(pages * space->page_bytes() / sizeof(Word),
                                                       Distribution::cyclic());
    insist(static_cast<bool>(memory), "allocation");
    Word stored = 0, added = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        for (const std::uint32_t mover : {0u, 63u, 64u, ranks - 1}) {
            look(*space, memory, stored);
            added += ranks;
            space->barrier();
            if (space->rank() == mover) move(*space, memory, added, stored + 1);
            ++stored;
            space->barrier();
        }
    }
    look(*space, memory, stored);
    space->barrier();
    if (space->rank() == 0) std::printf("%lu moves among %u ranks: right\n", stored, ranks);
    return 0;
}
