// SPDX-License-Identifier: BSD-3-Clause
// Role: litmus tests of release and acquire on real nodes: small patterns of which one outcome is
// forbidden, tried many times with seeded delays and with words in one line, one block and apart.
// Usage: hiroba run --spmd -n N litmus SEED ROUNDS [PATTERN]. With PATTERN, only those whose names
// begin with it. Patterns that need more nodes than there are are left out, and the output says so.
// Status 1: a forbidden outcome, with the round that had it.
//
// A round g writes the number g, so nothing has to be set back: a word "is set" when it holds g.
// Readers that wait for a flag wait until they see it, so no round is without its question.
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

#include "hiroba/dsm.hpp"

namespace {

using Word = volatile std::uint64_t;

std::uint64_t ns_of(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(time.tv_nsec);
}

std::uint64_t now_ns() { return ns_of(CLOCK_MONOTONIC); }

/// One node's view of a run: the shared words of a round, and delays.
class Litmus {
public:
    Litmus(hiroba::SharedMemory& memory, std::uint64_t seed)
        : memory_(memory), delays_(seed * 64 + memory.node()), places_(seed) {
        if (memory.node() == 0) area_ = static_cast<char*>(memory.allocate(area_bytes, 65536));
        area_ =
            reinterpret_cast<char*>(memory.broadcast(reinterpret_cast<std::uintptr_t>(area_), 0));
    }

    unsigned node() const { return memory_.node(); }
    unsigned nodes() const { return memory_.nodes(); }
    hiroba::SharedMemory& memory() { return memory_; }

    /// Word `index`, 0 to 7, of this round: a line, a block or more apart. All nodes agree.
    Word& word(unsigned index) {
        return *reinterpret_cast<Word*>(area_ + base_ + index * distance_);
    }
    hiroba::AtomicWord atomic(unsigned index) {
        return {memory_, const_cast<std::uint64_t*>(&word(index))};
    }
    /// Between 0 and about 4 microseconds, sometimes 50: long against a miss.
    void delay() {
        const std::uint64_t draw = delays_();
        for (std::uint64_t i = draw % 16 == 0 ? draw % 50'000 : draw % 4'000; i > 0;
             i -= i < 4 ? i : 4)
            __builtin_ia32_pause();
    }
    /// Tries until `is_set` says so; a flag that does not come in 20 seconds is a failure.
    template <class IsSet>
    void await(IsSet&& is_set, const char* pattern, std::uint64_t round) {
        constexpr std::uint64_t patience_ns = 20'000'000'000;
        const std::uint64_t begun_ns = now_ns();
        while (!is_set()) {
            if (now_ns() - begun_ns < patience_ns) continue;
            std::fprintf(stderr, "litmus %s: node %u of %u never saw the flag of round %lu\n",
                         pattern, node(), nodes(), round);
            std::_Exit(1);
        }
    }
    template <class Body>
    void locked(std::uint64_t key, Body&& body) {
        memory_.lock(key);
        body();
        memory_.unlock(key);
    }
    void forbid(bool outcome, const char* pattern, std::uint64_t round) {
        if (!outcome) return;
        std::fprintf(stderr, "litmus %s: node %u of %u saw the forbidden outcome in round %lu\n",
                     pattern, node(), nodes(), round);
        std::_Exit(1);  // which ends the job
    }

    template <class Pattern>
    void rounds(const char* name, unsigned nodes_min, std::uint64_t count, Pattern&& pattern) {
        if (nodes() < nodes_min) {
            if (node() == 0) std::printf("litmus %s: left out, needs %u nodes\n", name, nodes_min);
            return;
        }
        for (std::uint64_t i = 0; i < count; ++i) {
            ++round_;
            constexpr std::size_t distances[] = {8, 64, 4096, 16384, 65536};
            distance_ = distances[places_() % 5];
            base_ = places_() % 16 * 4096;
            memory_.barrier();
            pattern(round_);
        }
        memory_.barrier();
        if (node() == 0) std::printf("litmus %s: %lu rounds\n", name, count);
    }

private:
    static constexpr std::size_t area_bytes = std::size_t{1} << 20;
    hiroba::SharedMemory& memory_;
    std::mt19937_64 delays_, places_;
    char* area_ = nullptr;
    std::size_t base_ = 0, distance_ = 8;
    std::uint64_t round_ = 0;
};

/// Takes the lock again and again until word `index` is set under it.
void await_under(Litmus& t, std::uint64_t key, unsigned index, std::uint64_t g) {
    const auto is_set = [&] {
        bool seen = false;
        t.locked(key, [&] { seen = t.word(index) == g; });
        t.delay();
        return seen;
    };
    t.await(is_set, "flag under a lock", g);
}

/// Data written before a lock is handed over is there for the thread that takes it.
void message_passing_by_lock(Litmus& t, std::uint64_t g) {
    constexpr std::uint64_t key = 100;
    t.delay();
    if (t.node() == 0) {
        t.word(0) = g;
        t.locked(key, [&] { t.word(1) = g; });
        return;
    }
    await_under(t, key, 1, g);
    t.forbid(t.word(0) != g, "message passing by lock", g);
}

/// Each node reads, behind a barrier, what the next one wrote before it.
void message_passing_by_barrier(Litmus& t, std::uint64_t g) {
    t.delay();
    t.word(t.node()) = g;
    t.memory().barrier();
    t.delay();
    const unsigned other = (t.node() + 1) % t.nodes();
    t.forbid(t.word(other) != g, "message passing by barrier", g);
}

/// Atomics are sequentially consistent among themselves: not both may miss the other's.
void store_buffering_by_atomics(Litmus& t, std::uint64_t g) {
    if (t.node() < 2) {
        t.delay();
        t.atomic(t.node()).exchange(g);
        const std::uint64_t seen = t.atomic(1 - t.node()).load();
        t.atomic(2 + t.node()).exchange(seen == g ? g : 0);
    }
    t.memory().barrier();
    t.forbid(t.word(2) != g && t.word(3) != g, "store buffering by atomics", g);
}

/// The same by writes and reads under locks, one lock for each word.
void store_buffering_by_locks(Litmus& t, std::uint64_t g) {
    if (t.node() < 2) {
        const unsigned mine = t.node(), theirs = 1 - mine;
        t.delay();
        t.locked(200 + mine, [&] { t.word(mine) = g; });
        bool seen = false;
        t.locked(200 + theirs, [&] { seen = t.word(theirs) == g; });
        t.word(2 + mine) = seen ? g : 0;
    }
    t.memory().barrier();
    t.forbid(t.word(2) != g && t.word(3) != g, "store buffering by locks", g);
}

/// Two readers must not see two independent writes in opposite orders.
void independent_reads_by_locks(Litmus& t, std::uint64_t g) {
    t.delay();
    if (t.node() < 2) {
        t.locked(300 + t.node(), [&] { t.word(t.node()) = g; });
    } else if (t.node() < 4) {
        const unsigned first = t.node() - 2, second = 1 - first;
        bool saw_first = false, saw_second = false;
        t.locked(300 + first, [&] { saw_first = t.word(first) == g; });
        t.locked(300 + second, [&] { saw_second = t.word(second) == g; });
        t.word(2 + t.node()) = saw_first && !saw_second ? g : 0;
    }
    t.memory().barrier();
    t.forbid(t.word(4) == g && t.word(5) == g, "independent reads by locks", g);
}

/// What node 0 did before its hand-over to node 1 is there for node 2, which met only node 1.
void transitivity(Litmus& t, std::uint64_t g) {
    t.delay();
    if (t.node() == 0) {
        t.word(0) = g;
        t.locked(400, [&] { t.word(1) = g; });
    } else if (t.node() == 1) {
        await_under(t, 400, 1, g);
        t.locked(401, [&] { t.word(2) = g; });
    } else {
        await_under(t, 401, 2, g);
        t.forbid(t.word(0) != g, "transitivity over a third node", g);
    }
}

/// A flag that is spun on, with a flush in the loop; `behind`: and one behind it. Without it memory
/// becomes visible in the order of the flushes all the same (NPB LU relies on it).
void publication(Litmus& t, std::uint64_t g, bool behind) {
    t.delay();
    if (t.node() == 0) {
        t.word(0) = g;
        t.memory().flush();
        t.word(1) = g;
        t.memory().flush();
        return;
    }
    const auto is_set = [&] {
        const bool seen = t.word(1) == g;
        if (!seen) t.memory().flush();
        return seen;
    };
    t.await(is_set, "publication by flag and flush", g);
    if (behind) t.memory().flush();
    t.forbid(t.word(0) != g, "publication by flag and flush", g);
}

/// A second of this thread's own time, so that a machine with other work changes nothing.
void compute_for_a_second() {
    const std::uint64_t begun_ns = ns_of(CLOCK_THREAD_CPUTIME_ID);
    while (ns_of(CLOCK_THREAD_CPUTIME_ID) - begun_ns < 1'000'000'000) {
        for (int i = 0; i < 1000; ++i) __builtin_ia32_pause();
    }
}

/// The home of 128 blocks computes, without a call; the others read all of them, and must have
/// done so before it is over. Clocks are compared: all nodes are on one host.
void busy_home(Litmus& t, hiroba::SharedMemory& memory) {
    constexpr std::size_t blocks = 128, block = 16384;
    char* area = nullptr;
    if (t.node() == 0) area = static_cast<char*>(memory.allocate(blocks * block, block));
    area = reinterpret_cast<char*>(memory.broadcast(reinterpret_cast<std::uintptr_t>(area), 0));
    const auto word = [&](std::size_t i) -> Word& {
        return *reinterpret_cast<Word*>(area + i * block);
    };
    for (std::size_t i = 0; t.node() == 0 && i < blocks; ++i) word(i) = i + 1;
    memory.barrier();
    bool right = true;
    if (t.node() == 0) {
        compute_for_a_second();
    } else {
        for (std::size_t i = 0; i < blocks; ++i)
            right &= word(i * 37 % blocks) == i * 37 % blocks + 1;
    }
    const std::uint64_t done_ns = now_ns();
    const std::uint64_t home_done_ns = memory.broadcast(done_ns, 0);
    t.forbid(!right, "busy home: content", 1);
    t.forbid(t.node() != 0 && done_ns >= home_done_ns, "busy home: it was waited for",
             done_ns - home_done_ns);
    memory.barrier();
    if (t.node() == 0) std::printf("litmus busy home: %lu blocks\n", blocks);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3 || argc > 4) {
        std::fprintf(stderr, "usage: litmus SEED ROUNDS [PATTERN]\n");
        return 64;
    }
    std::string why;
    const auto memory = hiroba::SharedMemory::open(&why);
    if (memory == nullptr) {
        std::fprintf(stderr, "%s\n", why.c_str());
        return 78;
    }
    const std::uint64_t seed = std::strtoull(argv[1], nullptr, 10);
    const std::uint64_t rounds = std::strtoull(argv[2], nullptr, 10);
    Litmus t{*memory, seed};
    const std::string_view only = argc > 3 ? argv[3] : "";
    const auto run = [&](const char* name, unsigned nodes_min, auto&& pattern) {
        if (!std::string_view(name).starts_with(only)) return;
        t.rounds(name, nodes_min, rounds, [&](std::uint64_t g) { pattern(t, g); });
    };
    run("message passing by lock", 2, message_passing_by_lock);
    run("message passing by barrier", 2, message_passing_by_barrier);
    run("store buffering by atomics", 2, store_buffering_by_atomics);
    run("store buffering by locks", 2, store_buffering_by_locks);
    run("independent reads by locks", 4, independent_reads_by_locks);
    run("transitivity over a third node", 3, transitivity);
    run("publication, flush behind", 2,
        [](Litmus& l, std::uint64_t g) { publication(l, g, true); });
    run("publication, none behind", 2,
        [](Litmus& l, std::uint64_t g) { publication(l, g, false); });
    if (only.empty()) busy_home(t, *memory);
    return 0;
}
