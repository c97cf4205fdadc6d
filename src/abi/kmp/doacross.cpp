// SPDX-License-Identifier: BSD-3-Clause
// Role: doacross loops: iterations that wait for others.
// Invariant: the loops of a nest that are collapsed count as one, the outermost. Waiting for an
// iteration outside of the nest is no waiting.
#include <array>

#include "abi/kmp/nests.hpp"
#include "abi/kmp/thread_notes.hpp"
#include "base/fatal.hpp"
#include "base/thread_context.hpp"

namespace hiroba::abi::kmp {

namespace {

using Iteration = std::array<UnsignedLong, omp::Doacross::dimensions_max>;

/// Iterations of one dimension. clang gives what comes behind the last one, others the last.
UnsignedLong length(const Nest::Dimension& of, bool last_counts) noexcept {
    const Long distance = of.step > 0 ? of.last - of.first : of.first - of.last;
    const Long stride = of.step > 0 ? of.step : -of.step;
    if (last_counts) return distance < 0 ? 0 : static_cast<UnsignedLong>(distance / stride) + 1;
    return distance <= 0 ? 0 : static_cast<UnsignedLong>((distance - 1) / stride) + 1;
}

/// How many of the outermost dimensions have as many iterations together as the loop; 0: none.
std::size_t dimensions_of_loop(const Nest& nest, UnsignedLong trips, bool last_counts) noexcept {
    UnsignedLong together = 1;
    for (std::size_t i = 0; i < nest.count; ++i) {
        together *= length(nest.dimensions[i], last_counts);
        if (together == trips) return i + 1;
    }
    return 0;
}

/// The nest that has been announced and waits for its loop.
Nest* announced() noexcept {
    std::vector<Nest>& nests = notes().nests;
    return nests.empty() || nests.back().collapsed != 0 ? nullptr : &nests.back();
}
Nest* running() noexcept {
    std::vector<Nest>& nests = notes().nests;
    return nests.empty() || nests.back().collapsed == 0 || nests.back().ended ? nullptr
                                                                              : &nests.back();
}

void begin(Nest& nest, UnsignedLong trips, omp::Schedule schedule, UnsignedLong chunk) noexcept {
    nest.collapsed = dimensions_of_loop(nest, trips, false);
    nest.last_counts = nest.collapsed == 0;
    if (nest.last_counts) nest.collapsed = dimensions_of_loop(nest, trips, true);
    if (nest.collapsed == 0)
        die(exit_environment,
            "a doacross nest of %lu loops, none of which has the %lu iterations of its loop",
            static_cast<unsigned long>(nest.count), static_cast<unsigned long>(trips));
    Iteration counts{};
    counts[0] = trips;
    const std::size_t inner = nest.count - nest.collapsed;
    for (std::size_t i = 0; i < inner; ++i)
        counts[i + 1] = length(nest.dimensions[nest.collapsed + i], nest.last_counts);
    runtime().doacross_start({counts.data(), inner + 1}, schedule, chunk);
}

/// The numbers of an iteration, the collapsed ones as one. False: there is no such iteration.
bool number(const Nest& nest, const Long* values, Iteration& at) noexcept {
    UnsignedLong outer = 0;
    for (std::size_t i = 0; i < nest.count; ++i) {
        const Nest::Dimension& of = nest.dimensions[i];
        const Long index =
            of.step > 0 ? (values[i] - of.first) / of.step : (of.first - values[i]) / -of.step;
        const bool before = of.step > 0 ? values[i] < of.first : values[i] > of.first;
        const UnsignedLong iterations = length(of, nest.last_counts);
        if (before || static_cast<UnsignedLong>(index) >= iterations) return false;
        if (i < nest.collapsed)
            outer = outer * iterations + static_cast<UnsignedLong>(index);
        else
            at[i - nest.collapsed + 1] = static_cast<UnsignedLong>(index);
    }
    at[0] = outer;
    return true;
}

}  // namespace

void start_static_nest(UnsignedLong trips, UnsignedLong chunk) noexcept {
    Nest* const nest = announced();
    if (nest != nullptr && trips != 0) begin(*nest, trips, omp::Schedule::static_chunks, chunk);
}

bool start_dealt_nest(const omp::Loop& loop, UnsignedLong trips) noexcept {
    Nest* const nest = announced();
    if (nest == nullptr || trips == 0) return false;
    nest->loop_first = loop.start;
    nest->loop_step = loop.step;
    begin(*nest, trips, loop.schedule, loop.chunk);
    return true;
}

void convert_if_nest(omp::LoopChunk* chunk) noexcept {
    const Nest* const nest = running();
    if (nest == nullptr) return;
    chunk->first = nest->loop_first + chunk->first * nest->loop_step;
    chunk->last = nest->loop_first + chunk->last * nest->loop_step;
    chunk->step = nest->loop_step;
}

void leave_dealt_loop() noexcept {
    Unsigned& open = notes().open_loops;
    if (open == 0) return;
    --open;
    if (Nest* const nest = running(); nest != nullptr) nest->ended = true;
    runtime().loop_end(false);
}

}  // namespace hiroba::abi::kmp

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using namespace hiroba::abi::kmp;

extern "C" {

void __kmpc_doacross_init(Location*, Int, Int count, const Nest::Dimension* dimensions) {
    const hiroba::RuntimeScope here;
    Nest nest;
    if (count < 1 || static_cast<std::size_t>(count) > nest.dimensions.size())
        hiroba::die(hiroba::exit_environment, "a doacross nest of %d loops; %lu at most", count,
                    static_cast<unsigned long>(nest.dimensions.size()));
    nest.count = static_cast<std::size_t>(count);
    std::copy_n(dimensions, nest.count, nest.dimensions.begin());
    notes().nests.push_back(nest);
}
void __kmpc_doacross_post(Location*, Int, const Long* values) {
    Iteration at{};
    const Nest* const nest = running();
    if (nest != nullptr && number(*nest, values, at)) runtime().doacross_post(at.data());
}
void __kmpc_doacross_wait(Location*, Int, const Long* values) {
    Iteration at{};
    const Nest* const nest = running();
    if (nest != nullptr && number(*nest, values, at)) runtime().doacross_wait(at.data());
}
void __kmpc_doacross_fini(Location*, Int) {
    const bool runs = running() != nullptr;
    notes().nests.pop_back();
    if (runs) runtime().loop_end(false);
}

}  // extern "C"
