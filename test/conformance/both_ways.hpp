// SPDX-License-Identifier: BSD-3-Clause
// Role: for tests that run over a provider twice: as it is, and as if it mapped nothing.
#pragma once

#include <memory>
#include <utility>

#include "base/fatal.hpp"
#include "conformance/suite.hpp"
#include "conformance/unmapped_provider.hpp"

namespace hiroba::conformance {

/// What is in `result`; ends the process with its error's text when there is nothing.
template <class T>
T need(Result<T> result) {
    if (!result) die(1, "%s", result.error().text.c_str());
    return std::move(*result);
}

inline void need(const Result<void>& result) {
    if (!result) die(1, "%s", result.error().text.c_str());
}

/// As Rig::open(job_key); unless `mapped`, of a provider that maps nothing.
inline std::unique_ptr<net::Endpoint> open_mapped(Rig& rig, bool mapped, std::uint64_t job_key) {
    rig.wrap = nullptr;
    if (!mapped) {
        rig.wrap = [](std::unique_ptr<net::Provider> over) {
            return std::make_unique<UnmappedProvider>(std::move(over));
        };
    }
    return rig.open(job_key);
}

/// body(mapped), for both.
template <class Body>
void both_ways(Rig& rig, Body&& body) {
    for (const bool mapped : {true, false}) {
        // Simulated nodes map nothing as they are, and live once on their wire.
        if (!mapped && rig.simulation != nullptr) return;
        SCOPED_TRACE(mapped ? "as it is" : "as if nothing were mapped");
        body(mapped);
        rig.opened = nullptr;  // its node is gone
    }
}

/// Waits for the last of 1000 kicks to `place` + 64; before it, one of each width was sent.
/// @param board  of the layer or of its face
template <class Board, class Place>
void expect_kicks_of_each_width(Board& board, Place place) {
    board.template wait_until<std::uint64_t>(place + 64, [](std::uint64_t v) { return v == 1000; });
    EXPECT_EQ(board.template load<std::uint8_t>(place + 3), 0x5a);
    EXPECT_EQ(board.template load<std::uint16_t>(place + 6), 0xbeef);
    EXPECT_EQ(board.template load<float>(place + 12), 1.5f);
    EXPECT_EQ(board.template load<double>(place + 4088), -2.25);
}

}  // namespace hiroba::conformance
