// SPDX-License-Identifier: BSD-3-Clause
// Role: seeded random data-race-free programs on real nodes, checked against an oracle that every
// node computes by itself. Run: hiroba run --spmd -n N ./spmd_random SEED ROUNDS [flusher]
// With a flusher, a second thread of each node releases and acquires all the time, which is always
// legal.
// Each round, a seeded schedule gives every node bytes it alone writes (false sharing within pages
// is wanted), words it adds to under locks, and words everybody adds to atomically; after the
// barrier every node checks bytes anybody wrote. Prints one line of result per node 0.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "hiroba/dsm.hpp"

namespace {

constexpr std::size_t area_bytes = std::size_t{48} << 10;
constexpr unsigned counters = 8;

struct Write {
    unsigned node;
    std::size_t at, bytes;
    unsigned char value;
};

// Disjoint writes of one round, the same on every node.
std::vector<Write> writes_of(std::mt19937_64& random, unsigned nodes) {
    std::vector<Write> writes;
    std::size_t at = random() % 512;
    while (at < area_bytes) {
        const std::size_t longest = random() % 8 == 0 ? 6000 : 40;
        const std::size_t bytes = std::min(1 + random() % longest, area_bytes - at);
        writes.push_back({static_cast<unsigned>(random() % nodes), at, bytes,
                          static_cast<unsigned char>(random())});
        at += bytes + (random() % 3 == 0 ? random() % 4000 : random() % 9);
    }
    return writes;
}

// Others come in between the critical section's beginning and the write, if anything lets them.
void add_slowly(std::uint64_t* word, void* amount) {
    std::this_thread::yield();
    *word += *static_cast<std::uint64_t*>(amount);
}

[[noreturn]] void fail(unsigned node, unsigned round, const char* what, std::size_t at,
                       std::uint64_t saw, std::uint64_t wanted) {
    std::printf("node %u round %u: %s %zu is %lu, should be %lu\n", node, round, what, at, saw,
                wanted);
    std::fflush(stdout);
    std::_Exit(1);
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
    const unsigned rounds = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 50;
    std::string why;
    const auto memory = hiroba::SharedMemory::open(&why);
    if (memory == nullptr) {
        std::fprintf(stderr, "%s\n", why.c_str());
        return 78;
    }
    const unsigned me = memory->node(), nodes = memory->nodes();
    unsigned char* area = nullptr;
    std::uint64_t* words = nullptr;
    if (me == 0) {
        area = static_cast<unsigned char*>(memory->allocate(area_bytes));
        words = static_cast<std::uint64_t*>(memory->allocate(2 * counters * sizeof *words));
    }
    area = reinterpret_cast<unsigned char*>(
        memory->broadcast(reinterpret_cast<std::uintptr_t>(area), 0));
    words = reinterpret_cast<std::uint64_t*>(
        memory->broadcast(reinterpret_cast<std::uintptr_t>(words), 0));

    std::atomic<bool> over{false};
    std::thread flusher;
    if (argc > 3) {
        flusher = std::thread([&] {
            while (!over) {
                memory->flush();
                std::this_thread::yield();
            }
        });
    }
    std::mt19937_64 random(seed);
    std::vector<unsigned char> oracle(area_bytes, 0);
    std::vector<std::uint64_t> locked(counters, 0), atomic(counters, 0);
    for (unsigned round = 0; round < rounds; ++round) {
        for (const Write& write : writes_of(random, nodes)) {
            if (write.node == me) std::memset(area + write.at, write.value, write.bytes);
            std::memset(oracle.data() + write.at, write.value, write.bytes);
        }
        for (unsigned node = 0; node < nodes; ++node) {
            const unsigned adds = random() % 6;
            for (unsigned i = 0; i < adds; ++i) {
                const unsigned which = random() % counters;
                const std::uint64_t by = random() % 1000;
                locked[which] += by;
                atomic[which] += by;
                const bool flush = random() % 7 == 0;
                if (node != me) continue;
                hiroba::Mutex mutex{*memory, words + which};
                {
                    const std::lock_guard guard{mutex};
                    words[which] += by;
                }
                memory->atomically(words + counters + which, &add_slowly,
                                   const_cast<std::uint64_t*>(&by));
                if (flush) memory->flush();
            }
        }
        memory->barrier();
        for (unsigned check = 0; check < 600; ++check) {
            const std::size_t at = std::mt19937_64(round * 7919 + check * 31 + me)() % area_bytes;
            if (area[at] != oracle[at]) fail(me, round, "byte", at, area[at], oracle[at]);
        }
        for (unsigned i = 0; i < counters; ++i) {
            if (words[i] != locked[i]) fail(me, round, "locked word", i, words[i], locked[i]);
            if (words[counters + i] != atomic[i]) {
                fail(me, round, "atomic word", i, words[counters + i], atomic[i]);
            }
        }
        memory->barrier();
    }
    over = true;
    if (flusher.joinable()) flusher.join();
    const auto counts = memory->counts();
    std::printf("node %u of %u: %u rounds of seed %lu right; %lu faults, %lu merges, %lu bytes\n",
                me, nodes, rounds, seed, counts.faults, counts.blocks_merged, counts.bytes_fetched);
    return counts.faults == 0 && nodes > 1 ? 1 : 0;
}
