// SPDX-License-Identifier: BSD-3-Clause
// Role: a program of a user that makes every mistake there is: each is refused at once with a line
// that names the argument and the number, nothing of it happens here or elsewhere, no callback
// runs, and right requests go on. What cannot be refused ends the process with one line.
// Usage: mistakes, or mistakes WHAT for one of those that end it.
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "net_face/job.hpp"

namespace net_face {
namespace {

constexpr std::size_t page = 4096, memory_bytes = 4 * page, local_bytes = 2 * page;
constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
constexpr net::ActiveId known_id{1}, unknown_id{9};

/// One line that has `words` in it.
void expect_line(const std::string& why, const std::string& words) {
    require(why.find(words) != std::string::npos && why.find('\n') == std::string::npos,
            [&] { return "it says '" + why + "', wanted '" + words + "'"; });
}

std::atomic<std::uint64_t> messages{0};

/// A connected node with memory that is right.
struct Node {
    Node() : network(open_network()), board(kick::Board::make(*network, &why)) {
        require(board != nullptr, why.c_str());
        const auto made = network->allocate(memory_bytes, &why);
        require(made.has_value(), why.c_str());
        memory = *made;
        network->on(
            known_id,
            [](void*, NodeId, std::span<const std::uint64_t>, std::span<const std::byte>) noexcept {
                messages.fetch_add(1);
            },
            nullptr);
    }
    void connect() {
        require(network->connect(&why), why.c_str());
        const auto registered = network->register_local(std::span(bytes), &why);
        require(registered.has_value(), why.c_str());
        mine = *registered;
    }
    NodeId next() const { return NodeId{(network->self().value + 1) % network->nodes()}; }

    /// Refused, for a reason that has `words` in it.
    template <class Params>
    void refuses(Params params, const std::string& words) {
        std::atomic<std::uint32_t> count{0};
        params.on_complete = {
            [](void*, net::Outcome) noexcept { wrong("a refused one's callback"); }, nullptr,
            &count};
        step();
        expect_line(network->why_refused(params), words);
        const auto made = network->insist([&] { return submit(params); });
        require(made == net::Submission::refused,
                [&] { return "accepted, not refused: " + words; });
        require(count == 0, "a refused one counts as under way");
    }
    /// Accepted, and done.
    template <class Params>
    void does(Params params) {
        net::Pending pending;
        require(network->why_refused(params).empty(), "a right one would be refused");
        params.on_complete = pending.callback();
        accepted(*network, [&] { return submit(params); });
        require(network->wait(pending), "a node was lost");
    }

    std::string why;
    std::vector<std::byte> bytes = std::vector<std::byte>(local_bytes);
    std::unique_ptr<net::Network> network;
    std::unique_ptr<kick::Board> board;
    net::Handle memory, mine;

private:
    net::Submission submit(const net::ReadParams& p) { return network->try_read_async(p); }
    net::Submission submit(const net::WriteParams& p) { return network->try_write_async(p); }
    net::Submission submit(const net::AtomicParams& p) { return network->try_atomic_async(p); }
    net::Submission submit(const net::MessageParams& p) { return network->try_message_async(p); }
    net::Submission submit(const net::CallParams& p) { return network->try_call_async(p); }
};

std::string rank_words(std::uint32_t rank, const Node& node) {
    return "node " + std::to_string(rank) + " of a job of " + std::to_string(node.network->nodes());
}

/// Both ends of reads and writes, one of them wrong.
void wrong_places(Node& node) {
    const net::RemoteAddress there{node.memory, 0};
    const net::LocalAddress here{node.mine, 0};
    const NodeId to = node.next();
    const std::uint32_t nodes = node.network->nodes();
    const auto both = [&](NodeId peer, net::RemoteAddress remote, net::LocalAddress local,
                          std::size_t bytes, const std::string& words) {
        node.refuses(net::WriteParams{peer, local, remote, bytes, {}}, words);
        node.refuses(net::ReadParams{peer, remote, local, bytes, {}}, words);
    };
    both(NodeId{nodes}, there, here, 8, rank_words(nodes, node));
    both(NodeId{0xffff'ffffu}, there, here, 8, rank_words(0xffff'ffffu, node));
    both(to, {net::Handle{77}, 0}, here, 8, "remote handle 77 is not registered");
    both(to, {net::Handle{1024}, 0}, here, 8, "remote handle 1024 is not registered");
    both(to, {net::Handle{0xffff'ffffu}, 0}, here, 8, "no remote handle is given");
    both(to, {}, here, 8, "no remote handle is given");
    both(to, there, {}, 8, "no local handle is given as `");
    both(to, {node.mine, 0}, here, 8, "is of local memory alone");
    both(to, {node.memory, memory_bytes}, here, 1, "remote bytes 16384 + 1");
    both(to, {node.memory, memory_bytes - 7}, here, 8, "remote bytes 16377 + 8");
    both(to, {node.memory, huge}, here, 8, "remote bytes 18446744073709551615 + 8");
    both(to, {node.memory, 8}, here, huge - 7, "remote bytes 8 + 18446744073709551608");
    both(to, there, {net::Handle{78}, 0}, 8, "local handle 78");
    both(to, there, {node.mine, local_bytes - 7}, 8, "bytes 8185 + 8 of the local handle");
    both(to, there, {node.mine, huge - 3}, 8, "bytes 18446744073709551612 + 8 of the local");
    both(to, there, here, local_bytes + 8, "which has 8192");
    // The end of memory is a place, of no bytes.
    node.does(net::WriteParams{to, {node.mine, local_bytes}, {node.memory, memory_bytes}, 0, {}});
    node.does(net::ReadParams{to, {node.memory, memory_bytes}, {node.mine, local_bytes}, 0, {}});
}

void wrong_atomics(Node& node) {
    const net::AtomicParams right{.target = node.next(),
                                  .at = {node.memory, 0},
                                  .op = net::AtomicOp::fetch_add,
                                  .operand = 5,
                                  .old = {node.mine, 0}};
    const auto with = [&](auto&& change, const char* words) {
        net::AtomicParams params = right;
        change(params);
        node.refuses(params, words);
    };
    with([](auto& p) { p.bytes = 2; }, "an atomic of 2 bytes; there are 4 and 8");
    with([](auto& p) { p.bytes = 0; }, "an atomic of 0 bytes");
    with([](auto& p) { p.op = static_cast<net::AtomicOp>(6); }, "atomic operation 6");
    with([](auto& p) { p.at.offset = 4; }, "8 bytes at offset 4, which is no multiple");
    with([](auto& p) { p.at.offset = memory_bytes; }, "remote bytes 16384 + 8");
    with([](auto& p) { p.at.offset = huge - 7; }, "remote bytes 18446744073709551608 + 8");
    with([](auto& p) { p.at.handle.value = 500; }, "remote handle 500 is not registered");
    with([](auto& p) { p.target.value = 500; }, "node 500 of a job");
    with([](auto& p) { p.old.offset = local_bytes - 4; }, "of `old`, which has 8192");
    with([](auto& p) { p.old.handle.value = 500; }, "local handle 500 of `old` is not registered");
}

void wrong_messages(Node& node) {
    const std::size_t most = node.network->payload_bytes_max();
    std::vector<std::byte> large(most + 1);
    const auto registered = node.network->register_local(std::span(large));
    require(registered.has_value(), "register_local");
    const std::array<std::uint64_t, 7> arguments{};
    const net::MessageParams right{
        .target = node.next(), .id = known_id, .payload = {node.mine, 0}};
    const auto with = [&](auto&& change, const std::string& words) {
        net::MessageParams params = right;
        change(params);
        node.refuses(params, words);
    };
    with([](auto& p) { p.target.value = 500; }, "node 500 of a job");
    with([](auto& p) { p.id.value = 64; }, "active message 64; there are 64");
    with([](auto& p) { p.id.value = 255; }, "active message 255; there are 64");
    with([&](auto& p) { p.arguments = arguments; }, "7 arguments; at most 6");
    with(
        [&](auto& p) {
            p.payload = {*registered, 0};
            p.payload_bytes = most + 1;
        },
        "a payload of " + std::to_string(most + 1) + " bytes; at most " + std::to_string(most));
    with([](auto& p) { p.payload_bytes = huge; }, "a payload of 18446744073709551615 bytes");
    with([](auto& p) { p.payload_bytes = local_bytes + 1; }, "of `payload`, which has 8192");
    with(
        [](auto& p) {
            p.payload.handle.value = 300;
            p.payload_bytes = 1;
        },
        "local handle 300 of `payload` is not registered");
    node.refuses(net::CallParams{}, "a call of no function");
    // The longest there may be, and what is said to be ignored.
    net::MessageParams longest = right;
    longest.payload = {*registered, 1};
    longest.payload_bytes = most;
    node.does(longest);
    net::MessageParams empty = right;
    empty.payload.handle.value = 300;
    node.does(empty);
    node.network->deregister(*registered);
    node.refuses(longest, "is not registered");
}

void wrong_kicks(Node& node, kick::Window& window) {
    std::string why;
    kick::Board& board = *node.board;
    const std::uint32_t nodes = node.network->nodes();
    require(!board.kick<std::uint64_t>(NodeId{nodes}, 0, &why), "a kick to no node");
    expect_line(why, std::to_string(nodes));
    require(!board.kick<std::uint64_t>(node.next(), kick::Offset{1} << 40, &why),
            "a kick far outside");
    expect_line(why, "1099511627776 of polled memory, which has 131072 bytes");
    require(!board.kick<std::uint64_t>(node.next(), net::RemoteAddress{net::Handle{77}, 0}, &why),
            "a kick to no handle");
    expect_line(why, "handle 77");
    require(!board.kick<std::uint64_t>(node.next(), net::RemoteAddress{node.mine, 0}, &why),
            "a kick to local memory");
    expect_line(why, "is not memory that the network allocated");
    auto right = board.kick<std::uint64_t>(node.next(), 0, &why);
    require(right.has_value(), why.c_str());
    require(!right->store_checked(page, 1, &why), "a kick behind the page");
    expect_line(why, "does not lie inside");
    require(!right->store_checked(4, 1, &why), "a kick across words");
    expect_line(why, "is not aligned");
    require(!window.send(kick::Window::bytes_max, &why), "more than a window holds");
    expect_line(why, std::to_string(kick::Window::bytes_max));
    require(!board.reserve(64, 64, &why), "reserved late");
    expect_line(why, "before Network::connect()");
    require(!board.barrier({}, kick::Shape::fastest, &why), "a barrier made late");
    expect_line(why, "before Network::connect()");
    require(!kick::Board::make(*node.network, &why), "a second board");
    expect_line(why, "before Network::connect()");
}

void before_connecting(Node& node) {
    std::string why;
    const NodeId none{node.network->nodes()};
    require(!node.network->allocate(std::size_t{1} << 60, &why), "2^60 bytes");
    expect_line(why, "1152921504606846976");
    require(!node.network->allocate(0, &why), "no bytes");
    expect_line(why, "memory of 0 bytes");
    require(!kick::Board::make(*node.network, &why, 0), "a board of no bytes");
    expect_line(why, "0 bytes of polled memory");
    require(!node.board->reserve(64, 48, &why), "an alignment of 48");
    expect_line(why, "aligned to 48 bytes; a power of two");
    require(!node.board->reserve(std::size_t{1} << 50, 64, &why), "more than the polled memory");
    expect_line(why, "1125899906842624");
    require(!node.board->expose(net::Handle{55}, &why), "no handle exposed");
    expect_line(why, "handle 55");
    require(!node.board->window(kick::Window::bytes_max + 1, none, none, &why), "to no node");
    expect_line(why, "node " + std::to_string(none.value) + " of a job");
    require(!node.board->window(kick::Window::bytes_max + 1, node.next(), {}, &why), "too large");
    expect_line(why, "1441");
    require(!node.board->channel<std::uint32_t>(none, {}, &why), "a channel to no node");
    expect_line(why, "of a job");
    require(!node.board->barrier({none}, kick::Shape::fastest, &why), "a member of no job");
    expect_line(why, "of a job");
    require(!node.board->barrier({node.next(), node.next()}, kick::Shape::tree, &why), "twice");
    expect_line(why, "is a member twice");
    require(!kick::Board::make(*node.network, &why), "a second board");
    expect_line(why, "one board");
    const char* const early = "a request before connect(): call Network::connect() first";
    node.refuses(net::WriteParams{node.next(), {node.memory, 0}, {node.memory, 0}, 8, {}}, early);
    node.refuses(net::ReadParams{node.next(), {node.memory, 0}, {node.memory, 0}, 8, {}}, early);
    node.refuses(net::AtomicParams{.target = node.next(), .at = {node.memory, 0}}, early);
    node.refuses(net::MessageParams{.target = node.next(), .id = known_id}, early);
    node.refuses(net::CallParams{[](void*) noexcept {}, nullptr, {}}, early);
    require(node.network->local(node.memory).empty(), "memory before there is any");
}

void after_connecting(Node& node) {
    std::string why;
    require(!node.network->allocate(std::size_t{1} << 45, &why), "allocated too much late");
    expect_line(why, "no room for 35184372088832 bytes on every node");
    require(!node.network->connect(&why), "connected twice");
    expect_line(why, "second time");
    require(node.network->local(net::Handle{77}).empty(), "memory of no handle");
    require(node.network->local(net::Handle{huge & 0xffff'ffffu}).empty(), "memory of no handle");
    require(node.network->mapped(net::Handle{77}, NodeId{0}) == nullptr, "mapped of no handle");
    require(node.network->mapped(node.memory, NodeId{99}) == nullptr, "mapped of no node");
    node.network->deregister(net::Handle{77});
    node.network->deregister(net::Handle{0xffff'ffffu});
    require(!node.network->wait_until([] { return false; }, 0), "a wait of no time");
}

/// More handles than one table has, each then given back; given back they are refused.
void many_handles(Node& node) {
    std::string why;
    std::vector<net::Handle> made;
    while (made.size() < 3000) {
        const auto handle = node.network->register_local(std::span(node.bytes), &why);
        require(handle.has_value(), why.c_str());
        made.push_back(*handle);
    }
    for (const net::Handle handle : made) node.network->deregister(handle);
    node.refuses(net::WriteParams{node.next(), {made.back(), 0}, {node.memory, 0}, 8, {}},
                 "is not registered");
}

/// Nothing of what was refused has happened, and what is right does.
void still_right(Node& node) {
    node.network->barrier();
    for (const std::byte each : node.network->local(node.memory))
        require(each == std::byte{}, "a refused request wrote");
    for (const std::byte each : node.bytes) require(each == std::byte{}, "a refused one read");
    node.network->wait_until([] { return messages.load() >= 2; });
    require(messages == 2, "a refused message came");
    node.network->barrier();
    for (unsigned i = 0; i < 100; ++i) {
        node.does(net::AtomicParams{
            .target = node.next(), .at = {node.memory, 8}, .operand = 1, .old = {node.mine, 0}});
        step();
    }
    node.network->barrier();
    require(node.network->local<std::uint64_t>(node.memory)[1] == 100, "right requests go on");
    require(node.network->idle(), "something is left under way");
    node.network->barrier();
}

void every_mistake() {
    Node node;
    before_connecting(node);
    const std::uint32_t nodes = node.network->nodes();
    const NodeId from{(node.network->self().value + nodes - 1) % nodes};
    const auto window = node.board->window(128, node.next(), from, &node.why);
    require(window != nullptr, node.why.c_str());
    node.connect();
    after_connecting(node);
    wrong_places(node);
    wrong_atomics(node);
    wrong_messages(node);
    wrong_kicks(node, *window);
    many_handles(node);
    still_right(node);
    if (node.network->self().value == 0)
        std::printf("refused and alive on %u nodes over %s\n", nodes, node.network->provider());
}

// --- what ends the process -----------------------------------------------------------------------

/// Until another node has ended the job: a message may be there later than a barrier is over.
void await_end(Node& node) {
    node.network->wait_until([] { return false; });
}

void unknown_message() {
    Node node;
    node.connect();
    if (node.network->self().value == 0)
        node.does(net::MessageParams{.target = NodeId{1}, .id = unknown_id});
    await_end(node);
}

void unknown_root() {
    Node node;
    node.connect();
    node.network->broadcast(NodeId{node.network->nodes()}, std::span(node.bytes).first(8));
}

void short_gather() {
    Node node;
    node.connect();
    node.network->all_gather(std::span(node.bytes).first(64), std::span(node.bytes).first(64));
}

void unknown_handler() {
    Node node;
    node.network->on(net::ActiveId{64}, nullptr, nullptr);
}

void early_barrier() {
    Node node;
    node.network->barrier();
}

void one_way_window() {
    Node node;
    const auto window = node.board->window(128, {}, {}, &node.why);
    node.connect();
    window->await_room();
}

void wake_of_no_node() {
    Node node;
    node.connect();
    node.network->wake(NodeId{node.network->nodes()});
    node.network->barrier();
}

/// Nodes that do not make the same calls in the same order.
void unequal_memory() {
    Node node;
    const std::size_t size = node.network->self().value == 0 ? 2 * page : page;
    require(node.network->allocate(size, &node.why).has_value(), node.why.c_str());
    if (!node.network->connect(&node.why)) {
        std::fprintf(stderr, "%s\n", node.why.c_str());
        std::exit(78);
    }
    node.network->barrier();
}

void absent_memory() {
    Node node;
    if (node.network->self().value != 0)
        require(node.network->allocate(page, &node.why).has_value(), node.why.c_str());
    if (!node.network->connect(&node.why)) {
        std::fprintf(stderr, "%s\n", node.why.c_str());
        std::exit(78);
    }
    node.network->barrier();
}

net::Network* of_handler = nullptr;

/// A handler that waits in one of the ways there are.
template <class Wait>
void wait_in_handler(Wait) {
    Node node;
    of_handler = node.network.get();
    node.network->on(
        net::ActiveId{2},
        [](void*, NodeId, std::span<const std::uint64_t>, std::span<const std::byte>) noexcept {
            Wait{}();
        },
        nullptr);
    node.connect();
    if (node.network->self().value == 0)
        node.does(net::MessageParams{.target = NodeId{1}, .id = net::ActiveId{2}});
    await_end(node);
}
void barrier_in_handler() {
    wait_in_handler([] { of_handler->barrier(); });
}
void predicate_in_handler() {
    wait_in_handler([] { of_handler->wait_until([] { return false; }); });
}
void insist_in_handler() {
    wait_in_handler([] { of_handler->insist([] { return net::Submission::again; }); });
}
void wait_in_call() {
    Node node;
    of_handler = node.network.get();
    node.connect();
    node.does(net::CallParams{[](void*) noexcept { of_handler->barrier(); }, nullptr, {}});
}

void short_exchange() {
    Node node;
    node.connect();
    node.network->all_to_all(std::span(node.bytes).first(8), std::span(node.bytes).first(8), 8);
}

/// Options that nobody can have; the line goes to stderr as an example of a user prints it.
void bad_options() {
    std::string why;
    const net::Options wrong_ones[] = {{.queues = 0},
                                       {.queues = 17},
                                       {.queues = 2, .executors = 3},
                                       {.queues = 2, .executors = 0}};
    const char* const given = std::getenv("MISTAKEN_OPTIONS");
    const unsigned which = given == nullptr ? 0 : static_cast<unsigned>(std::atoi(given)) % 4;
    require(net::Network::open(&why, wrong_ones[which]) == nullptr, "options are accepted");
    expect_line(why, "Options::");
    std::fprintf(stderr, "%s\n", why.c_str());
    std::exit(64);
}

}  // namespace
}  // namespace net_face

int main(int argc, char** argv) {
    using namespace net_face;
    watch_steps();
    const std::pair<const char*, void (*)()> endings[] = {
        {"unknown_message", unknown_message},
        {"unknown_root", unknown_root},
        {"short_gather", short_gather},
        {"unknown_handler", unknown_handler},
        {"early_barrier", early_barrier},
        {"one_way_window", one_way_window},
        {"wake_of_no_node", wake_of_no_node},
        {"unequal_memory", unequal_memory},
        {"absent_memory", absent_memory},
        {"barrier_in_handler", barrier_in_handler},
        {"predicate_in_handler", predicate_in_handler},
        {"insist_in_handler", insist_in_handler},
        {"wait_in_call", wait_in_call},
        {"short_exchange", short_exchange},
        {"bad_options", bad_options}};
    if (argc == 1) {
        every_mistake();
        return 0;
    }
    for (const auto& [name, end] : endings) {
        if (std::strcmp(name, argv[1]) != 0) continue;
        end();
        return 0;
    }
    return 64;
}
