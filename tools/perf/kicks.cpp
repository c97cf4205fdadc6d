// SPDX-License-Identifier: BSD-3-Clause
// Role: how long kicks take, and what is built of them.
// Invariant: what one measurement needs of the polled memory is reserved before the nodes meet and
// used by all its repetitions, since phases and positions go on from one to the next.
#include <atomic>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "tools/perf/floors.hpp"
#include "tools/perf/tests.hpp"

namespace hiroba::tools::perf_parts {
namespace {

using namespace net::kick;

constexpr std::uint64_t iterations_max = 1 << 16;

template <class T>
T need(Result<T> result) {
    if (!result) die(exit_environment, "%s", result.error().text.c_str());
    return std::move(*result);
}

/// Nanoseconds of one of `count` operations, which `work()` makes.
template <class Work>
double timed(std::uint64_t count, Work&& work) {
    const std::uint64_t begun_ns = now_ns();
    work();
    return static_cast<double>(now_ns() - begun_ns) / static_cast<double>(count);
}

double ping_pong(const Rig& rig, PingPong& both, std::uint64_t iterations) {
    return timed(iterations, [&] {
        if (rig.leads()) {
            both.lead(iterations);
        } else if (rig.has_partner()) {
            both.follow(iterations);
        }
    });
}

// Set by this process between prepare and measure.
Offset place = 0, marks = 0;
ChannelPlace channel_place;
WindowPlace window_place;

// --- one kick ------------------------------------------------------------------------------------

class KickPingPong final : public PingPong {
public:
    explicit KickPingPong(Rig& rig) : rig_(rig) {
        Board& board = rig.board();
        const NodeId to = rig.has_partner() ? rig.partner() : board.self();
        kick_.emplace(need(board.kick<std::uint64_t>(need(board.target(to, place)))));
    }
    void lead(std::uint64_t iterations) override { lead_by_turns(rig_, *this, iterations); }
    void follow(std::uint64_t iterations) override { follow_by_turns(rig_, *this, iterations); }

    void give(std::uint64_t number) { kick_->store(place % page_bytes, number); }
    void take(std::uint64_t number) {
        // As the floor waits: nobody announces a bare store, so nobody may sleep on it.
        const bool polls = !kick_->is_mapped();
        rig_.spin_until([&] {
            if (rig_.board().load<std::uint64_t>(place) == number) return true;
            if (polls) rig_.endpoint().poll();
            return false;
        });
    }

private:
    Rig& rig_;
    std::optional<Kick<std::uint64_t>> kick_;
};

// --- barriers ------------------------------------------------------------------------------------

/// A node that comes out sees what its children in the tree kicked before they went in: of all
/// nodes those have the shortest way, so that a byte that came too early would have been overtaken.
bool holds_back(Rig& rig, Barrier& barrier) {
    const TreeNode node{rig.self(), rig.plan().nodes};
    const NodeId to{node.is_root() ? 0 : node.parent()};
    Board& board = rig.board();
    auto mark = need(board.kick<std::uint64_t>(need(board.target(to, marks))));
    bool held = true;
    for (std::uint64_t round = 1; round <= 64; ++round) {
        if (!node.is_root())
            mark.store(marks % page_bytes + std::uint64_t{8} * node.branch(), round);
        barrier.arrive_and_wait();
        for (std::uint32_t branch = 0; branch < node.children(); ++branch) {
            const auto seen = board.load<std::uint64_t>(marks + std::uint64_t{8} * branch);
            // A child may be in the next round already.
            held = held && (seen == round || seen == round + 1);
        }
    }
    // The next repetition begins with the first round.
    barrier.arrive_and_wait();
    return held;
}

Measured measure_one_barrier(Rig& rig, Shape shape, const Rig::Batch& floor) {
    static std::optional<Barrier> barrier;
    Board& board = rig.board();
    const Group all = everyone(rig.endpoint());
    if (!barrier) barrier.emplace(need(Barrier::open(board, place, all, shape)));
    Measured measured = rig.alternate(
        floor,
        [&](std::uint64_t n) {
            return timed(n, [&] {
                for (std::uint64_t i = 0; i < n; ++i) barrier->arrive_and_wait();
            });
        },
        8, iterations_max);
    measured.verified = holds_back(rig, *barrier);
    return measured;
}

// --- channels ------------------------------------------------------------------------------------

/// Items one way, and one back when all have come.
class Stream {
public:
    explicit Stream(Rig& rig)
        : rig_(rig),
          sender_(need(ChannelSender<std::uint64_t>::open(rig.board(), channel_place, peer(rig)))),
          receiver_(
              need(ChannelReceiver<std::uint64_t>::open(rig.board(), channel_place, peer(rig)))) {}

    double run(std::uint64_t count) {
        if (!rig_.has_partner()) return 1;
        return timed(count, [&] { rig_.leads() ? lead(count) : follow(count); });
    }
    bool verified() const { return wrong_ == 0; }

private:
    static NodeId peer(const Rig& rig) {
        return rig.has_partner() ? rig.partner() : NodeId{rig.self()};
    }
    void lead(std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i) sender_.stream(next_++);
        sender_.flush();
        wrong_ += receiver_.receive() != next_;
    }
    void follow(std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i) wrong_ += receiver_.receive() != next_++;
        sender_.send(next_);
    }
    Rig& rig_;
    ChannelSender<std::uint64_t> sender_;
    ChannelReceiver<std::uint64_t> receiver_;
    std::uint64_t next_ = 0, wrong_ = 0;
};

}  // namespace

Result<void> prepare_kicks(Rig& rig) {
    place = need(rig.board().reserve(page_bytes, page_bytes));
    marks = need(rig.board().reserve(cache_line_bytes));
    channel_place = need(ChannelPlace::reserve(rig.board()));
    window_place = need(WindowPlace::reserve(rig.board(), WindowPlace::payload_bytes_max));
    return {};
}

Measured measure_kick_latency(Rig& rig) {
    const auto floor = make_ping_pong(rig, 8, 8);
    KickPingPong test{rig};
    Measured measured =
        rig.alternate([&](std::uint64_t n) { return ping_pong(rig, *floor, n); },
                      [&](std::uint64_t n) { return ping_pong(rig, test, n); }, 8, iterations_max);
    // Every take() waited for its very number.
    measured.verified = true;
    return measured;
}

Measured measure_kick_barrier(Rig& rig) {
    const auto raw = make_raw_exchange(rig, 0);
    std::byte nothing{};
    return measure_one_barrier(rig, shape_for(rig.plan().nodes), [&](std::uint64_t n) {
        return timed(n, [&] {
            for (std::uint64_t i = 0; i < n; ++i) raw->exchange(&nothing, &nothing);
        });
    });
}

Measured measure_kick_tree(Rig& rig) {
    const auto round_trip = make_ping_pong(rig, 8, 8);
    const double levels = tree_levels(rig.plan().nodes);
    return measure_one_barrier(
        rig, Shape::tree, [&](std::uint64_t n) { return levels * ping_pong(rig, *round_trip, n); });
}

namespace {

/// The sum of a T of each node. Source: Tanabe et al., DIMMnet-1, table 8.
template <class T>
Measured measure_sum(Rig& rig) {
    static std::optional<AllReduce<T>> reduce;
    if (!reduce)
        reduce.emplace(need(AllReduce<T>::open(rig.board(), place, everyone(rig.endpoint()))));
    const std::uint32_t nodes = rig.plan().nodes;
    const auto raw = make_raw_exchange(rig, sizeof(T));
    std::vector<T> all(nodes);
    std::uint64_t wrong = 0;
    // Small enough that a sum of floats is exact.
    const auto round = [&](std::uint64_t i, auto&& sum_of) {
        const std::uint64_t mine = i + rig.self(), of_all = nodes * i + nodes * (nodes - 1) / 2;
        const std::optional<T> sum = sum_of(static_cast<T>(mine));
        if (!sum) return;  // the floor lost a datagram
        wrong += *sum != static_cast<T>(of_all);
    };
    Measured measured = rig.alternate(
        [&](std::uint64_t n) {
            return timed(n, [&] {
                for (std::uint64_t i = 0; i < n; ++i) {
                    round(i, [&](T mine) -> std::optional<T> {
                        const bool whole = raw->exchange(reinterpret_cast<const std::byte*>(&mine),
                                                         reinterpret_cast<std::byte*>(all.data()));
                        if (!whole) return std::nullopt;
                        return std::accumulate(all.begin(), all.end(), T{});
                    });
                }
            });
        },
        [&](std::uint64_t n) {
            return timed(n, [&] {
                for (std::uint64_t i = 0; i < n; ++i) {
                    round(i,
                          [&](T mine) -> std::optional<T> { return (*reduce)(mine, op::Sum{}); });
                }
            });
        },
        8, iterations_max);
    measured.verified = wrong == 0;
    return measured;
}

}  // namespace

Measured measure_kick_all_reduce(Rig& rig) { return measure_sum<double>(rig); }
Measured measure_kick_sum_float(Rig& rig) { return measure_sum<float>(rig); }
Measured measure_kick_sum_ull(Rig& rig) { return measure_sum<unsigned long long>(rig); }
Measured measure_kick_sum_unsigned(Rig& rig) { return measure_sum<unsigned>(rig); }

Measured measure_channel(Rig& rig) {
    static std::optional<Stream> stream;
    if (!stream) stream.emplace(rig);
    const auto floor = make_ping_pong(rig, 8, 8);
    Measured measured =
        rig.alternate([&](std::uint64_t n) { return ping_pong(rig, *floor, n) / 2; },
                      [&](std::uint64_t n) { return stream->run(n); }, 512, iterations_max);
    measured.verified = stream->verified();
    return measured;
}

// Source: Tanabe et al., DIMMnet-1, table 4: what the store itself costs the CPU.
Measured measure_kick_store(Rig& rig) {
    Board& board = rig.board();
    const NodeId to = rig.has_partner() ? rig.partner() : board.self();
    auto kick = need(board.kick<std::uint64_t>(need(board.target(to, marks))));
    alignas(cache_line_bytes) static std::uint64_t own[8];
    std::uint64_t sent = 0;
    const auto offset = static_cast<std::uint32_t>(marks % page_bytes);
    const auto if_leads = [&](std::uint64_t n, auto&& one) {
        if (!rig.leads()) return 0.0;
        return timed(n, [&] {
            for (std::uint64_t i = 0; i < n; ++i) one();
        });
    };
    Measured measured = rig.alternate(
        [&](std::uint64_t n) {
            return if_leads(
                n, [&] { std::atomic_ref(own[0]).store(++own[1], std::memory_order_release); });
        },
        [&](std::uint64_t n) { return if_leads(n, [&] { kick.store(offset, ++sent); }); }, 64,
        iterations_max);
    // The last one is there once everybody has met: kicks and what follows them come in order.
    std::uint64_t wanted = sent;
    rig.collectives().broadcast(NodeId{0}, std::as_writable_bytes(std::span(&wanted, 1)));
    if (rig.self() == 0) board.wake(to);
    if (rig.self() == 1)
        board.wait_until<std::uint64_t>(marks, [&](std::uint64_t v) { return v == wanted; });
    rig.collectives().barrier();
    measured.verified = true;
    return measured;
}

// Source: the same, the header TLB of 1024 entries, 4-way: more pages than ways in one set.
Measured measure_kick_resolve(Rig& rig) {
    Board& board = rig.board();
    constexpr std::uint64_t pages = std::uint64_t{HeaderCache::sets} * (HeaderCache::ways + 1);
    static_assert(pages * page_bytes <= Rig::area_bytes);
    const auto region = rig.async().allocated(rig.landing())->region;
    static const bool exposed = [&] {
        board.expose(region, Rig::area_bytes);
        return true;
    }();
    std::vector<Target> conflicting;
    for (std::uint64_t page = 0; exposed && page < pages; ++page) {
        const Target target = need(board.target(board.self(), region, page * page_bytes));
        if (target.number() % HeaderCache::sets == 0) conflicting.push_back(target);
    }
    const auto resolve = [&](Target target) { need(board.resolve(target)); };
    const HeaderCache::Counts before = board.header_counts();
    Measured measured = rig.alternate(
        [&](std::uint64_t n) {
            return timed(n, [&] {
                for (std::uint64_t i = 0; i < n; ++i) resolve(conflicting[0]);
            });
        },
        [&](std::uint64_t n) {
            return timed(n, [&] {
                for (std::uint64_t i = 0; i < n; ++i) resolve(conflicting[i % conflicting.size()]);
            });
        },
        64, iterations_max);
    const HeaderCache::Counts after = board.header_counts();
    measured.verified = conflicting.size() > HeaderCache::ways && after.misses > before.misses &&
                        after.hits > before.hits;
    return measured;
}

// Source: the same, table 9: a block is composed, sent, taken, and its place given back.
Measured measure_window(Rig& rig) {
    Board& board = rig.board();
    static std::optional<Window> window;
    static std::optional<Landed> landed;
    const auto bytes = static_cast<std::uint32_t>(rig.bytes());
    if (!window && rig.has_partner()) {
        window.emplace(need(Window::open(board, window_place, rig.partner())));
        landed.emplace(need(Landed::open(board, window_place, rig.partner())));
    }
    const auto floor = make_ping_pong(rig, 8, 8);
    static std::uint64_t number = 0;
    std::uint64_t wrong = 0;
    const auto blocks = [&](std::uint64_t n) {
        if (!rig.has_partner()) return 0.0;
        return timed(n, [&] {
            for (std::uint64_t i = 0; i < n; ++i) {
                ++number;
                if (rig.leads()) {
                    window->await_room();
                    std::memset(window->payload().data(), static_cast<int>(number), bytes);
                    const auto sent = window->send(bytes);
                    wrong += !sent;
                    continue;
                }
                board.wait_for([&] { return landed->arrived(); });
                const Bytes came = landed->bytes();
                wrong += came.size() != bytes || came[0] != static_cast<std::byte>(number) ||
                         came[bytes - 1] != static_cast<std::byte>(number);
                landed->take();
            }
        });
    };
    Measured measured = rig.alternate([&](std::uint64_t n) { return ping_pong(rig, *floor, n); },
                                      blocks, 64, iterations_max);
    measured.verified = wrong == 0;
    return measured;
}

}  // namespace hiroba::tools::perf_parts
