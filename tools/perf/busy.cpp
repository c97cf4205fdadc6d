// SPDX-License-Identifier: BSD-3-Clause
// Role: how long one operation takes on a node whose program computes and calls nothing: whoever
// answers there has to be woken, and to be given a core by someone who does not wait.
#include <atomic>
#include <cstring>

#include "base/clock.hpp"
#include "tools/perf/datagrams.hpp"
#include "tools/perf/done.hpp"
#include "tools/perf/tests.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr std::uint64_t iterations_max = 1 << 10;

/// Computes until the partner has written `number` to where this node only looks.
void compute_until(Rig& rig, std::uint64_t number) {
    std::atomic_ref<std::uint64_t> word(
        *reinterpret_cast<std::uint64_t*>(rig.landing_bytes() + Rig::area_bytes - 64));
    while (word.load(std::memory_order_acquire) != number) __builtin_ia32_pause();
}

}  // namespace

Measured measure_busy_get_latency(Rig& rig) {
    Done done;
    std::uint64_t made = 0, wrong = 0;
    const auto insist_on = [&](auto&& attempt) {
        insist(rig, attempt);
        done.wait_for(rig, ++made);
    };
    const auto get = [&](std::uint64_t number) {
        insist_on([&] {
            return rig.async().try_read({rig.partner(),
                                         {rig.landing(), 0},
                                         {rig.source(), 64},
                                         rig.bytes(),
                                         done.callback()});
        });
        wrong += !is_marked(rig.source_bytes() + 64, rig.bytes(), number);
    };
    const auto tell = [&](std::uint64_t number) {
        std::memcpy(rig.source_bytes(), &number, sizeof number);
        insist_on([&] {
            return rig.async().try_write({rig.partner(),
                                          {rig.source(), 0},
                                          {rig.landing(), Rig::area_bytes - 64},
                                          sizeof number,
                                          done.callback()});
        });
    };
    const auto batch = [&](std::uint64_t iterations, auto&& one) {
        const std::uint64_t number = rig.next_number();
        double each_ns = 0;
        if (rig.has_partner() && !rig.leads()) mark(rig.landing_bytes(), rig.bytes(), number);
        rig.collectives().barrier();
        if (rig.leads()) {
            const std::uint64_t begun_ns = now_ns();
            for (std::uint64_t i = 0; i < iterations; ++i) one(number);
            each_ns = static_cast<double>(now_ns() - begun_ns) / static_cast<double>(iterations);
            tell(number);
        } else if (rig.has_partner()) {
            compute_until(rig, number);
        }
        return each_ns;
    };
    const auto test = [&](std::uint64_t n) { return batch(n, get); };
    Measured measured;
    if (rig.maps_peers()) {
        const std::byte* from = rig.has_partner() ? rig.mapped_landing(rig.partner()) : nullptr;
        const auto raw = [&](std::uint64_t) {
            raw_copy(rig.source_bytes() + 64, from, rig.bytes());
        };
        measured =
            rig.alternate([&](std::uint64_t n) { return batch(n, raw); }, test, 8, iterations_max);
    } else {
        const auto answering = make_sleeping_ping_pong(rig, 64, rig.bytes());
        const auto raw = [&](std::uint64_t) { answering->lead(1); };
        measured =
            rig.alternate([&](std::uint64_t n) { return batch(n, raw); }, test, 8, iterations_max);
    }
    measured.verified = wrong == 0;
    return measured;
}

}  // namespace hiroba::tools::perf_parts
