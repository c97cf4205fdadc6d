// SPDX-License-Identifier: BSD-3-Clause
// A merge sort whose merges are parallel, too, on hiroba/tasks.hpp over hiroba/gas.hpp: the numbers
// lie on all nodes, and tasks that run on any of them get pieces, sort or merge them and put them
// back. Source: Frigo, Leiserson & Randall, The Implementation of the Cilk-5 Multithreaded Language
// (1998), whose example this sort was.
//
//     hiroba run --spmd -n 2 ./tasks_cilksort [count] [pieces]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "hiroba/tasks_gas.hpp"

using namespace hiroba;
using Place = gas::ptr<std::uint32_t>;

namespace {

gas::space* space = nullptr;
std::int64_t grain = 1;  ///< numbers that one task sorts or merges; the same on all nodes

void insist(gas::Status status) {
    if (!status) std::fprintf(stderr, "%s\n", status.text().c_str()), std::abort();
}
std::vector<std::uint32_t> get(Place from, std::int64_t count) {
    std::vector<std::uint32_t> made(static_cast<std::size_t>(count));
    insist(tasks::get(*space, from, gas::Elements<std::uint32_t>(made)));
    return made;
}
void put(Place to, const std::vector<std::uint32_t>& from) {
    insist(tasks::put(*space, to, gas::ConstElements<std::uint32_t>(from)));
}

/// A sorted row of numbers.
struct Row {
    Place first;
    std::int64_t count;

    Row from(std::int64_t begin) const { return {first + begin, count - begin}; }
    Row until(std::int64_t end) const { return {first, end}; }
    std::uint32_t at(std::int64_t i) const {
        std::uint32_t found = 0;
        insist(tasks::get(*space, first + i, found));
        return found;
    }
    /// How many numbers are less than `value`.
    std::int64_t less(std::uint32_t value) const {
        std::int64_t low = 0, high = count;
        while (low < high) {
            const std::int64_t middle = low + (high - low) / 2;
            if (at(middle) < value)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }
};

void merge(Row longer, Row shorter, Place to) {
    if (longer.count < shorter.count) std::swap(longer, shorter);
    if (longer.count + shorter.count <= grain) {
        const auto a = get(longer.first, longer.count), b = get(shorter.first, shorter.count);
        std::vector<std::uint32_t> merged(a.size() + b.size());
        std::merge(a.begin(), a.end(), b.begin(), b.end(), merged.begin());
        return put(to, merged);
    }
    const std::int64_t half = longer.count / 2;
    const std::int64_t other = shorter.less(longer.at(half));
    tasks::Group group;
    group.run(tasks::anywhere,
              [=] { merge(longer.from(half), shorter.from(other), to + half + other); });
    merge(longer.until(half), shorter.until(other), to);
}

/// Sorts `count` numbers at `data` into `room`, or in place.
void sort(Place data, Place room, std::int64_t count, bool into_room) {
    if (count <= grain) {
        auto numbers = get(data, count);
        std::sort(numbers.begin(), numbers.end());
        return put(into_room ? room : data, numbers);
    }
    const std::int64_t half = count / 2;
    {
        tasks::Group group;
        group.run(tasks::anywhere,
                  [=] { sort(data + half, room + half, count - half, !into_room); });
        sort(data, room, half, !into_room);
    }
    const Place from = into_room ? data : room;
    merge({from, half}, {from + half, count - half}, into_room ? room : data);
}

std::uint32_t number(std::int64_t i) {
    auto value = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15;
    value = (value ^ value >> 31) * 0xbf58476d1ce4e5b9;
    return static_cast<std::uint32_t>(value >> 32);
}

struct Seen {
    std::uint64_t sum, out_of_order;
};
Seen look(Place data, std::int64_t count) {
    Seen seen{0, 0};
    std::uint32_t last = 0;
    for (std::int64_t i = 0; i < count; i += grain)
        for (const std::uint32_t each : get(data + i, std::min(grain, count - i))) {
            seen.sum += each;
            seen.out_of_order += each < last ? 1 : 0;
            last = each;
        }
    return seen;
}

}  // namespace

int main(int words, char** word) {
    const std::int64_t count = words > 1 ? std::atoll(word[1]) : 100'000;
    const std::int64_t pieces = words > 2 ? std::atoll(word[2]) : 16;
    grain = (count + pieces - 1) / pieces;
    std::string why;
    const auto network = net::Network::open(&why);
    const auto scheduler = network ? tasks::Scheduler::open(network.get(), {}, &why) : nullptr;
    if (!scheduler || !network->connect(&why)) return std::fprintf(stderr, "%s\n", why.c_str()), 78;
    const auto opened = gas::space::open(&why);
    if (!opened) return std::fprintf(stderr, "%s\n", why.c_str()), 78;
    space = opened.get();

    const auto blocks = gas::Distribution::block();
    const auto data =
        space->allocate_together<std::uint32_t>(static_cast<std::uint64_t>(count), blocks);
    const auto room =
        space->allocate_together<std::uint32_t>(static_cast<std::uint64_t>(count), blocks);
    if (!data || !room) return std::fprintf(stderr, "no room: HIROBA_GAS is too small\n"), 78;
    // Each node fills its part of both.
    const gas::Share mine =
        space->share_of<std::uint32_t>(space->rank(), static_cast<std::uint64_t>(count), blocks);
    if (mine.count > 0) {
        std::vector<std::uint32_t> numbers(mine.count);
        for (std::uint64_t i = 0; i < mine.count; ++i)
            numbers[i] = number(static_cast<std::int64_t>(mine.first + i));
        for (const Place each : {data, room})
            insist(space->put(each + static_cast<std::int64_t>(mine.first),
                              gas::ConstElements<std::uint32_t>(numbers)));
    }
    space->barrier();

    const auto begin = std::chrono::steady_clock::now();
    scheduler->run([=] { sort(data, room, count, false); });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;

    std::uint64_t wanted = 0;
    for (std::int64_t i = 0; i < count; ++i) wanted += number(i);
    const Seen seen = scheduler->run([=] { return look(data, count); });
    const bool is_right = seen.sum == wanted && seen.out_of_order == 0;
    if (space->rank() == 0)
        std::printf("%lld numbers on %u nodes over %s: %.3f s: %s\n", static_cast<long long>(count),
                    network->nodes(), network->provider(), took.count(),
                    is_right ? "VERIFICATION SUCCESSFUL" : "VERIFICATION FAILED");
    return is_right ? 0 : 1;
}
