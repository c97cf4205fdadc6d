// SPDX-License-Identifier: BSD-3-Clause
// Role: the further block of docs/tutorials/gas.md, line by line, in a program whose answers are
// checked.
#include "hiroba/gas.hpp"

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

namespace gas = hiroba::gas;

namespace {
void check(const gas::Status& status) {
    if (status) return;
    std::fprintf(stderr, "%s\n", status.text().c_str());
    std::exit(1);
}
void compute() {}
}  // namespace

// Lines as on the page.
// clang-format off
int main() {
    std::string why;
    const auto space = gas::space::open(&why);
    gas::Status status;
    const auto row = space->allocate_together<long>(4096, gas::Distribution::block(), &status);
    check(status);
    std::vector<long> all(4096);
    std::iota(all.begin(), all.end(), 0);
    if (space->rank() == 0) check(space->put(row, all));
    space->barrier();
    int wrong = 0;
    const std::vector<gas::ptr<long>> places{row + 5, row + 4000, row + 1};

gas::Pending pending;
std::vector<long> left(100), right(100);
check(space->start_get(row, left, pending));
check(space->start_get(row + 2000, right, pending));
compute();
check(space->wait(pending));                    // now both vectors are filled
    for (long i = 0; i < 100; ++i) wrong += left[i] != i || right[i] != 2000 + i;
std::vector<long> found(3), column(6);
check(space->get_list(places, 1, found));       // places: a vector of three gas::ptr<long>, anywhere
    wrong += found[0] != 5 || found[1] != 4000 || found[2] != 1;
check(space->get_strided(row, 512, 1, 6, column));  // a column of a matrix of 512
    for (long i = 0; i < 6; ++i) wrong += column[i] != 512 * i;
    space->barrier();
    const unsigned rank = space->rank();
    constexpr std::uint64_t count = 1000;
    long old = 0;

struct Node {
    long value;
    gas::ptr<Node> next;                                // a list in global memory
};
    const auto nodes = space->allocate_together<Node>(count, gas::Distribution::block());
    const gas::ptr<Node> node = nodes + 100 * (rank + 1);
    check(space->put(node, {7, nodes + 3}));
gas::ptr<Node> next;
check(space->get(node->*&Node::next, next));            // one member
    wrong += next != nodes + 3;
check(space->fetch_add(node->*&Node::value, 1, old));
    wrong += old != 7;
    space->barrier();
const auto share = space->share_of<Node>(rank, count, gas::Distribution::block());
check(space->own(nodes + share.first, share.count));    // what block() has put here
    wrong += space->counts().relocations != 0;
    space->barrier();
    std::puts(wrong == 0 ? "right" : "WRONG");
}
