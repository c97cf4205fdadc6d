// SPDX-License-Identifier: BSD-3-Clause
// Role: the bandwidth of windows: blocks of one thread, several windows in turn, so that one is
// composed while others are under way. Source: Tanabe et al., DIMMnet-1, table 9: BOTF, one way and
// both ways at once.
// Invariant: windows are reserved before the nodes meet and used by all repetitions, since what is
// under way goes on being counted from one to the next.
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "tools/perf/datagrams.hpp"
#include "tools/perf/floors.hpp"
#include "tools/perf/tests.hpp"

namespace hiroba::tools::perf_parts {
namespace {

using namespace net::kick;

constexpr std::size_t windows_count = 8;
constexpr std::uint64_t blocks_max = 1 << 16;

// Set by this process between prepare and measure.
std::array<WindowPlace, windows_count> places;

template <class T>
T need(Result<T> result) {
    if (!result) die(exit_environment, "%s", result.error().text.c_str());
    return std::move(*result);
}

/// This node's ends of the windows to its partner and from it.
class Blocks {
public:
    explicit Blocks(Rig& rig) : rig_(rig), bytes_(static_cast<std::uint32_t>(rig.bytes())) {
        for (std::size_t i = 0; i < windows_count && rig.has_partner(); ++i) {
            out_[i].emplace(need(Window::open(rig.board(), places[i], rig.partner())));
            in_[i].emplace(need(Landed::open(rig.board(), places[i], rig.partner())));
        }
    }
    /// Sends and takes so many, whichever is possible first, until the partner has taken all.
    void exchange(std::uint64_t to_send, std::uint64_t to_take) {
        while (to_send != 0 || to_take != 0) {
            const bool sent = to_send != 0 && try_send();
            const bool took = to_take != 0 && try_take();
            to_send -= sent;
            to_take -= took;
            if (sent || took) continue;
            rig_.board().wait_for([&] {
                return (to_send != 0 && next_out().may_overwrite()) ||
                       (to_take != 0 && next_in().arrived());
            });
        }
        for (auto& window : out_) window->await_room();
    }
    std::uint64_t wrong() const { return wrong_; }

private:
    Window& next_out() { return *out_[sent_ % windows_count]; }
    Landed& next_in() { return *in_[taken_ % windows_count]; }
    bool try_send() {
        Window& window = next_out();
        if (!window.may_overwrite()) return false;
        std::memset(window.payload().data(), byte_of(sent_), bytes_);
        wrong_ += !window.send(bytes_);
        ++sent_;
        return true;
    }
    bool try_take() {
        Landed& landed = next_in();
        if (!landed.arrived()) return false;
        const Bytes came = landed.bytes();
        const auto wanted = static_cast<std::byte>(byte_of(taken_));
        wrong_ += came.size() != bytes_ || came.front() != wanted ||
                  came[came.size() / 2] != wanted || came.back() != wanted;
        landed.take();
        ++taken_;
        return true;
    }
    static int byte_of(std::uint64_t number) { return static_cast<int>(number % 251); }

    Rig& rig_;
    std::uint32_t bytes_;
    std::array<std::optional<Window>, windows_count> out_;
    std::array<std::optional<Landed>, windows_count> in_;
    std::uint64_t sent_ = 0, taken_ = 0, wrong_ = 0;
};

template <class Work>
double timed(std::uint64_t count, Work&& work) {
    const std::uint64_t begun_ns = now_ns();
    work();
    return static_cast<double>(now_ns() - begun_ns) / static_cast<double>(count);
}

/// What the machine takes for as many bytes one way.
class OneWay {
public:
    explicit OneWay(Rig& rig) : rig_(rig) {
        if (!rig.maps_peers()) stream_ = make_datagram_stream(rig, Content::plain);
    }
    double run(std::uint64_t count) {
        if (!rig_.has_partner()) return 1;
        return timed(count, [&] { stream_ != nullptr ? stream(count) : copy(count); });
    }

private:
    void stream(std::uint64_t count) {
        rig_.leads() ? stream_->lead(count * rig_.bytes()) : stream_->follow(count * rig_.bytes());
    }
    void copy(std::uint64_t count) {
        if (!rig_.leads()) return;
        std::byte* const there = rig_.mapped_landing(rig_.partner());
        for (std::uint64_t i = 0; i < count; ++i)
            raw_copy(there + i % windows_count * 4096, rig_.source_bytes(), rig_.bytes());
    }
    Rig& rig_;
    std::unique_ptr<DatagramStream> stream_;
};

Measured measure(Rig& rig, bool both_ways) {
    static std::optional<Blocks> blocks;
    if (!blocks) blocks.emplace(rig);
    OneWay floor{rig};
    Measured measured = rig.alternate([&](std::uint64_t n) { return floor.run(n); },
                                      [&](std::uint64_t n) {
                                          if (!rig.has_partner()) return 1.0;
                                          return timed(n, [&] {
                                              blocks->exchange(both_ways || rig.leads() ? n : 0,
                                                               both_ways || !rig.leads() ? n : 0);
                                          });
                                      },
                                      64, blocks_max);
    measured.verified = blocks->wrong() == 0;
    return measured;
}

}  // namespace

Result<void> prepare_windows(Rig& rig) {
    for (WindowPlace& place : places)
        place = need(WindowPlace::reserve(rig.board(), WindowPlace::payload_bytes_max));
    return {};
}

Measured measure_windows(Rig& rig) { return measure(rig, false); }
Measured measure_windows_both(Rig& rig) { return measure(rig, true); }

}  // namespace hiroba::tools::perf_parts
