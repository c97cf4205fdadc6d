// SPDX-License-Identifier: BSD-3-Clause
// Role: seeded random data-race-free programs on real nodes, checked against an oracle that every
// node computes by itself. Run: hiroba run --spmd -n N ./spmd_random SEED ROUNDS [flusher]
// With a flusher, a second thread of each node releases and acquires all the time, which is always
// legal.
// Each round, a seeded schedule gives every node bytes it alone writes (false sharing within pages
// is wanted), words it adds to under locks, and words all nodes add to atomically; after the
// barrier every node checks bytes that any node wrote. Prints one line of result per node 0.
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

/// What all nodes use, and what it must hold.
struct Shared {
    hiroba::SharedMemory& memory;
    unsigned me, nodes;
    unsigned char* area;
    std::uint64_t* words;  ///< first those added to under locks, then the atomic ones
    std::vector<unsigned char> area_oracle = std::vector<unsigned char>(area_bytes, 0);
    std::vector<std::uint64_t> words_oracle = std::vector<std::uint64_t>(counters, 0);
};

template <class T>
T* allocate_for_all(hiroba::SharedMemory& memory, std::size_t count) {
    void* const mine = memory.node() == 0 ? memory.allocate(count * sizeof(T)) : nullptr;
    return reinterpret_cast<T*>(memory.broadcast(reinterpret_cast<std::uintptr_t>(mine), 0));
}

void act(Shared& s, std::mt19937_64& random) {
    for (const Write& write : writes_of(random, s.nodes)) {
        if (write.node == s.me) std::memset(s.area + write.at, write.value, write.bytes);
        std::memset(s.area_oracle.data() + write.at, write.value, write.bytes);
    }
    for (unsigned node = 0; node < s.nodes; ++node) {
        const unsigned adds = random() % 6;
        for (unsigned i = 0; i < adds; ++i) {
            const unsigned which = random() % counters;
            std::uint64_t by = random() % 1000;
            s.words_oracle[which] += by;
            const bool flush = random() % 7 == 0;
            if (node != s.me) continue;
            {
                hiroba::Mutex mutex{s.memory, s.words + which};
                const std::lock_guard guard{mutex};
                s.words[which] += by;
            }
            s.memory.atomically(s.words + counters + which, &add_slowly, &by);
            if (flush) s.memory.flush();
        }
    }
}

void check(const Shared& s, unsigned round) {
    for (unsigned i = 0; i < 600; ++i) {
        const std::size_t at = std::mt19937_64(round * 7919 + i * 31 + s.me)() % area_bytes;
        if (s.area[at] != s.area_oracle[at]) {
            fail(s.me, round, "byte", at, s.area[at], s.area_oracle[at]);
        }
    }
    for (unsigned i = 0; i < 2 * counters; ++i) {
        const std::uint64_t right = s.words_oracle[i % counters];
        if (s.words[i] != right) fail(s.me, round, "word", i, s.words[i], right);
    }
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
    Shared shared{*memory, memory->node(), memory->nodes(),
                  allocate_for_all<unsigned char>(*memory, area_bytes),
                  allocate_for_all<std::uint64_t>(*memory, 2 * counters)};
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
    for (unsigned round = 0; round < rounds; ++round) {
        act(shared, random);
        memory->barrier();
        check(shared, round);
        memory->barrier();
    }
    over = true;
    if (flusher.joinable()) flusher.join();
    const auto counts = memory->counts();
    std::printf("node %u of %u: %u rounds of seed %lu right; %lu faults, %lu merges, %lu bytes\n",
                shared.me, shared.nodes, rounds, seed, counts.faults, counts.blocks_merged,
                counts.bytes_fetched);
    return counts.faults == 0 && shared.nodes > 1 ? 1 : 0;
}
