// SPDX-License-Identifier: BSD-3-Clause
// Role: Fortran's random numbers. libgfortran gives every thread that draws a stream of its own,
// told apart by jumps from the seed; its counter of streams is one node's, so the job has its own.
// Invariant: a thread of any node that draws first since a seed was given takes the next stream;
// the one that gave the seed has the first. Without a seed each node's are random, as alone.
#include <array>
#include <cstring>

#include "abi/libc/process/fortran_start.hpp"
#include "abi/libc/process/shared_rows.hpp"
#include "abi/libc/process/xoshiro.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/threads/kept_by_threads.hpp"
#include "base/fatal.hpp"

namespace hiroba::abi {
namespace {

/// libgfortran's descriptor of an array of integers, of gcc 8 and later (libgfortran.h).
struct Integers {
    std::int32_t* base;
    std::size_t offset = 0;
    std::size_t element_bytes = sizeof(std::int32_t);
    std::int32_t version = 0;
    std::int8_t rank = 1, type = 1;
    std::int16_t attribute = 0;
    std::ptrdiff_t span = sizeof(std::int32_t);
    std::ptrdiff_t stride = 1, lower = 1, upper = seed_words;

    static constexpr int seed_words = 8;
};
using Seed = std::array<std::int32_t, Integers::seed_words>;

using SeedCall = void(void* size, void* put, void* get);
using DrawCall = void(void*);
using StartCall = void(long, long);

/// The calling thread has its stream.
constinit thread_local bool has_stream = false;

template <class Function>
Function* find(const char* name) noexcept {
    return reinterpret_cast<Function*>(find_real(name));
}

SeedCall& real_seed() noexcept {
    static SeedCall* const real = find<SeedCall>("_gfortran_random_seed_i4");
    return *real;
}

Seed seed_of_thread() noexcept {
    Seed seed{};
    Integers into{seed.data()};
    real_seed()(nullptr, nullptr, &into);
    return seed;
}

void set_seed(Seed seed) noexcept {
    Integers from{seed.data()};
    real_seed()(nullptr, &from, nullptr);
}

/// Between the seed of the program, whose words come last first, and the state of the generator.
constexpr std::array<std::uint64_t, 4> hidden = {0xbd0c5b6e50c2df49, 0xd46061cd46e1df38,
                                                 0xbb4f4d4ed6103544, 0x114a583d0756ad39};

Xoshiro generator_of(const Seed& seed) noexcept {
    Seed turned;
    for (unsigned i = 0; i < seed.size(); ++i) turned[i] = seed[seed.size() - 1 - i];
    Xoshiro generator;
    std::memcpy(generator.s.data(), turned.data(), sizeof turned);
    for (unsigned i = 0; i < hidden.size(); ++i) generator.s[i] ^= hidden[i];
    return generator;
}

Seed seed_of(Xoshiro generator) noexcept {
    for (unsigned i = 0; i < hidden.size(); ++i) generator.s[i] ^= hidden[i];
    Seed turned, seed;
    std::memcpy(turned.data(), generator.s.data(), sizeof turned);
    for (unsigned i = 0; i < seed.size(); ++i) seed[i] = turned[seed.size() - 1 - i];
    return seed;
}

/// Ends the job where libgfortran's generator is another than is known here.
void require_known(const Seed& seed) noexcept {
    double drawn = 0;
    find<DrawCall>("_gfortran_random_r8")(&drawn);
    Xoshiro generator = generator_of(seed);
    if (drawn == static_cast<double>(generator.next() >> 11) * 0x1p-53) return;
    die(exit_environment,
        "random_number of this libgfortran is not xoshiro256**: threads of several nodes would "
        "draw the same numbers. Use gcc 8 or later, or run on one node (-n 1)");
}

/// The program has given a seed: every thread that draws first from now on has a stream from it.
void seeded() noexcept {
    has_stream = true;
    note_kept_by_thread();
    const Seed seed = seed_of_thread();
    const RowsAlone alone;
    SharedRows& rows = shared_rows();
    std::memcpy(rows.fortran_seed, seed.data(), sizeof seed);
    ++rows.fortran_seedings;
    rows.fortran_streams = 1;
}

void take_stream() noexcept {
    if (has_stream) [[likely]]
        return;
    has_stream = true;
    note_kept_by_thread();
    Seed seed;
    std::uint32_t jumps = 0;
    {
        const RowsAlone alone;
        SharedRows& rows = shared_rows();
        if (rows.fortran_seedings == 0) return;
        std::memcpy(seed.data(), rows.fortran_seed, sizeof seed);
        jumps = rows.fortran_streams++;
    }
    Xoshiro generator = generator_of(seed);
    for (std::uint32_t i = 0; i < jumps; ++i) generator.jump();
    const Seed own = seed_of(generator);
    set_seed(own);
    require_known(own);
    set_seed(own);
}

}  // namespace

void forget_fortran_stream() noexcept { has_stream = false; }

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

void _gfortran_random_seed_i4(void* size, void* put, void* get) {
    const bool of_program = HIROBA_CALL_OF_PROGRAM();
    if (of_program && get != nullptr) take_stream();
    real_seed()(size, put, get);
    if (of_program && size == nullptr && get == nullptr) seeded();
}

void _gfortran_random_seed_i8(void* size, void* put, void* get) {
    static SeedCall* const real = find<SeedCall>("_gfortran_random_seed_i8");
    const bool of_program = HIROBA_CALL_OF_PROGRAM();
    if (of_program && get != nullptr) take_stream();
    real(size, put, get);
    if (of_program && size == nullptr && get == nullptr) seeded();
}

void _gfortran_random_init(long repeatable, long image_distinct) {
    static StartCall* const real = find<StartCall>("_gfortran_random_init");
    real(repeatable, image_distinct);
    if (HIROBA_CALL_OF_PROGRAM()) seeded();
}

/// A draw, of one number or an array of them; those that this libgfortran lacks nobody calls.
#define HIROBA_DRAW(name)                                    \
    void name(void* into) {                                  \
        static DrawCall* const real = find<DrawCall>(#name); \
        if (HIROBA_CALL_OF_PROGRAM()) take_stream();         \
        real(into);                                          \
    }
#define HIROBA_DRAWS(kind) \
    HIROBA_DRAW(_gfortran_random_##kind) HIROBA_DRAW(_gfortran_arandom_##kind)
HIROBA_DRAWS(r4)
HIROBA_DRAWS(r8)
HIROBA_DRAWS(r10)
HIROBA_DRAWS(r16)
HIROBA_DRAWS(r17)
HIROBA_DRAWS(m1)
HIROBA_DRAWS(m2)
HIROBA_DRAWS(m4)
HIROBA_DRAWS(m8)
HIROBA_DRAWS(m16)

}  // extern "C"
