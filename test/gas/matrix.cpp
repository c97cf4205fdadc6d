// SPDX-License-Identifier: BSD-3-Clause
// Role: every kind of access, of every size and alignment, between all ranks, before and after the
// pages have moved. Usage: gas_matrix [largest size]
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gas/check.hpp"

namespace {

using namespace hiroba::gas;
using gas_test::insist;
using Byte = unsigned char;

Byte pattern(std::uint64_t at, std::uint32_t round) {
    return static_cast<Byte>(at * 31 + at / 251 + round * 7 + 1);
}

/// Writes and reads back [offset, offset + bytes) with a frame of other bytes around it.
void there_and_back(space& space, ptr<Byte> memory, std::uint64_t offset, std::size_t bytes,
                    std::uint32_t round) {
    std::vector<Byte> out(bytes + 2), in(bytes + 2, 0xee);
    insist(space.put(memory + static_cast<std::int64_t>(offset) - 1,
                     std::span<const Byte>(out.data(), bytes + 2)),
           "the frame");
    for (std::size_t i = 0; i < bytes; ++i) out[i + 1] = pattern(offset + i, round);
    insist(space.put(memory + static_cast<std::int64_t>(offset),
                     std::span<const Byte>(out.data() + 1, bytes)),
           "put");
    insist(space.get(memory + static_cast<std::int64_t>(offset) - 1, std::span<Byte>(in)), "get");
    insist(in == out, "what was put is not what is got");
}

void sizes(space& space, ptr<Byte> memory, std::uint64_t bytes_max, std::uint32_t round) {
    const std::uint64_t page = space.page_bytes();
    for (std::size_t bytes = 1; bytes <= bytes_max; bytes = bytes < 20 ? bytes + 1 : bytes * 3) {
        for (const std::uint64_t at : {page - 9, page - 3, page, page + 1, 2 * page - 8}) {
            there_and_back(space, memory, at, bytes, round);
        }
    }
}

void strides(space& space, ptr<Byte> memory) {
    const auto matrix = memory.as<std::uint32_t>();
    constexpr std::size_t rows = 40, columns = 100, width = 3;
    std::vector<std::uint32_t> out(rows * width), in(rows * width);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint32_t>(i * i + 1);
    insist(space.put_strided(matrix + 5, columns, width, rows, out), "put_strided");
    insist(space.get_strided(matrix + 5, columns, width, rows, in), "get_strided");
    insist(in == out, "strided puts and gets differ");
    for (std::size_t row = 0; row < rows; ++row) {
        std::uint32_t one = 0;
        insist(space.get(matrix + static_cast<std::int64_t>(5 + row * columns + 1), one), "get");
        insist(one == out[row * width + 1], "a strided put went elsewhere");
    }
}

/// Places in no order, of all owners, some across two pages.
void lists(space& space, ptr<Byte> memory) {
    const auto words = memory.as<std::uint32_t>();
    const auto page_words = static_cast<std::int64_t>(space.page_bytes() / sizeof(std::uint32_t));
    constexpr std::size_t length = 3, count = 60;
    std::vector<ptr<std::uint32_t>> places;
    std::vector<std::uint32_t> out(count * length), in(count * length);
    for (std::size_t i = 0; i < count; ++i) {
        const auto page = static_cast<std::int64_t>(i * 7 % 3);
        // The last of each page crosses into the next.
        const auto slot = static_cast<std::int64_t>(i * 11 % 20);
        const auto inside = 8 + 4 * (slot + 20 * static_cast<std::int64_t>(i / 3 % 2));
        places.push_back(words + page * page_words + (slot == 19 ? page_words - 2 : inside));
        for (std::size_t k = 0; k < length; ++k) {
            out[i * length + k] = static_cast<std::uint32_t>(i * 31 + k + space.rank());
        }
    }
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    std::reverse(places.begin(), places.end());
    out.resize(places.size() * length);
    in.resize(out.size());
    const std::span<const ptr<std::uint32_t>> all(places);
    insist(space.put_list(all, length, out), "put_list");
    insist(space.get_list(all, length, in), "get_list");
    insist(in == out, "puts and gets of lists differ");
    for (std::size_t i = 0; i < places.size(); ++i) {
        std::uint32_t one = 0;
        insist(space.get(places[i] + 2, one), "get");
        insist(one == out[i * length + 2], "a put of a list went elsewhere");
    }
}

void asynchronous(space& space, ptr<Byte> memory) {
    const auto words = memory.as<std::uint64_t>();
    constexpr std::int64_t count = 3000;
    std::vector<std::uint64_t> out(count), in(count);
    Pending puts, gets;
    for (std::int64_t i = 0; i < count; ++i) {
        const auto index = static_cast<std::size_t>(i);
        out[index] = static_cast<std::uint64_t>(i) * 977 + space.rank();
        insist(space.start_put(words + i, std::span<const std::uint64_t>(&out[index], 1), puts),
               "start_put");
    }
    insist(space.wait(puts), "wait for puts");
    for (std::int64_t i = 0; i < count; ++i) {
        insist(space.start_get(words + i,
                               std::span<std::uint64_t>(&in[static_cast<std::size_t>(i)], 1), gets),
               "start_get");
    }
    insist(space.wait(gets), "wait for gets");
    insist(in == out, "asynchronous puts and gets differ");
}

/// All ranks count in all segments; the sums are exact.
template <class Word>
void atomics(space& space, ptr<Word> counters, std::int64_t count) {
    constexpr int rounds = 20;
    space.barrier();
    for (int round = 0; round < rounds; ++round) {
        for (std::int64_t i = 0; i < count; ++i) {
            Word old = 0;
            insist(space.fetch_add(counters + i * 701, Word{1}, old), "fetch_add");
            if (round % 5 == static_cast<int>(space.rank()) && i % 3 == 0) {
                insist(space.own(counters + i * 701, 1), "own");
            }
        }
    }
    space.barrier();
    for (std::int64_t i = 0; i < count; ++i) {
        Word sum = 0, old = 0;
        insist(space.get(counters + i * 701, sum), "get");
        insist(sum == static_cast<Word>(rounds * static_cast<int>(space.ranks())),
               "a sum is not exact");
        insist(space.compare_swap(counters + i * 701, Word{1}, Word{5}, old), "compare_swap");
        insist(old == sum, "compare_swap found something else");
    }
    space.barrier();
    if (space.rank() == 0) {
        for (std::int64_t i = 0; i < count; ++i) {
            Word old = 0;
            insist(space.swap(counters + i * 701, Word{0}, old), "swap");
            insist(
                space.atomic(Operation::bit_or, counters + i * 701, Word{6}, Word{0}, old) &&
                    space.atomic(Operation::bit_and, counters + i * 701, Word{3}, Word{0}, old) &&
                    old == 6 &&
                    space.atomic(Operation::bit_xor, counters + i * 701, Word{7}, Word{0}, old) &&
                    old == 2 && space.swap(counters + i * 701, Word{0}, old) && old == 5,
                "bit operations");
        }
    }
    space.barrier();
}

void views(space& space, ptr<Byte> memory, std::uint64_t bytes) {
    const auto words = memory.as<std::uint64_t>();
    const std::uint64_t count = bytes / 8 / space.ranks();
    const auto mine = words + static_cast<std::int64_t>(count * space.rank());
    insist(space.own(mine, count), "own of a share");
    space.barrier();  // pages at the edges of shares belong to one of two
    if (auto view = space.local(mine, count)) {
        for (std::size_t i = 0; i < count; ++i) view[i] = i ^ space.rank();
    } else {
        for (std::uint64_t i = 0; i < count; ++i) {
            insist(space.put(mine + static_cast<std::int64_t>(i), i ^ space.rank()), "put");
        }
    }
    space.barrier();
    const std::uint32_t next = (space.rank() + 1) % space.ranks();
    const auto theirs = words + static_cast<std::int64_t>(count * next);
    std::vector<std::uint64_t> seen(count);
    insist(space.get(theirs, std::span<std::uint64_t>(seen)), "get of a share");
    for (std::uint64_t i = 0; i < count; ++i) insist(seen[i] == (i ^ next), "a view's bytes");
    space.barrier();
}

void one_distribution(space& space, const Distribution& where, std::uint64_t bytes_max) {
    const std::uint64_t bytes = bytes_max + 8 * space.page_bytes() + 80'000;
    const auto memory = space.allocate_together<Byte>(bytes, where);
    insist(static_cast<bool>(memory), "allocation");
    std::vector<Byte> all(bytes, 1);
    insist(space.get(memory, std::span<Byte>(all)), "get of everything");
    for (const Byte byte : all) insist(byte == 0, "an allocation is not zeroed");
    space.barrier();
    for (std::uint32_t turn = 0; turn < space.ranks(); ++turn) {
        if (turn == space.rank()) {
            sizes(space, memory, bytes_max, turn);
            insist(space.own(memory, bytes / 2), "own of half");
            sizes(space, memory, bytes_max, turn + 50);
            strides(space, memory);
            lists(space, memory);
            asynchronous(space, memory);
            std::vector<Byte> zeros(bytes);
            insist(space.put(memory, std::span<const Byte>(zeros)), "zeros");
        }
        space.barrier();
    }
    atomics<std::uint64_t>(space, memory.as<std::uint64_t>(), 12);
    atomics<std::int32_t>(space, memory.as<std::int32_t>() + 1, 12);
    views(space, memory, bytes);
    insist(space.free(memory), "free");
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t bytes_max = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20'000;
    const auto space = gas_test::join();
    one_distribution(*space, Distribution::block(), bytes_max);
    one_distribution(*space, Distribution::cyclic(), bytes_max);
    one_distribution(*space, Distribution::cyclic(3 * space->page_bytes()), bytes_max);
    one_distribution(*space, Distribution::on(space->ranks() - 1), bytes_max);

    // One rank's own allocation, which the others learn of by its address alone.
    ptr<std::uint64_t> own;
    if (space->rank() == space->ranks() - 1) {
        own = space->allocate<std::uint64_t>(5000, Distribution::cyclic());
        insist(static_cast<bool>(own), "allocation by one rank");
    }
    own = ptr<std::uint64_t>::at(space->broadcast(own.address(), space->ranks() - 1));
    std::uint64_t old = 0;
    for (std::int64_t i = 0; i < 5000; i += 499) {
        insist(space->fetch_add(own + i, 1, old), "an atomic there");
    }
    space->barrier();
    insist(space->get(own + 499, old) && old == space->ranks(), "its sum");
    space->barrier();
    const Counts counts = space->counts();
    const std::uint32_t rank = space->rank(), ranks = space->ranks();
    if (rank == ranks - 1) insist(space->free(own), "free by one rank");
    space->barrier();
    insist(space->get(own, old).fault == Fault::not_allocated, "freed memory is refused");
    if (rank == 0) {
        std::printf(
            "matrix to %lu bytes on %u ranks: right (%lu hits, %lu misses, %lu pages "
            "moved here)\n",
            bytes_max, ranks, counts.hits, counts.misses, counts.relocations);
    }
    return 0;
}
