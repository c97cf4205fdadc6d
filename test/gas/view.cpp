// SPDX-License-Identifier: BSD-3-Clause
// Role: cached views: what was read is not fetched again, what others wrote is seen after
// refresh(), wherever the pages have moved; ranges that are wrong are refused. Usage: gas_view
#include <cstdint>
#include <cstdio>
#include <vector>

#include "base/random.hpp"
#include "gas/check.hpp"
#include "hiroba/gas_view.hpp"

namespace {

using namespace hiroba::gas;
using gas_test::insist;

/// 24 bytes: elements cross pages.
struct Triple {
    std::uint64_t a, b, c;
};
std::uint64_t number_of(const Triple& it) { return it.a; }
std::uint64_t number_of(std::uint64_t it) { return it; }
void set(Triple& it, std::uint64_t n) { it = {n, n + 1, n + 2}; }
void set(std::uint64_t& it, std::uint64_t n) { it = n; }
bool is_whole(const Triple& it) { return it.b == it.a + 1 && it.c == it.a + 2; }
bool is_whole(std::uint64_t) { return true; }

/// Each rank stores its share of the elements, after `round`.
template <class T>
void store(space& space, ptr<T> memory, std::size_t count, std::uint64_t round) {
    for (std::size_t i = space.rank(); i < count; i += space.ranks()) {
        T value;
        set(value, round * 1'000'000 + i);
        insist(space.put(memory + static_cast<std::int64_t>(i), value), "put");
    }
    space.barrier();
}

template <class T>
void look(CachedView<T>& view, std::uint64_t round, hiroba::Random& random) {
    for (int i = 0; i < 400; ++i) {
        const std::size_t at = random.below(view.size());
        T value{};
        insist(view.read(at, value), "read");
        insist(number_of(value) == round * 1'000'000 + at && is_whole(value), "a wrong value");
    }
    const std::size_t from = random.below(view.size());
    const auto some = view.range(from, view.size() - from);
    insist(some.size() == view.size() - from, "a range that is not whole");
    for (std::size_t i = 0; i < some.size(); ++i) {
        insist(number_of(some[i]) == round * 1'000'000 + from + i, "a wrong value in a range");
    }
}

template <class T>
void rounds(space& space, std::size_t count, std::int64_t before) {
    const auto memory = space.allocate_together<T>(count + 8, Distribution::cyclic());
    insist(static_cast<bool>(memory), "allocation");
    const ptr<T> first = memory + before;
    hiroba::Random random{space.rank() + 5};
    CachedView<T> view{space, first, count};
    std::uint64_t fetched = 0;
    for (std::uint64_t round = 1; round <= 3; ++round) {
        store(space, first, count, round);
        if (round > 1) {
            // Until refresh() what was read stays.
            T old{};
            insist(view.read(0, old), "read");
            insist(number_of(old) == (round - 1) * 1'000'000, "seen before refresh()");
        }
        view.refresh();
        look(view, round, random);
        insist(view.range(0, count).size() == count, "all of it");
        const Counts mid = space.counts();
        fetched = view.fetched();
        look(view, round, random);
        const Counts after = space.counts();
        insist(view.fetched() == fetched, "a block was fetched twice");
        insist(after.bytes_elsewhere == mid.bytes_elsewhere && after.bytes_here == mid.bytes_here,
               "global memory was accessed for what is cached");
        space.barrier();
        if (space.rank() == round % space.ranks()) {
            insist(space.own(memory, count + 8), "own");
        }
        space.barrier();
    }
    Status why;
    T value{};
    insist(view.read(count, value).fault == Fault::past_end, "a read behind the end");
    insist(view.range(1, count, &why).empty() && why.fault == Fault::past_end, "a long range");
    insist(view.range(count, 0, &why).empty() && why, "an empty range");
    space.barrier();
    insist(space.free(memory), "free");
    view.refresh();
    insist(view.read(0, value).fault == Fault::not_allocated, "a read of freed memory");
    CachedView<T> nothing{space, first, 0};
    insist(nothing.read(0, value).fault == Fault::past_end, "a read of nothing");
    space.barrier();
}

}  // namespace

int main() {
    const auto space = gas_test::join();
    rounds<std::uint64_t>(*space, 3000, 0);
    rounds<std::uint64_t>(*space, 3000, 5);
    rounds<Triple>(*space, 1500, 2);
    if (space->rank() == 0) std::printf("views on %u ranks: right\n", space->ranks());
    return 0;
}
