// SPDX-License-Identifier: BSD-3-Clause
// Role: what one operation costs when many follow each other, from one or several threads.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "base/clock.hpp"
#include "tools/perf/datagrams.hpp"
#include "tools/perf/floors.hpp"
#include "tools/perf/tests.hpp"
#include "tools/perf/threads.hpp"

namespace hiroba::tools::perf_parts {
namespace {

/// A queue as small as can be: a ticket by one atomic addition, a line for each place.
class TicketRing {
public:
    void put(std::uint64_t value) {
        const std::uint64_t ticket = tail_.fetch_add(1, std::memory_order_relaxed);
        Place& place = places_[ticket % places_count];
        place.value = value;
        place.visible.store(ticket + 1, std::memory_order_release);
    }

private:
    static constexpr std::size_t places_count = 1024;
    struct alignas(cache_line_bytes) Place {
        std::uint64_t value = 0;
        std::atomic<std::uint64_t> visible{0};
    };
    alignas(cache_line_bytes) std::atomic<std::uint64_t> tail_{0};
    std::array<Place, places_count> places_;
};

void note_done(void* data, net::Outcome) noexcept {
    static_cast<std::atomic<std::uint64_t>*>(data)->fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Measured measure_enqueue(Rig& rig) {
    // Bursts that fit, while nobody takes anything out.
    const std::uint64_t burst = net::offload::Engine::queue_capacity / rig.plan().threads;
    static TicketRing ring;
    std::atomic<std::uint64_t> done{0};
    std::uint64_t made = 0;
    const auto per_put = [&](std::uint64_t iterations, auto&& put, auto&& drain) {
        if (!rig.leads()) return 0.0;
        double spent_ns = 0;
        for (std::uint64_t left = iterations; left != 0; left -= burst) {
            spent_ns += on_threads(rig, [&](std::uint32_t thread) {
                for (std::uint64_t i = 0; i < burst; ++i) put(thread, i);
            });
            drain();
        }
        // A put takes its thread's time: as many at once as have a core.
        const auto at_once = std::min(rig.plan().threads, std::thread::hardware_concurrency());
        return spent_ns * at_once / static_cast<double>(iterations * rig.plan().threads);
    };
    const auto request = [&](std::uint32_t thread, std::uint64_t i) {
        const net::Submission submission = rig.async().try_write({rig.partner(),
                                                                  {rig.source(), 64ull * thread},
                                                                  {rig.landing(), 64 * (i % 64)},
                                                                  rig.bytes(),
                                                                  {note_done, &done}});
        if (submission != net::Submission::accepted) fatal("a burst of %lu did not fit", burst);
    };
    const auto drain = [&] {
        made += burst * rig.plan().threads;
        rig.endpoint().wait_until([&] { return done.load() == made; });
    };
    Measured measured = rig.alternate(
        [&](std::uint64_t n) {
            return per_put(
                n, [&](std::uint32_t, std::uint64_t i) { ring.put(i); }, [] {});
        },
        [&](std::uint64_t n) { return per_put(n, request, drain); }, burst, burst * 64);
    measured.verified = done.load() == made && rig.async().idle();
    return measured;
}

namespace {

constexpr std::uint64_t streamed_bytes_max = 8 << 20;

/// Writes to a few places in turn, all threads at once, and waits until all have landed.
class Stream {
public:
    explicit Stream(Rig& rig)
        : rig_(rig),
          stride_(round_up(rig.bytes(), cache_line_bytes)),
          places_(std::max<std::uint64_t>(
              1, std::min<std::uint64_t>(
                     64, streamed_bytes_max / stride_ / std::max(1u, rig.plan().threads)))) {}

    double requests(std::uint64_t iterations) {
        if (!rig_.leads()) return 0;
        return per_write(iterations, [&](std::uint32_t thread) {
            std::atomic<std::uint64_t> done{0};
            for (std::uint64_t i = 0; i < iterations; ++i) {
                const std::uint64_t at = offset(thread, i);
                insist(rig_, [&] {
                    return rig_.async().try_write({rig_.partner(),
                                                   {rig_.source(), at},
                                                   {rig_.landing(), at},
                                                   rig_.bytes(),
                                                   {note_done, &done}});
                });
            }
            rig_.async().wait_until([&] { return done.load() == iterations; });
        });
    }
    double copies(std::uint64_t iterations) {
        if (!rig_.leads()) return 0;
        std::byte* target = rig_.mapped_landing(rig_.partner());
        const std::byte* source = rig_.source_bytes();
        return per_write(iterations, [&](std::uint32_t thread) {
            for (std::uint64_t i = 0; i < iterations; ++i) {
                const std::uint64_t at = offset(thread, i);
                raw_copy(target + at, source + at, rig_.bytes());
            }
        });
    }
    /// New bytes in every place.
    void fill(std::uint64_t number) {
        for (std::uint64_t at = 0; at + 8 <= used_bytes(); at += 8) {
            const std::uint64_t word = number * 1'000'003 + at;
            std::memcpy(rig_.source_bytes() + at, &word, sizeof word);
        }
    }
    /// On the partner: every byte that was written has landed.
    bool landed(std::uint64_t number) const {
        for (std::uint32_t thread = 0; thread < rig_.plan().threads; ++thread) {
            for (std::uint64_t i = 0; i < places_; ++i) {
                for (std::uint64_t in = 0; in + 8 <= rig_.bytes(); in += 8) {
                    const std::uint64_t at = offset(thread, i) + in;
                    std::uint64_t word;
                    std::memcpy(&word, rig_.landing_bytes() + at, sizeof word);
                    if (word != number * 1'000'003 + at) return false;
                }
            }
        }
        return true;
    }
    std::uint64_t places() const { return places_; }

private:
    template <class Work>
    double per_write(std::uint64_t iterations, Work&& work) {
        const auto threads = static_cast<double>(rig_.plan().threads);
        return on_threads(rig_, work) / (static_cast<double>(iterations) * threads);
    }
    std::uint64_t offset(std::uint32_t thread, std::uint64_t i) const {
        return (thread * places_ + i % places_) * stride_;
    }
    std::uint64_t used_bytes() const { return rig_.plan().threads * places_ * stride_; }
    Rig& rig_;
    std::uint64_t stride_;
    std::uint64_t places_;
};

}  // namespace

Measured measure_stream(Rig& rig) {
    Stream stream{rig};
    stream.fill(1);
    const auto test = [&](std::uint64_t n) { return stream.requests(n); };
    const std::uint64_t unit = std::clamp<std::uint64_t>((1 << 20) / rig.bytes(), 1, 1024);
    Measured measured;
    if (rig.maps_peers()) {
        measured =
            rig.alternate([&](std::uint64_t n) { return stream.copies(n); }, test, unit, 1 << 20);
    } else {
        const auto plain = make_datagram_stream(rig, Content::plain);
        const auto authenticated = make_datagram_stream(rig, Content::authenticated);
        const auto stream_raw = [&](DatagramStream& raw, std::uint64_t n) {
            const std::uint64_t count = n * rig.plan().threads;
            const std::uint64_t begun_ns = now_ns();
            if (rig.leads()) {
                raw.lead(count * rig.bytes());
            } else if (rig.has_partner()) {
                raw.follow(count * rig.bytes());
            }
            return static_cast<double>(now_ns() - begun_ns) / static_cast<double>(count);
        };
        measured =
            rig.alternate([&](std::uint64_t n) { return stream_raw(*plain, n); }, test, unit,
                          1 << 20, [&](std::uint64_t n) { return stream_raw(*authenticated, n); });
    }
    // Once more with bytes that nobody has written yet.
    stream.fill(2);
    rig.collectives().barrier();
    stream.requests(stream.places());
    rig.collectives().barrier();
    measured.verified = rig.leads() || !rig.has_partner() || stream.landed(2);
    return measured;
}

}  // namespace hiroba::tools::perf_parts
