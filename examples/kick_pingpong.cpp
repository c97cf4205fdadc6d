// SPDX-License-Identifier: BSD-3-Clause
// Pairs of nodes throw a number back and forth: one store there, one store back; then all of them
// meet and add up what they threw.
// Run: hiroba run --spmd -n 2 ./kick_pingpong [rounds]
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "hiroba/kick.hpp"

namespace {

namespace kick = hiroba::kick;
namespace net = hiroba::net;
using hiroba::NodeId;
using Ball = std::uint64_t;

/// Throws and catches `rounds` times; the sum of what was caught.
Ball play(kick::Board& board, kick::Kick<Ball>& to_partner, kick::Offset ball, Ball rounds) {
    const bool begins = board.self().value % 2 == 0;
    const auto offset = static_cast<std::uint32_t>(ball % kick::page_bytes);
    Ball sum = 0;
    for (Ball round = 1; round <= rounds; ++round) {
        if (begins) to_partner.store(offset, round);
        if (begins) board.wake(to_partner.node());
        board.wait_until<Ball>(ball, [round](Ball seen) { return seen == round; });
        sum += board.load<Ball>(ball);
        if (!begins) to_partner.store(offset, round);
        if (!begins) board.wake(to_partner.node());
    }
    return sum;
}

}  // namespace

int main(int argc, char** argv) {
    const Ball rounds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100'000;
    std::string why;
    const auto network = net::Network::open(&why);
    const auto board = network == nullptr ? nullptr : kick::Board::make(*network, &why);
    if (board == nullptr) {
        std::fprintf(stderr, "%s\n", why.c_str());
        return 78;
    }
    // Every node reserves the same, in the same order, before anybody connects.
    const auto ball = board->reserve(sizeof(Ball), 64, &why);
    const auto barrier = board->barrier();
    auto sum_of_all = board->all_reduce<Ball>();
    if (!ball || barrier == nullptr || !sum_of_all || !network->connect(&why)) {
        std::fprintf(stderr, "%s\n", why.c_str());
        return 78;
    }
    const std::uint32_t self = board->self().value, partner = self ^ 1;
    Ball caught = 0;
    double ns = 0;
    if (partner < board->nodes()) {
        auto to_partner = board->kick<Ball>(NodeId{partner}, *ball, &why);
        if (!to_partner) {
            std::fprintf(stderr, "%s\n", why.c_str());
            return 78;
        }
        const auto begun = std::chrono::steady_clock::now();
        caught = play(*board, *to_partner, *ball, rounds);
        ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begun)
                 .count();
    }
    barrier->arrive_and_wait();
    const Ball all = (*sum_of_all)(caught);
    const Ball players = board->nodes() / 2 * 2;
    const bool good = all == players * (rounds * (rounds + 1) / 2);
    if (self == 0) {
        std::printf("%lu rounds of %lu players, %.0f ns each: VERIFICATION %s\n", rounds, players,
                    ns / static_cast<double>(rounds + (rounds == 0)),
                    good ? "SUCCESSFUL" : "FAILED");
    }
    return good ? 0 : 1;
}
