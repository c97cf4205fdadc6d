// SPDX-License-Identifier: BSD-3-Clause
// Role: how long one operation takes when nothing else is under way.
#include <atomic>
#include <cstring>

#include "base/clock.hpp"
#include "tools/perf/done.hpp"
#include "tools/perf/floors.hpp"
#include "tools/perf/tests.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr std::uint64_t iterations_max = 1 << 16;

double per_operation(std::uint64_t begun_ns, std::uint64_t count) {
    return static_cast<double>(now_ns() - begun_ns) / static_cast<double>(count);
}

/// Nanoseconds of one iteration of a ping-pong, on both sides.
double timed(const Rig& rig, PingPong& ping_pong, std::uint64_t iterations) {
    const std::uint64_t begun_ns = now_ns();
    if (rig.leads()) {
        ping_pong.lead(iterations);
    } else if (rig.has_partner()) {
        ping_pong.follow(iterations);
    }
    return per_operation(begun_ns, iterations);
}

class PutPingPong final : public PingPong {
public:
    explicit PutPingPong(Rig& rig) : rig_(rig) {}
    void lead(std::uint64_t iterations) override { lead_by_turns(rig_, *this, iterations); }
    void follow(std::uint64_t iterations) override {
        follow_by_turns(rig_, *this, iterations);
        done_.wait_for(rig_, given_);  // until then the source is borrowed
    }

    void give(std::uint64_t number) {
        // The last write has landed: its answer came.
        mark(rig_.source_bytes(), rig_.bytes(), number);
        insist(rig_, [&] {
            return rig_.async().try_write({rig_.partner(),
                                           {rig_.source(), 0},
                                           {rig_.landing(), 0},
                                           rig_.bytes(),
                                           done_.callback()});
        });
        ++given_;
    }
    void take(std::uint64_t number) {
        // As the floor waits: nobody announces a bare store, so nobody may sleep on it.
        const bool polls = !rig_.maps_peers() || rig_.async().mode() == net::offload::Mode::always;
        rig_.spin_until([&] {
            if (is_marked(rig_.landing_bytes(), rig_.bytes(), number)) return true;
            if (polls) rig_.endpoint().poll();
            return false;
        });
        // The answer may be faster than the acknowledgement that frees the source.
        done_.wait_for(rig_, given_);
    }

private:
    Rig& rig_;
    Done done_;
    std::uint64_t given_ = 0;
};

/// Blocks that the partner writes anew before each sweep, so that every access finds its line in
/// the partner's cache; each access depends on the answer of the one before.
class Sweep {
public:
    /// Iterations are a multiple of it.
    static constexpr std::uint64_t unit = 64;

    explicit Sweep(Rig& rig)
        : rig_(rig),
          stride_(round_up(rig.bytes() + 1, 4096) + 64),
          blocks_(stride_ * unit <= Rig::area_bytes ? unit : unit / 2) {}

    /// @param access  (offset, dependent zero) -> the word it found
    template <class Access>
    double run(std::uint64_t iterations, Access&& access) {
        double spent_ns = 0;
        for (std::uint64_t sweep = 0; sweep < iterations / blocks_; ++sweep) {
            const std::uint64_t number = rig_.next_number();
            if (rig_.has_partner() && !rig_.leads()) {
                for (std::uint64_t i = 0; i < blocks_; ++i) {
                    mark(rig_.landing_bytes() + offset_of(i), rig_.bytes(), number + i);
                }
            }
            rig_.collectives().barrier();
            if (rig_.leads()) {
                const std::uint64_t begun_ns = now_ns();
                std::uint64_t found = 0;
                for (std::uint64_t i = 0; i < blocks_; ++i) {
                    std::uint64_t zero = 0;
                    asm volatile("andq $0, %0" : "=r"(zero) : "0"(found));  // waits for `found`
                    found = access(offset_of(i) + zero);
                    wrong_ += found != number + i;
                }
                spent_ns += static_cast<double>(now_ns() - begun_ns);
            }
            rig_.collectives().barrier();
        }
        const std::uint64_t looked_at = iterations / blocks_ * blocks_;
        return spent_ns / static_cast<double>(looked_at);
    }
    bool verified() const { return wrong_ == 0; }

private:
    /// An order that no prefetcher follows.
    std::uint64_t offset_of(std::uint64_t i) const { return i * 37 % blocks_ * stride_; }
    Rig& rig_;
    std::uint64_t stride_;
    std::uint64_t blocks_;
    std::uint64_t wrong_ = 0;
};

std::uint64_t first_word(const std::byte* place) {
    std::uint64_t word;
    std::memcpy(&word, place, sizeof word);
    return word;
}

}  // namespace

Measured measure_put_latency(Rig& rig) {
    const auto floor = make_ping_pong(rig, rig.bytes(), rig.bytes());
    PutPingPong test{rig};
    Measured measured =
        rig.alternate([&](std::uint64_t n) { return timed(rig, *floor, n) / 2; },
                      [&](std::uint64_t n) { return timed(rig, test, n) / 2; }, 8, iterations_max);
    // One more, whole: every byte must arrive.
    std::byte* source = rig.source_bytes();
    for (std::size_t i = 0; i < rig.bytes(); ++i) source[i] = static_cast<std::byte>(i * 7 + 1);
    const std::uint64_t number = rig.next_number();
    timed(rig, test, 1);
    bool right = !rig.has_partner() || is_marked(rig.landing_bytes(), rig.bytes(), number + 1);
    for (std::size_t i = 8; rig.has_partner() && i + 8 < rig.bytes(); ++i) {
        right = right && rig.landing_bytes()[i] == static_cast<std::byte>(i * 7 + 1);
    }
    measured.verified = right;
    return measured;
}

Measured measure_get_latency(Rig& rig) {
    Sweep sweep{rig};
    Done done;
    std::uint64_t got = 0;
    std::byte* to = rig.source_bytes();
    const auto get = [&](std::uint64_t offset) {
        insist(rig, [&] {
            return rig.async().try_read({rig.partner(),
                                         {rig.landing(), offset},
                                         {rig.source(), 0},
                                         rig.bytes(),
                                         done.callback()});
        });
        done.wait_for(rig, ++got);
        return first_word(to);
    };
    const auto test = [&](std::uint64_t n) { return sweep.run(n, get); };
    Measured measured;
    if (rig.maps_peers()) {
        const std::byte* from = rig.has_partner() ? rig.mapped_landing(rig.partner()) : nullptr;
        const auto raw = [&](std::uint64_t offset) {
            raw_copy(to, from + offset, rig.bytes());
            return first_word(to);
        };
        measured = rig.alternate([&](std::uint64_t n) { return sweep.run(n, raw); }, test,
                                 Sweep::unit, iterations_max);
    } else {
        const auto floor = make_ping_pong(rig, 64, rig.bytes());
        measured = rig.alternate([&](std::uint64_t n) { return timed(rig, *floor, n); }, test,
                                 Sweep::unit, iterations_max);
    }
    measured.verified = sweep.verified();
    return measured;
}

Measured measure_atomic_latency(Rig& rig) {
    Sweep sweep{rig};
    Done done;
    std::uint64_t made = 0;
    const auto add = [&](std::uint64_t offset) {
        insist(rig, [&] {
            return rig.async().try_atomic({rig.partner(),
                                           {rig.landing(), offset},
                                           net::AtomicOp::fetch_add,
                                           static_cast<std::uint32_t>(rig.bytes()),
                                           1,
                                           0,
                                           {rig.source(), 0},
                                           done.callback()});
        });
        done.wait_for(rig, ++made);
        return first_word(rig.source_bytes());
    };
    const auto test = [&](std::uint64_t n) { return sweep.run(n, add); };
    Measured measured;
    if (rig.maps_peers()) {
        std::byte* at = rig.has_partner() ? rig.mapped_landing(rig.partner()) : nullptr;
        const auto raw = [&](std::uint64_t offset) {
            auto* word = reinterpret_cast<std::uint64_t*>(at + offset);
            return std::atomic_ref<std::uint64_t>(*word).fetch_add(1);
        };
        measured = rig.alternate([&](std::uint64_t n) { return sweep.run(n, raw); }, test,
                                 Sweep::unit, iterations_max);
    } else {
        const auto floor = make_ping_pong(rig, 64, 64);
        measured = rig.alternate([&](std::uint64_t n) { return timed(rig, *floor, n); }, test,
                                 Sweep::unit, iterations_max);
    }
    measured.verified = sweep.verified();
    return measured;
}

// --- active messages -----------------------------------------------------------------------------

namespace {

constexpr net::ActiveId question{0}, answer{1};

/// Handlers run by whoever polls; both sides wait, so nobody's service thread is needed.
struct MessagePingPong final : PingPong {
    explicit MessagePingPong(Rig& rig) : rig(rig) {}
    Rig& rig;
    std::atomic<std::uint64_t> received{0};
    std::uint64_t wrong = 0;

    static void asked(void* context, NodeId from, std::span<const std::uint64_t> arguments,
                      Bytes payload) noexcept {
        auto& self = *static_cast<MessagePingPong*>(context);
        self.send(from, answer, arguments[0] + payload.size());
        self.received.fetch_add(1, std::memory_order_release);  // pairs with follow()
    }
    static void answered(void* context, NodeId, std::span<const std::uint64_t> arguments,
                         Bytes payload) noexcept {
        auto& self = *static_cast<MessagePingPong*>(context);
        const std::uint64_t number = self.received.load(std::memory_order_relaxed);
        self.wrong += arguments[0] != number + self.payload_bytes() + payload.size();
        self.received.store(number + 1, std::memory_order_release);  // pairs with lead()
    }
    std::size_t payload_bytes() const { return rig.bytes() <= 8 ? 0 : rig.bytes() - 8; }
    void send(NodeId to, net::ActiveId id, std::uint64_t argument) {
        const std::uint64_t arguments[] = {argument};
        const bool asks = id.value == question.value;
        insist(rig, [&] {
            return rig.async().try_message({.target = to,
                                            .id = id,
                                            .arguments = arguments,
                                            .payload = {rig.source(), 0},
                                            .payload_bytes = asks ? payload_bytes() : 0,
                                            .urgency = net::Urgency::when_polled,
                                            .on_complete = {}});
        });
    }
    void lead(std::uint64_t iterations) override {
        received = 0;
        for (std::uint64_t i = 0; i < iterations; ++i) {
            send(rig.partner(), question, i);
            rig.endpoint().wait_until(
                [&] { return received.load(std::memory_order_acquire) == i + 1; });
        }
    }
    void follow(std::uint64_t iterations) override {
        follow_until += iterations;
        rig.endpoint().wait_until(
            [&] { return received.load(std::memory_order_acquire) == follow_until; });
    }
    std::uint64_t follow_until = 0;
};

MessagePingPong* messages = nullptr;  // of this process, between prepare and measure

}  // namespace

Result<void> prepare_am_latency(Rig& rig) {
    static MessagePingPong ping_pong{rig};
    messages = &ping_pong;
    rig.async().on(question, MessagePingPong::asked, messages);
    rig.async().on(answer, MessagePingPong::answered, messages);
    return {};
}

Measured measure_am_latency(Rig& rig) {
    // A message is a line there and a line back, whatever it carries; medium ones are copied.
    const auto floor = make_ping_pong(rig, rig.bytes(), 8);
    Measured measured =
        rig.alternate([&](std::uint64_t n) { return timed(rig, *floor, n); },
                      [&](std::uint64_t n) { return timed(rig, *messages, n); }, 8, iterations_max);
    measured.verified = messages->wrong == 0;
    return measured;
}

}  // namespace hiroba::tools::perf_parts
