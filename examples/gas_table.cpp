// SPDX-License-Identifier: BSD-3-Clause
// A hash table that all ranks use at once, on the relocatable global address space.
// Run: hiroba run --spmd -n 2 build/examples/gas_table [groups] [operations of a rank]
//
// Keys belong to groups, whose slots lie together. A rank works on one group at a time, mostly, and
// takes another one in each phase: its slots can stay where they are, or follow it by own(). Slots
// are claimed by compare_swap and counted up by fetch_add, so ranks need no locks.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "hiroba/gas.hpp"

namespace {

namespace gas = hiroba::gas;
using Word = std::uint64_t;

struct Slot {
    Word key;    ///< 0: free
    Word count;  ///< how often the key was added
};
constexpr std::int64_t slots_of_group = 4096;
constexpr Word keys_of_group = 2000;
constexpr int phases = 8;

void check(const gas::Status& status) {
    if (status) return;
    std::fprintf(stderr, "%s\n", status.text().c_str());
    std::exit(1);
}

Word mixed(Word x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    x ^= x >> 33;
    return x;
}

/// Open addressing within a group: a key is in the first slots from its own that are not free.
class Table {
public:
    Table(gas::space& space, Word groups) : space_(space), groups_(groups) {
        slots_ = space.allocate_together<Slot>(
            groups * slots_of_group, gas::Distribution::cyclic(slots_of_group * sizeof(Slot)));
        if (slots_) return;
        std::fprintf(stderr, "no room for %lu groups: see HIROBA_GAS\n", groups);
        std::exit(1);
    }
    void free() { check(space_.free(slots_)); }

    /// Counts `key` of `group` up; inserts it if it is not there.
    void add(Word group, Word key) {
        Word old = 0;
        check(space_.fetch_add(count_of(find(group, key)), 1, old));
    }
    void take(Word group) { check(space_.own(first(group), slots_of_group)); }

    /// The sum of all counts of a group.
    Word sum(Word group) {
        std::vector<Slot> slots(slots_of_group);
        check(space_.get(first(group), std::span<Slot>(slots)));
        Word total = 0;
        for (const Slot& slot : slots) total += slot.count;
        return total;
    }

private:
    gas::ptr<Slot> first(Word group) const {
        return slots_ + static_cast<std::int64_t>(group) * slots_of_group;
    }
    static gas::ptr<Word> key_of(gas::ptr<Slot> slot) { return slot.as<Word>(); }
    static gas::ptr<Word> count_of(gas::ptr<Slot> slot) { return slot.as<Word>() + 1; }

    gas::ptr<Slot> find(Word group, Word key) {
        auto at = static_cast<std::int64_t>(mixed(key) % slots_of_group);
        while (true) {
            const gas::ptr<Slot> slot = first(group) + at;
            Word found = 0;
            check(space_.get(key_of(slot), found));
            if (found == 0) check(space_.compare_swap(key_of(slot), 0, key, found));
            if (found == 0 || found == key) return slot;
            at = (at + 1) % slots_of_group;
        }
    }

    gas::space& space_;
    Word groups_;
    gas::ptr<Slot> slots_;
};

struct Outcome {
    double seconds;
    Word bytes;  ///< between ranks
    bool right;
};

/// One operation in ten goes to any group; the others to the rank's own of this phase.
void work(gas::space& space, Table& table, Word groups, Word operations, bool relocates) {
    Word state = mixed(space.rank() + 1);
    for (int phase = 0; phase < phases; ++phase) {
        const Word mine = (space.rank() + static_cast<Word>(phase) * 3) % groups;
        if (relocates) table.take(mine);
        for (Word i = 0; i < operations / phases; ++i) {
            state = mixed(state + i + 1);
            const Word group = state % 10 == 0 ? mixed(state) % groups : mine;
            table.add(group, group * keys_of_group + mixed(state >> 8) % keys_of_group + 1);
        }
        space.barrier();
    }
}

Word sum_of_ranks(gas::space& space, Word mine) {
    Word sum = 0;
    for (std::uint32_t rank = 0; rank < space.ranks(); ++rank) sum += space.broadcast(mine, rank);
    return sum;
}

Outcome run(gas::space& space, Word groups, Word operations, bool relocates) {
    Table table{space, groups};
    const gas::Counts before = space.counts();
    const auto begun = std::chrono::steady_clock::now();
    work(space, table, groups, operations, relocates);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begun;
    const gas::Counts after = space.counts();
    const Word bytes = sum_of_ranks(space, after.bytes_elsewhere - before.bytes_elsewhere +
                                               after.bytes_moved - before.bytes_moved);
    Word counted = 0;
    for (Word group = 0; group < groups; ++group) counted += table.sum(group);
    const Word wanted = operations / phases * phases * space.ranks();
    table.free();
    return {spent.count(), bytes, counted == wanted};
}

}  // namespace

int main(int argc, char** argv) {
    const Word groups = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 16;
    const Word operations = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 200'000;
    if (groups == 0 || operations < phases) {
        std::fprintf(stderr, "usage: gas_table [groups, from 1] [operations, from %d]\n", phases);
        return 64;
    }
    std::string why;
    const auto space = gas::space::open(&why);
    if (space == nullptr) {
        std::fprintf(stderr, "%s\n", why.c_str());
        return 78;
    }
    const Outcome stays = run(*space, groups, operations, false);
    const Outcome follows = run(*space, groups, operations, true);
    if (space->rank() == 0) {
        std::printf("%lu operations on each of %u ranks, %lu groups\n", operations, space->ranks(),
                    groups);
        std::printf("  data stay:   %8.3f s, %10lu bytes between ranks\n", stays.seconds,
                    stays.bytes);
        std::printf("  data follow: %8.3f s, %10lu bytes between ranks\n", follows.seconds,
                    follows.bytes);
        std::printf("  ratio of bytes %.2f: VERIFICATION %s\n",
                    static_cast<double>(follows.bytes) / static_cast<double>(stays.bytes + 1),
                    stays.right && follows.right ? "SUCCESSFUL" : "FAILED");
    }
    return 0;
}
