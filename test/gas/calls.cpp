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

std::span<long> vector_of(std::size_t size) {
    static std::vector<long> vector;
    vector.resize(size);
    return vector;
}

/// A list whose elements lie one on each page, found through pointers to members.
struct Node {
    long value;
    ptr<Node> next;
    long tail[3];
};

void list(space& space, ptr<Node> first) {
    constexpr int apart = 100;  // not all on the page of the first
    constexpr int length = 5;
    for (int i = 0; i < length; ++i) {
        const ptr<Node> node = first + i * apart;
        const ptr<Node> next = i + 1 < length ? node + apart : nullptr;
        insist(space.put(node, {i, nullptr, {i, i, i}}), "put of a node");
        insist(space.put(node->*&Node::next, next), "put of a member");
        long old = 0;
        insist(space.fetch_add(node->*&Node::value, 10, old) && old == i, "atomic on a member");
    }
    long sum = 0;
    for (ptr<const Node> at = first; at;) {
        long value = 0, tail[3] = {};
        ptr<Node> next;
        insist(space.get(at->*&Node::value, value), "get of a member");
        insist(space.get((at->*&Node::tail).as<const long>(), tail), "get of an array");
        insist(space.get(at->*&Node::next, next), "get of a pointer");
        sum += value + tail[2];
        at = next;
    }
    insist(sum == 2 * 10 + length * 10, "a list's sum");
    insist(!(ptr<Node>()->*&Node::tail), "a member of nothing is somewhere");
}

/// What share_of() and share_around() say, beside what the ranks say.
template <class T>
void shares(space& space, std::uint64_t count, const Distribution& where) {
    const auto p = space.allocate_together<T>(count, where);
    insist(bool{p}, "allocation");
    insist(space.prefetch(p, count), "prefetch");
    const auto owner = [&](std::uint64_t i) {
        return space.owner_hint((p + static_cast<std::int64_t>(i)).address());
    };
    for (std::uint64_t i = 0; i < count;) {
        const Share share = space.share_around<T>(i, count, where);
        insist(share.first == i && share.count > 0, "shares do not follow each other");
        for (std::uint64_t at = i; at < i + share.count; ++at)
            insist(owner(at) == share.rank, "an element is elsewhere");
        const Share again = space.share_around<T>(i + share.count / 2, count, where);
        insist(again.first == share.first && again.count == share.count, "around the middle");
        i += share.count;
    }
    std::uint64_t sum = 0;
    for (std::uint32_t rank = 0; rank < space.ranks(); ++rank) {
        const Share share = space.share_of<T>(rank, count, where);
        sum += share.count;
        if (share.count == 0) continue;
        insist(owner(share.first) == rank && owner(share.first + share.count - 1) == rank,
               "a share is elsewhere");
        insist(share.first == 0 || owner(share.first - 1) != rank || space.ranks() == 1,
               "a share begins earlier");
    }
    insist(sum == count || where.kind == Distribution::Kind::cyclic, "the sum of the shares");
    insist(space.share_around<T>(count, count, where).count == 0, "a share behind the end");
    insist(space.share_of<T>(space.ranks(), count, where).count == 0, "a share of no rank");
    insist(space.free(p), "free");
}

void all_shares(space& space) {
    struct Odd {
        char bytes[24];
    };
    struct Large {
        char bytes[5000];
    };
    for (const auto& where :
         {Distribution::block(), Distribution::cyclic(), Distribution::cyclic(9000),
          Distribution::on(space.ranks() - 1), Distribution::block().fixed()}) {
        for (const std::uint64_t count : {1, 170, 1000, 4096}) {
            shares<long>(space, count, where);
            shares<Odd>(space, count, where);
        }
        shares<Large>(space, 17, where);
    }
    insist(space.share_of<long>(0, ~std::uint64_t{0}, Distribution::block()).count == 0,
           "a share of what nothing can hold");
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
    const ptr<const long> of_constants[] = {constant, constant + 1};
    std::array<long, 4> four{};
    insist(space.get_list(of_constants, 2, four) && four[3] == 7, "get_list of an array");
    insist(space.put_strided(p, 4, 2, 2, std::span<const long>(four)), "put_strided of a span");
    insist(space.get_strided(p, 4, 2, 2, vector_of(4)), "get_strided to a span");
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
            list(*space, (mine + 512 * page).as<Node>());
        }
    }
    all_shares(*space);
    space->barrier();
    if (space->rank() == 0) std::printf("calls on %u ranks: right\n", space->ranks());
    return 0;
}
