// SPDX-License-Identifier: BSD-3-Clause
// Role: calls as users write them first: with vectors, arrays, spans of any kind, literals, and
// pointers to const. Usage: gas_calls
#include <array>
#include <vector>

#include "gas/check.hpp"

namespace {

using namespace hiroba::gas;
using gas_test::insist;

void ranges(space& space, ptr<long> p) {
    std::vector<long> vector{1, 2, 3, 4};
    long array[4] = {};
    std::array<long, 4> standard{};
    const std::vector<long> constant{5, 6, 7, 8};
    insist(space.put(p, vector), "put of a vector");
    insist(space.get(p, array) && array[3] == 4, "get to an array");
    insist(space.put(p, std::span(constant)), "put of a span of const");
    insist(space.get(p, std::span(array)) && array[0] == 5, "get to a span of an array");
    insist(space.put(p, std::span(vector)), "put of a span");
    insist(space.get(p, standard) && standard[1] == 2, "get to a std::array");
    insist(space.put(p, constant), "put of a constant vector");
    insist(space.get(p, vector) && vector[2] == 7, "get to a vector");
    insist(space.get(p, std::span<long>(vector)), "get to a span");
    insist(space.put(p, array), "put of an array");
    insist(space.put(p, 9) && space.get(p, array[1]) && array[1] == 9, "put of a literal");
    Pending pending;
    insist(space.start_put(p, std::span(vector), pending), "start of a put of a span");
    insist(space.wait(pending), "wait");
    insist(space.start_put(p, vector, pending), "start of a put");
    insist(space.wait(pending), "wait");
    insist(space.start_get(p, std::span(array), pending), "start of a get");
    insist(space.wait(pending) && array[3] == 8, "wait");
}

void others(space& space, ptr<long> p) {
    const ptr<const long> constant = p;
    long one = 0, old = 0, pair[2] = {};
    insist(space.get(constant, one) && one == 5, "get from a pointer to const");
    insist(space.get(constant, pair) && pair[1] == 6, "get from a pointer to const");
    std::vector<ptr<long>> places{p + 1, p + 3};
    insist(space.get_list(std::span(places), 1, pair) && pair[1] == 8, "get_list of a span");
    insist(space.get_list(places, 1, pair) && pair[0] == 6, "get_list of a vector");
    insist(space.put_list(places, 1, pair), "put_list of a vector");
    insist(space.get_strided(constant, 2, 1, 2, pair) && pair[1] == 7, "get_strided");
    insist(space.put_strided(p, 2, 1, 2, pair), "put_strided");
    insist(space.atomic(Operation::add, p, 1, 0, old) && old == 5, "atomic with literals");
    insist(space.compare_swap(p, 6, 5, old) && old == 6, "compare_swap with literals");
    insist(p != constant + 1 && p == constant, "comparison with a pointer to const");
}

}  // namespace

int main() {
    const auto space = gas_test::join();
    const auto mine = space->allocate_together<long>(4096, Distribution::cyclic());
    // Other ranks' pages and own ones.
    for (unsigned page = 0; page < 2; ++page) {
        if (space->rank() == 0) {
            ranges(*space, mine + 512 * page);
            others(*space, mine + 512 * page);
        }
    }
    space->barrier();
    if (space->rank() == 0) std::printf("calls on %u ranks: right\n", space->ranks());
    return 0;
}
