// SPDX-License-Identifier: BSD-3-Clause
// Role: the further blocks of docs/tutorials/net.md, line by line, in a program whose answers are
// checked. With an argument it opens the network as the page does for many threads.
#include "hiroba/net.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

using namespace hiroba;

namespace {

// Lines as on the page.
// clang-format off
struct State { std::atomic<std::uint64_t> sum{0}; } state;
void greeted(void* context, NodeId, std::span<const std::uint64_t> arguments, std::span<const std::byte>) noexcept {
    static_cast<State*>(context)->sum += arguments[0] + arguments[1];   // short; never waits
}
// clang-format on

int foreign_calls = 0;
void their_function(void* data) { foreign_calls += *static_cast<int*>(data); }

/// The number of answers that are wrong. `memory` has doubles of its rank's number, as before.
int use_blocking(const std::unique_ptr<net::Network>& network,
                 const std::optional<net::Handle>& memory, NodeId node) {
    int wrong = 0;
    std::string why;
    const auto here = network->local<double>(*memory);
    // clang-format off
double value = 2.5, before = 0;
std::vector<std::byte> row(100);
if (network->read(node, {*memory, 0}, row, &why) != net::Ended::done) std::exit(1);            // why: a line
if (network->write_value(node, {*memory, 128}, value) != net::Ended::done) std::exit(1);
if (network->write_signal(node, {*memory, 0}, row, {.at = {*memory, 144}}) != net::Ended::done) std::exit(1);
if (network->atomic_add(node, {*memory, 136}, 0.5, before) != net::Ended::done) std::exit(1);  // of a double
    // clang-format on
    network->wait_until(
        [&] { return std::atomic_ref<double>(here[18]).load() != network->self().value; });
    network->barrier();
    const double self = network->self().value;
    wrong += before != node.value || here[0] != self || here[16] != 2.5 || here[17] != self + 0.5;
    network->barrier();
    for (std::size_t i = 16; i < 19; ++i) here[i] = self;
    network->barrier();
    return wrong;
}

/// The number of answers that are wrong.
int use(const std::unique_ptr<net::Network>& network) {
    int wrong = 0;
    std::string why;
    const auto memory = network->allocate(8000);
    // clang-format off
    network->on(net::ActiveId{0}, greeted, &state);                    // before connect()
    // clang-format on
    if (!network->connect(&why)) return std::fprintf(stderr, "%s\n", why.c_str()), 1;
    const std::uint32_t self = network->self().value, nodes = network->nodes();
    const NodeId node{(self + 1) % nodes}, next = node;
    for (double& number : network->local<double>(*memory)) number = self;
    network->barrier();
    wrong += use_blocking(network, memory, node);
    net::Pending pending;

    // clang-format off
std::vector<double> block(1000);
const auto mine = network->register_local(std::span(block));      // at any time, this node alone
network->insist([&] {
    return network->try_read_async({.source = node, .from = {*memory, 0}, .to = {*mine, 0},
                                    .bytes = 8000, .on_complete = pending.callback()});
});
    // clang-format on
    network->wait(pending);
    for (const double number : block) wrong += number != node.value;
    network->barrier();
    if (self == 0) network->local<std::uint64_t>(*memory)[0] = 0;
    network->barrier();

    // clang-format off
std::uint64_t before = 0;
const auto old = network->register_local(std::span(&before, 1));
network->insist([&] {
    return network->try_atomic_async({.target = NodeId{0}, .at = {*memory, 0}, .op = net::AtomicOp::fetch_add,
                                      .bytes = 8, .operand = 1, .old = {*old, 0},
                                      .on_complete = pending.callback()});
});
    // clang-format on
    network->wait(pending);
    network->barrier();
    wrong += self == 0 && network->local<std::uint64_t>(*memory)[0] != nodes;
    wrong += network->all_reduce(before, std::plus<>{}) != nodes * (nodes - 1) / 2;

    // clang-format off
const std::uint64_t words[] = {1, 2};
network->insist([&] { return network->try_message_async({.target = next, .id = {0}, .arguments = words}); });
    // clang-format on
    network->wait_until([] { return state.sum == 3; });

    int data = 5;
    // clang-format off
network->insist([&] {
    return network->try_call_async({[](void* data) noexcept { their_function(data); }, &data, pending.callback()});
});
    // clang-format on
    network->wait(pending);
    wrong += foreign_calls != 5;
    network->barrier();
    return wrong;
}

}  // namespace

int main(int count, char**) {
    std::string why;
    int wrong = 0;
    if (count == 1) {
        const auto network = net::Network::open(&why);
        wrong = use(network);
    } else {
        // clang-format off
const auto network = net::Network::open(&why, {.offload = net::Offload::always, .queues = 4, .executors = 4});
        // clang-format on
        wrong = use(network);
    }
    std::puts(wrong == 0 ? "right" : "WRONG");
}
