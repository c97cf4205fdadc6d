// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes the random sequences that libc keeps for a process (rand, random, drand48 and
// their kin): the job has one of each.
// Invariant: threads of all nodes draw each number once. Where that takes a node too long, it draws
// from a sequence of its own, and a line says so.
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <mutex>

#include "abi/libc/process/shared_rows.hpp"
#include "abi/libc/real.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"

HIROBA_REAL(rand);
HIROBA_REAL(srand);
HIROBA_REAL(random);
HIROBA_REAL(srandom);
HIROBA_REAL(initstate);
HIROBA_REAL(setstate);
HIROBA_REAL(drand48);
HIROBA_REAL(lrand48);
HIROBA_REAL(mrand48);
HIROBA_REAL(srand48);
HIROBA_REAL(seed48);
HIROBA_REAL(lcong48);

namespace hiroba::abi {
namespace {

constexpr std::uint64_t patience_ns = 2'000'000'000;

/// A node's own sequences, once it has waited for the common ones for too long.
struct Apart {
    Latch latch;
    std::atomic<std::uint64_t> waited_ns{0};
    std::atomic<bool> is_apart{false};
    random_data random{};
    char state[128] = {};
    drand48_data drand48{};
};
constinit Apart apart;

bool is_apart() noexcept { return apart.is_apart.load(std::memory_order_acquire); }

/// The calling thread has the common rows.
void go_apart(SharedRows& rows) noexcept {
    const std::scoped_lock guard{apart.latch};
    if (is_apart()) return;
    std::int32_t drawn = 0;
    random_r(&rows.random, &drawn);
    const auto seed = static_cast<unsigned>(drawn) + 0x9e3779b9u * (world()->job.self.value + 1);
    initstate_r(seed, apart.state, sizeof apart.state, &apart.random);
    srand48_r(static_cast<long>(seed), &apart.drand48);
    apart.is_apart.store(true, std::memory_order_release);
    say("rand(), random() or drand48() in parallel regions has waited for other nodes for %lu "
        "seconds: this node draws from a sequence of its own from now on. Use rand_r(), erand48() "
        "or a generator for each thread",
        patience_ns / 1'000'000'000);
}

/// Calls draw(random_data&, drand48_data&) on the sequences that are this thread's.
template <class Draw>
void from_sequence(Draw draw) noexcept {
    if (is_apart()) {
        const std::scoped_lock guard{apart.latch};
        return draw(apart.random, apart.drand48);
    }
    const RowsAlone alone;
    SharedRows& rows = shared_rows();
    draw(rows.random, rows.drand48);
    if (alone.waited_ns() != 0 &&
        apart.waited_ns.fetch_add(alone.waited_ns()) + alone.waited_ns() > patience_ns)
        go_apart(rows);
}

long draw_random() noexcept {
    std::int32_t drawn = 0;
    from_sequence([&](random_data& random, drand48_data&) { random_r(&random, &drawn); });
    return drawn;
}

void seed_random(unsigned seed) noexcept {
    from_sequence([&](random_data& random, drand48_data&) { srandom_r(seed, &random); });
}

template <class Number, class Draw>
Number draw_48(Draw draw) noexcept {
    Number drawn{};
    from_sequence([&](random_data&, drand48_data& data) { draw(&data, &drawn); });
    return drawn;
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int rand() noexcept {
    return HIROBA_CALL_OF_PROGRAM() ? static_cast<int>(draw_random()) : real_rand();
}
long random() noexcept { return HIROBA_CALL_OF_PROGRAM() ? draw_random() : real_random(); }

void srand(unsigned seed) noexcept {
    if (HIROBA_CALL_OF_PROGRAM())
        seed_random(seed);
    else
        real_srand(seed);
}
void srandom(unsigned seed) noexcept {
    if (HIROBA_CALL_OF_PROGRAM())
        seed_random(seed);
    else
        real_srandom(seed);
}

char* initstate(unsigned seed, char* state, size_t bytes) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_initstate(seed, state, bytes);
    char* former = nullptr;
    from_sequence([&](random_data& random, drand48_data&) {
        former = reinterpret_cast<char*>(random.state - 1);
        if (initstate_r(seed, state, bytes, &random) != 0) former = nullptr;
    });
    return former;
}
char* setstate(char* state) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_setstate(state);
    char* former = nullptr;
    from_sequence([&](random_data& random, drand48_data&) {
        former = reinterpret_cast<char*>(random.state - 1);
        if (setstate_r(state, &random) != 0) former = nullptr;
    });
    return former;
}

double drand48() noexcept {
    return HIROBA_CALL_OF_PROGRAM() ? draw_48<double>(drand48_r) : real_drand48();
}
long lrand48() noexcept {
    return HIROBA_CALL_OF_PROGRAM() ? draw_48<long>(lrand48_r) : real_lrand48();
}
long mrand48() noexcept {
    return HIROBA_CALL_OF_PROGRAM() ? draw_48<long>(mrand48_r) : real_mrand48();
}

void srand48(long seed) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_srand48(seed);
    from_sequence([&](random_data&, drand48_data& data) { srand48_r(seed, &data); });
}
unsigned short* seed48(unsigned short* seed) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_seed48(seed);
    unsigned short* former = nullptr;
    from_sequence([&](random_data&, drand48_data& data) {
        seed48_r(seed, &data);
        former = data.__old_x;
    });
    return former;
}
void lcong48(unsigned short* parameters) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_lcong48(parameters);
    from_sequence([&](random_data&, drand48_data& data) { lcong48_r(parameters, &data); });
}

}  // extern "C"
