// SPDX-License-Identifier: BSD-3-Clause
// A load balancer whose tasks move and whose pages follow: cells of a plate cost differently from
// step to step, ranks that are done take cells from the one that has most left, and own() brings
// a cell's pages to whoever works on it. The motive of MGAS-2 (Endo & Taura), section 1.
// Run: hiroba run --spmd -n 2 build/examples/gas_balance [cells] [steps]
//
// A cell's task is one word: how often it was taken. The node that makes it 2k + 1 from 2k by
// compare_swap works on it in step k. Three ways are run: every rank keeps its cells; cells are
// taken and the data stay; cells are taken and the data follow.
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

constexpr Word values_of_cell = 2048;  // four pages
enum class Way { kept, stay, follow };

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

/// How often the cell's values are gone over in a step: heavy cells lie together, and wander.
Word rounds_of(Word cell, Word cells, Word step) {
    const Word heavy = (step / 8 * cells / 5) % cells;
    const Word away = (cell + cells - heavy) % cells;
    return away < cells / 4 ? 24 : 2;
}

void work(std::vector<Word>& values, Word rounds) {
    for (Word round = 0; round < rounds; ++round)
        for (Word& value : values) value = mixed(value + round);
}

struct Outcome {
    double seconds;
    Word bytes;  ///< between ranks
    Word most;   ///< rounds that the busiest rank worked
    Word sum;    ///< of all values at the end
};

class Plate {
public:
    Plate(gas::space& space, Word cells) : space_(space), cells_(cells) {
        values_ = space.allocate_together<Word>(cells * values_of_cell, gas::Distribution::block());
        taken_ = space.allocate_together<Word>(cells, gas::Distribution::on(0).fixed());
        if (!values_ || !taken_) {
            std::fprintf(stderr, "no room for %lu cells: see HIROBA_GAS\n", cells);
            std::exit(1);
        }
        std::vector<Word> first(values_of_cell);
        for (Word cell = begin(space.rank()); cell < begin(space.rank() + 1); ++cell) {
            for (Word i = 0; i < values_of_cell; ++i) first[i] = cell * values_of_cell + i;
            check(space.put(at(cell), std::span<const Word>(first)));
            homes_.push_back(cell);
        }
        space.barrier();
    }
    void free() {
        check(space_.free(values_));
        check(space_.free(taken_));
    }

    void step(Word number, Way way) {
        const std::vector<Word> mine = homes_;
        homes_.clear();
        for (const Word cell : mine) visit(cell, number, way);
        if (way != Way::kept) help(number, way);
        space_.barrier();
    }
    Word sum() {
        std::vector<Word> values(values_of_cell);
        Word sum = 0;
        for (Word cell = 0; cell < cells_; ++cell) {
            check(space_.get(at(cell), std::span<Word>(values)));
            for (const Word value : values) sum += value;
        }
        return sum;
    }
    Word rounds() const { return rounds_; }

private:
    Word begin(std::uint32_t rank) const { return cells_ * rank / space_.ranks(); }
    gas::ptr<Word> at(Word cell) const {
        return values_ + static_cast<std::int64_t>(cell * values_of_cell);
    }
    /// Works on the cell unless somebody has taken it in this step. @return whether it did
    bool visit(Word cell, Word number, Way way) {
        Word found = 0;
        check(space_.compare_swap(taken_ + static_cast<std::int64_t>(cell), number, number + 1,
                                  found));
        if (found != number) return false;
        const Word rounds = rounds_of(cell, cells_, number);
        // Where the data follow, the task does too: the next step begins here.
        if (way == Way::follow) check(space_.own(at(cell), values_of_cell));
        std::vector<Word> values(values_of_cell);
        check(space_.get(at(cell), std::span<Word>(values)));
        work(values, rounds);
        check(space_.put(at(cell), std::span<const Word>(values)));
        rounds_ += rounds;
        homes_.push_back(cell);
        return true;
    }
    /// Goes over all cells from another place than the others do, and takes what is left.
    void help(Word number, Way way) {
        std::vector<Word> seen(cells_);
        while (true) {
            check(space_.get(taken_, std::span<Word>(seen)));
            bool left = false;
            const Word start = mixed(number * 64 + space_.rank() + 1) % cells_;
            for (Word i = 0; i < cells_ && !left; ++i) {
                const Word cell = (start + i) % cells_;
                left = seen[cell] == number && visit(cell, number, way);
            }
            if (!left) return;
        }
    }
    gas::space& space_;
    Word cells_;
    gas::ptr<Word> values_, taken_;
    std::vector<Word> homes_;  ///< cells that this rank begins with
    Word rounds_ = 0;
};

Word gather(gas::space& space, Word mine, Word (*combine)(Word, Word)) {
    Word all = 0;
    for (std::uint32_t rank = 0; rank < space.ranks(); ++rank)
        all = combine(all, space.broadcast(mine, rank));
    return all;
}

Outcome run(gas::space& space, Word cells, Word steps, Way way) {
    Plate plate{space, cells};
    const gas::Counts before = space.counts();
    const auto begun = std::chrono::steady_clock::now();
    for (Word step = 0; step < steps; ++step) plate.step(step, way);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begun;
    const gas::Counts after = space.counts();
    const Word bytes =
        after.bytes_elsewhere - before.bytes_elsewhere + after.bytes_moved - before.bytes_moved;
    const Outcome outcome{
        spent.count(), gather(space, bytes, [](Word a, Word b) { return a + b; }),
        gather(space, plate.rounds(), [](Word a, Word b) { return a > b ? a : b; }), plate.sum()};
    space.barrier();
    plate.free();
    return outcome;
}

/// The same plate on this rank alone.
Word sum_alone(Word cells, Word steps) {
    std::vector<Word> values(values_of_cell);
    Word sum = 0;
    for (Word cell = 0; cell < cells; ++cell) {
        for (Word i = 0; i < values_of_cell; ++i) values[i] = cell * values_of_cell + i;
        for (Word step = 0; step < steps; ++step) work(values, rounds_of(cell, cells, step));
        for (const Word value : values) sum += value;
    }
    return sum;
}

}  // namespace

int main(int argc, char** argv) {
    const Word cells = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64;
    const Word steps = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 40;
    if (cells < 8 || steps == 0) {
        std::fprintf(stderr, "usage: gas_balance [cells, from 8] [steps, from 1]\n");
        return 64;
    }
    std::string why;
    const auto space = gas::space::open(&why);
    if (space == nullptr) {
        std::fprintf(stderr, "%s\n", why.c_str());
        return 78;
    }
    const Outcome kept = run(*space, cells, steps, Way::kept);
    const Outcome stay = run(*space, cells, steps, Way::stay);
    const Outcome follow = run(*space, cells, steps, Way::follow);
    if (space->rank() != 0) return 0;
    const Word wanted = sum_alone(cells, steps);
    std::printf("%lu cells, %lu steps, %u ranks\n", cells, steps, space->ranks());
    const auto say = [](const char* what, const Outcome& of) {
        std::printf("  %-24s %8.3f s, busiest rank %8lu rounds, %10lu bytes between ranks\n", what,
                    of.seconds, of.most, of.bytes);
    };
    say("every rank its own:", kept);
    say("tasks move, data stay:", stay);
    say("tasks move, data follow:", follow);
    const bool right = kept.sum == wanted && stay.sum == wanted && follow.sum == wanted;
    std::printf("  busiest rank %.2f of its own cells: VERIFICATION %s\n",
                static_cast<double>(follow.most) / static_cast<double>(kept.most),
                right ? "SUCCESSFUL" : "FAILED");
    return right ? 0 : 1;
}
