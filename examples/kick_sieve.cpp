// SPDX-License-Identifier: BSD-3-Clause
// The sieve of Eratosthenes as a pipeline of nodes: numbers run through channels from node to node,
// and each node holds back the multiples of the primes it keeps.
// Run: hiroba run --spmd -n 4 ./kick_sieve [up to]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hiroba/kick.hpp"

namespace {

namespace kick = hiroba::kick;
namespace net = hiroba::net;
using hiroba::NodeId;
using Number = std::uint32_t;

constexpr Number end_of_stream = 0;
constexpr std::size_t primes_of_node = 8;  // the last node keeps all others

class Stage {
public:
    Stage(kick::Board& board, kick::Channel<Number>& ring)
        : ring_(ring), is_last_(board.self().value + 1 == board.nodes()) {}

    /// Keeps the number, drops it, or passes it on.
    void take(Number number) {
        for (const Number prime : primes_)
            if (number % prime == 0) return;
        if (is_last_ || primes_.size() < primes_of_node) {
            primes_.push_back(number);
        } else {
            ring_.stream(number);
        }
    }
    void end() {
        if (!is_last_) ring_.send(end_of_stream);
    }
    std::size_t primes() const { return primes_.size(); }

private:
    kick::Channel<Number>& ring_;
    bool is_last_;
    std::vector<Number> primes_;
};

std::size_t primes_up_to(Number most) {
    std::vector<bool> composite(most + std::size_t{1});
    std::size_t count = 0;
    for (std::size_t i = 2; i <= most; ++i) {
        if (composite[i]) continue;
        ++count;
        for (std::size_t j = i * i; j <= most; j += i) composite[j] = true;
    }
    return count;
}

}  // namespace

int main(int argc, char** argv) {
    const unsigned long most = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 20'000;
    if (most < 2 || most > 10'000'000) {
        std::fprintf(stderr, "usage: kick_sieve [up to, 2 to 10000000]\n");
        return 64;
    }
    std::string why;
    const auto network = net::Network::open(&why);
    const auto board = network == nullptr ? nullptr : kick::Board::make(*network, &why);
    if (board == nullptr) {
        std::fprintf(stderr, "%s\n", why.c_str());
        return 78;
    }
    const std::uint32_t self = board->self().value, nodes = board->nodes();
    const auto next = self + 1 < nodes ? std::optional(NodeId{self + 1}) : std::nullopt;
    const auto before = self > 0 ? std::optional(NodeId{self - 1}) : std::nullopt;
    auto ring = board->channel<Number>(next, before, &why);
    auto sum_of_all = board->all_reduce<std::uint64_t>();
    if (!ring || !sum_of_all || !network->connect(&why)) {
        std::fprintf(stderr, "%s\n", why.c_str());
        return 78;
    }
    Stage stage{*board, *ring};
    if (!before) {
        for (Number number = 2; number <= most; ++number) stage.take(number);
    } else {
        while (const Number number = ring->receive()) stage.take(number);
    }
    stage.end();
    const std::uint64_t found = (*sum_of_all)(stage.primes());
    const bool good = found == primes_up_to(static_cast<Number>(most));
    if (self == 0) {
        std::printf("%lu primes up to %lu, by %u nodes: VERIFICATION %s\n", found, most, nodes,
                    good ? "SUCCESSFUL" : "FAILED");
    }
    return good ? 0 : 1;
}
