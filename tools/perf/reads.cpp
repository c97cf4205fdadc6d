// SPDX-License-Identifier: BSD-3-Clause
// Role: reads of several threads: latency, what the call costs, rate, and what computing hides.
// Source: Endo & Taura, low-level communication layer, section 5, listings 6 and 7, figures 2 to 7.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/clock.hpp"
#include "tools/perf/done.hpp"
#include "tools/perf/floors.hpp"
#include "tools/perf/tests.hpp"
#include "tools/perf/threads.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr std::uint64_t iterations_max = 1 << 14;
constexpr std::uint64_t under_way_max = 64;

/// Batches so long that threads which take turns on a core all get theirs, and not one after the
/// other: by their number where a read is a copy, else by time, since wires differ.
struct BatchLength {
    std::uint64_t unit;
    double ns;
};
BatchLength batch_of(Rig& rig) {
    constexpr double short_ns = 40'000, long_ns = 20'000'000;
    constexpr std::uint64_t copied_bytes_max = 32 << 20;
    if (rig.plan().threads == 1) return {rig.bytes() > 4096 ? 8u : 64u, short_ns};
    if (!rig.maps_peers()) return {16, long_ns};
    return {std::clamp<std::uint64_t>(copied_bytes_max / rig.bytes(), 32, 4096), short_ns};
}

/// Reads of the partner's landing area into this node's source area, a place for each thread.
class Reads {
public:
    explicit Reads(Rig& rig)
        : rig_(rig), stride_(round_up(rig.bytes(), cache_line_bytes)), there_(word_of(rig)) {
        for (std::uint64_t at = 0; at + 8 <= stride_ * rig.plan().threads; at += 8) {
            const std::uint64_t word = at * 31 + rig.self();
            std::memcpy(rig.landing_bytes() + at, &word, sizeof word);
        }
        rig.collectives().barrier();
    }
    void make(std::uint32_t thread, net::Callback done) {
        insist(rig_, [&] {
            return rig_.async().try_read({rig_.partner(),
                                          {rig_.landing(), thread * stride_},
                                          {rig_.source(), thread * stride_},
                                          rig_.bytes(),
                                          done});
        });
    }
    void copy(std::uint32_t thread) {
        raw_copy(rig_.source_bytes() + thread * stride_, there_ + thread * stride_, rig_.bytes());
    }
    /// Every thread's place holds what the partner has there.
    bool right() const {
        for (std::uint32_t thread = 0; rig_.leads() && thread < rig_.plan().threads; ++thread) {
            for (std::uint64_t in = 0; in + 8 <= rig_.bytes(); in += 8) {
                const std::uint64_t at = thread * stride_ + in;
                std::uint64_t word = 0;
                std::memcpy(&word, rig_.source_bytes() + at, sizeof word);
                if (word != at * 31 + rig_.partner().value) return false;
            }
        }
        return true;
    }
    Rig& rig() { return rig_; }

private:
    static const std::byte* word_of(Rig& rig) {
        return rig.has_partner() ? rig.mapped_landing(rig.partner()) : nullptr;
    }
    Rig& rig_;
    std::uint64_t stride_;
    const std::byte* there_;
};

/// The leader's nanoseconds for one of the `iterations` operations of each thread.
template <class Work>
double per_operation(Rig& rig, std::uint64_t iterations, Work&& work) {
    if (!rig.leads()) return 0;
    return on_threads(rig, work) / static_cast<double>(iterations);
}

/// What the machine takes for one: copies where memory is mapped, else a datagram and its answer.
class Floor {
public:
    explicit Floor(Reads& reads)
        : reads_(reads),
          pings_(reads.rig().maps_peers() ? nullptr
                                          : make_ping_pong(reads.rig(), 8, reads.rig().bytes())) {}
    double run(std::uint64_t iterations) {
        Rig& rig = reads_.rig();
        if (pings_ == nullptr) {
            return per_operation(rig, iterations, [&](std::uint32_t thread) {
                for (std::uint64_t i = 0; i < iterations; ++i) reads_.copy(thread);
            });
        }
        exchange(rig, 1);  // The partner may have to get a core first.
        const std::uint64_t begun_ns = now_ns();
        exchange(rig, iterations);
        return static_cast<double>(now_ns() - begun_ns) / static_cast<double>(iterations);
    }

private:
    void exchange(const Rig& rig, std::uint64_t iterations) {
        if (rig.leads()) {
            pings_->lead(iterations);
        } else if (rig.has_partner()) {
            pings_->follow(iterations);
        }
    }
    Reads& reads_;
    std::unique_ptr<PingPong> pings_;
};

}  // namespace

Measured measure_read_latency(Rig& rig) {
    Reads reads{rig};
    Floor floor{reads};
    Measured measured = rig.alternate([&](std::uint64_t n) { return floor.run(n); },
                                      [&](std::uint64_t n) {
                                          const double spent_ns =
                                              per_operation(rig, n, [&](std::uint32_t thread) {
                                                  Done done;
                                                  for (std::uint64_t i = 1; i <= n; ++i) {
                                                      reads.make(thread, done.callback());
                                                      done.wait_for(rig, i);
                                                  }
                                              });
                                          rig.collectives().barrier();
                                          return spent_ns;
                                      },
                                      batch_of(rig).unit, iterations_max, {}, batch_of(rig).ns);
    measured.verified = reads.right();
    return measured;
}

Measured measure_read_overhead(Rig& rig) {
    Reads reads{rig};
    const auto sum_of = [&](std::uint64_t n, auto&& call, auto&& after) {
        if (!rig.leads()) return 0.0;
        std::atomic<std::uint64_t> spent_ns{0};
        on_threads(rig, [&](std::uint32_t thread) {
            Done done;
            std::uint64_t mine = 0;
            for (std::uint64_t i = 1; i <= n; ++i) {
                const std::uint64_t begun_ns = now_ns();
                call(thread, done);
                mine += now_ns() - begun_ns;
                after(done, i);
            }
            spent_ns.fetch_add(mine);
        });
        return static_cast<double>(spent_ns.load()) / static_cast<double>(n * rig.plan().threads);
    };
    Measured measured = rig.alternate(
        [&](std::uint64_t n) {
            const double spent_ns = sum_of(
                n, [](std::uint32_t, Done&) {}, [](Done&, std::uint64_t) {});
            rig.collectives().barrier();
            return spent_ns;
        },
        [&](std::uint64_t n) {
            const double spent_ns = sum_of(
                n, [&](std::uint32_t thread, Done& done) { reads.make(thread, done.callback()); },
                [&](Done& done, std::uint64_t i) { done.wait_for(rig, i); });
            rig.collectives().barrier();
            return spent_ns;
        },
        8, iterations_max);
    measured.verified = reads.right();
    return measured;
}

Measured measure_read_rate(Rig& rig) {
    Reads reads{rig};
    Floor floor{reads};
    const auto threads = static_cast<double>(rig.plan().threads);
    Measured measured = rig.alternate(
        [&](std::uint64_t n) { return rig.maps_peers() ? floor.run(n) / threads : floor.run(n); },
        [&](std::uint64_t n) {
            const double spent_ns = per_operation(rig, n, [&](std::uint32_t thread) {
                Done done;
                for (std::uint64_t i = 1; i <= n; ++i) {
                    reads.make(thread, done.callback());
                    if (i < under_way_max) continue;
                    const auto has_room = [&] {
                        return done.count.load(std::memory_order_acquire) + under_way_max > i;
                    };
                    if (!has_room()) rig.async().wait_until(has_room);
                }
                done.wait_for(rig, n);
            });
            rig.collectives().barrier();
            return spent_ns / threads;
        },
        batch_of(rig).unit, iterations_max, {}, batch_of(rig).ns);
    measured.verified = reads.right();
    return measured;
}

Measured measure_overlap(Rig& rig) {
    Reads reads{rig};
    Done done;
    std::uint64_t made = 0;
    volatile std::uint64_t sink = 0;
    const auto compute = [&](std::uint64_t steps) {
        std::uint64_t x = 1;
        for (std::uint64_t i = 0; i < steps; ++i) {
            x = x * 6364136223846793005u + 1;
            asm volatile("" : "+r"(x));
        }
        sink = x;
    };
    const auto per = [&](std::uint64_t n, auto&& one) {
        if (!rig.leads()) return 0.0;
        const std::uint64_t begun_ns = now_ns();
        for (std::uint64_t i = 0; i < n; ++i) one();
        return static_cast<double>(now_ns() - begun_ns) / static_cast<double>(n);
    };
    const auto read_alone = [&] {
        reads.make(0, done.callback());
        done.wait_for(rig, ++made);
    };
    constexpr std::uint64_t trial = 4096;
    const double step_ns = per(64, [&] { compute(trial); }) / trial;
    const double read_ns = per(64, read_alone);
    const auto steps =
        rig.leads() ? static_cast<std::uint64_t>(read_ns / std::max(step_ns, 0.01)) : 0;
    rig.collectives().barrier();
    Measured measured = rig.alternate(
        [&](std::uint64_t n) {
            const double alone_ns = per(n, read_alone);
            const double compute_ns = per(n, [&] { compute(steps); });
            rig.collectives().barrier();
            return std::max(alone_ns, compute_ns);
        },
        [&](std::uint64_t n) {
            const double both_ns = per(n, [&] {
                reads.make(0, done.callback());
                compute(steps);
                done.wait_for(rig, ++made);
            });
            rig.collectives().barrier();
            return both_ns;
        },
        8, iterations_max);
    measured.verified = reads.right();
    return measured;
}

}  // namespace hiroba::tools::perf_parts
