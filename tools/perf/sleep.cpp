// SPDX-License-Identifier: BSD-3-Clause
// Role: how long a node takes to answer whose threads all sleep: the price of a wake-up, which a
// wait that goes on for longer than a millisecond pays at its end.
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "base/clock.hpp"
#include "tools/perf/datagrams.hpp"
#include "tools/perf/tests.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr std::uint64_t iterations_max = 64;
/// Four times as long as a wait yields before it sleeps (net/wait_budget.hpp).
constexpr useconds_t pause_us = 4'000;
constexpr net::ActiveId asked_id{2}, answered_id{3};

/// The question is an active message with a number, and so is its answer.
struct SleepingMessages {
    Rig& rig;
    std::atomic<std::uint64_t> asked{0}, answered{0};

    static void on_asked(void* context, NodeId from, std::span<const std::uint64_t> arguments,
                         Bytes) noexcept {
        auto& self = *static_cast<SleepingMessages*>(context);
        self.send(from, answered_id, arguments[0]);
        self.asked.store(arguments[0], std::memory_order_release);  // pairs with answer()
    }
    static void on_answered(void* context, NodeId, std::span<const std::uint64_t> arguments,
                            Bytes) noexcept {
        auto& self = *static_cast<SleepingMessages*>(context);
        self.answered.store(arguments[0], std::memory_order_release);  // pairs with ask()
    }
    void send(NodeId to, net::ActiveId id, std::uint64_t number) {
        const std::uint64_t arguments[] = {number};
        insist(rig, [&] {
            return rig.async().try_message({.target = to,
                                            .id = id,
                                            .arguments = arguments,
                                            .payload = {rig.source(), 0},
                                            .payload_bytes = 0,
                                            .urgency = net::Urgency::when_polled,
                                            .on_complete = {}});
        });
    }
    void ask(std::uint64_t number) {
        send(rig.partner(), asked_id, number);
        rig.endpoint().wait_until(
            [&] { return answered.load(std::memory_order_acquire) == number; });
    }
    void answer(std::uint64_t number) {
        rig.endpoint().wait_until([&] { return asked.load(std::memory_order_acquire) >= number; });
    }
};

SleepingMessages* messages = nullptr;  // of this process, between prepare and measure

/// A word of shared memory that its owner sleeps on.
class FutexPingPong final : public PingPong {
public:
    explicit FutexPingPong(Rig& rig) : rig_(rig) {}
    void lead(std::uint64_t iterations) override {
        for (std::uint64_t i = 0; i < iterations; ++i) {
            const std::uint32_t number = next();
            std::uint32_t* const there = word(rig_.mapped_landing(rig_.partner()));
            at(there).store(number, std::memory_order_release);  // pairs with follow()
            ::syscall(SYS_futex, there, FUTEX_WAKE, 1, nullptr, nullptr, 0);
            rig_.spin_until([&] { return mine() == number; });
        }
    }
    void follow(std::uint64_t iterations) override {
        for (std::uint64_t i = 0; i < iterations; ++i) {
            const std::uint32_t number = next();
            for (std::uint32_t seen = mine(); seen != number; seen = mine())
                ::syscall(SYS_futex, word(rig_.landing_bytes()), FUTEX_WAIT, seen, nullptr, nullptr,
                          0);
            at(word(rig_.mapped_landing(rig_.partner())))
                .store(number, std::memory_order_release);  // pairs with lead()
        }
    }

private:
    static std::uint32_t* word(std::byte* area) { return reinterpret_cast<std::uint32_t*>(area); }
    static std::atomic_ref<std::uint32_t> at(std::uint32_t* word) {
        return std::atomic_ref<std::uint32_t>(*word);
    }
    std::uint32_t next() { return static_cast<std::uint32_t>(rig_.next_number()); }
    std::uint32_t mine() { return at(word(rig_.landing_bytes())).load(std::memory_order_acquire); }
    Rig& rig_;
};

}  // namespace

Result<void> prepare_sleep_latency(Rig& rig) {
    static SleepingMessages exchanged{rig};
    messages = &exchanged;
    rig.async().on(asked_id, SleepingMessages::on_asked, messages);
    rig.async().on(answered_id, SleepingMessages::on_answered, messages);
    return {};
}

Measured measure_sleep_latency(Rig& rig) {
    // The leader lets its partner fall asleep, and asks; only that is timed.
    const auto batch = [&](std::uint64_t iterations, auto&& lead, auto&& follow) {
        double spent_ns = 0;
        for (std::uint64_t i = 0; i < iterations; ++i) {
            if (rig.leads()) {
                ::usleep(pause_us);
                const std::uint64_t begun_ns = now_ns();
                lead();
                spent_ns += static_cast<double>(now_ns() - begun_ns);
            } else if (rig.has_partner()) {
                follow();
            }
        }
        return spent_ns / static_cast<double>(iterations);
    };
    std::unique_ptr<PingPong> floor;
    if (rig.maps_peers()) {
        floor = std::make_unique<FutexPingPong>(rig);
    } else {
        floor = make_sleeping_ping_pong(rig, 64, 64);
    }
    std::uint64_t number = 0;
    Measured measured = rig.alternate(
        [&](std::uint64_t n) {
            return batch(
                n, [&] { floor->lead(1); }, [&] { floor->follow(1); });
        },
        [&](std::uint64_t n) {
            return batch(
                n, [&] { messages->ask(++number); }, [&] { messages->answer(++number); });
        },
        1, iterations_max);
    measured.verified = !rig.leads() || messages->answered.load() == number;
    return measured;
}

}  // namespace hiroba::tools::perf_parts
