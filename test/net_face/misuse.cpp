// SPDX-License-Identifier: BSD-3-Clause
// Role: a program of a user that misuses the layer in the ways that no single call can refuse:
// nodes that leave, nodes that do not call the same, objects used out of turn, waits where nobody
// may wait. Each ends the job with one line; none hangs, and none goes on with a wrong answer.
// Usage: misuse WHAT; without WHAT, what looks like misuse and is none.
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "net_face/job.hpp"

namespace net_face {
namespace {

constexpr std::size_t page = 4096;
constexpr net::ActiveId message_id{1};

std::function<void()> in_handler;

/// A node with everything that is misused below.
struct Node {
    Node() : network(open_network()), board(kick::Board::make(*network, &why)) {
        require(board != nullptr, why.c_str());
        const std::uint32_t self = network->self().value, nodes = network->nodes();
        next = NodeId{(self + 1) % nodes};
        before = NodeId{(self + nodes - 1) % nodes};
        memory = *network->allocate(page, &why);
        word = *board->reserve(sizeof(std::uint64_t));
        window = board->window(64, next, before, &why);
        items = board->channel<int>(next, before, &why);
        barrier = board->barrier({}, kick::Shape::fastest, &why);
        chosen = board->broadcast<long>({}, kick::Shape::fastest, &why);
        total = board->all_reduce<long>({}, kick::Shape::fastest, &why);
        network->on(
            message_id,
            [](void*, NodeId, std::span<const std::uint64_t>, std::span<const std::byte>) noexcept {
                in_handler();
            },
            nullptr);
    }
    void connect() {
        if (network->connect(&why)) return;
        std::fprintf(stderr, "%s\n", why.c_str());
        std::exit(78);
    }
    unsigned self() const { return network->self().value; }
    /// Until another node has ended the job.
    void await_end() {
        network->wait_until([] { return false; });
    }
    net::WriteParams write(net::Callback then) const {
        return {.target = next,
                .from = {memory, 0},
                .to = {memory, 8},
                .bytes = 8,
                .on_complete = then};
    }

    std::string why;
    std::vector<std::byte> bytes = std::vector<std::byte>(page);
    std::unique_ptr<net::Network> network;
    std::unique_ptr<kick::Board> board;
    NodeId next, before;
    net::Handle memory;
    kick::Offset word = 0;
    std::unique_ptr<kick::Window> window;
    std::optional<kick::Channel<int>> items;
    std::unique_ptr<kick::Barrier> barrier;
    std::optional<kick::Broadcast<long>> chosen;
    std::optional<kick::AllReduce<long>> total;
};
struct Connected : Node {
    Connected() { connect(); }
};

// --- nodes that leave ----------------------------------------------------------------------------

/// Node 1 ends with status 0 and leaves its network as it is; the others wait for it.
void left_by_exit() {
    Connected node;
    if (node.self() == 1) std::exit(0);
    node.await_end();
}
void left_by_quick_exit() {
    Connected node;
    if (node.self() == 1) _exit(0);
    node.await_end();
}
/// Its second network is not destroyed; of the first it took leave.
void left_second_by_exit() {
    { Connected node; }
    left_by_exit();
}
void left_before_connect() {
    Node node;
    if (node.self() == 1) std::exit(0);
    node.connect();
}
void left_in_barrier() {
    Connected node;
    node.network->barrier();
    if (node.self() != 1) node.network->barrier();
}
/// Node 1 returns, and others wait for what it alone could do.
void left_while(void (*waiting)(Connected&)) {
    Connected node;
    if (node.self() == 1) return;
    waiting(node);
    node.await_end();
}
void left_in_kick_barrier() {
    left_while([](Connected& node) { node.barrier->arrive_and_wait(); });
}
/// It leaves when others have asked it already.
void left_late() {
    Connected node;
    if (node.self() == 1) return std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    node.barrier->arrive_and_wait();
    wrong("it went on");
}
void left_in_sum() {
    left_while([](Connected& node) { (*node.total)(1); });
}
void left_in_sum_of_tree() {
    Node node;
    auto sum = node.board->all_reduce<int>({}, kick::Shape::tree);
    node.connect();
    if (node.self() != 1) (*sum)(1);
}
void left_without_sending() {
    left_while([](Connected& node) {
        if (node.before.value == 1) node.window->receive();
    });
}
void left_without_taking() {
    left_while([](Connected& node) {
        if (node.next.value != 1) return;
        require(node.window->send(8), "send");
        node.window->await_room();
    });
}
void left_without_items() {
    left_while([](Connected& node) {
        if (node.before.value == 1) node.items->receive();
    });
}
void left_with_full_channel() {
    left_while([](Connected& node) {
        while (node.next.value == 1) node.items->stream(1);
    });
}
/// Told, and no more: a handler of node 1 might still do what is waited for.
void left_in_wait() {
    using Clock = std::chrono::steady_clock;
    Connected node;
    if (node.self() == 1) return;
    const auto end = Clock::now() + std::chrono::seconds(7);
    node.network->wait_until([&] { return Clock::now() > end; });
    if (node.self() == 0) std::printf("node 0 went on\n");
}

// --- waits that HIROBA_WAIT_TIMEOUT=2 ends -------------------------------------------------------

/// Node 1 is busy with something else.
void busy_while(void (*waiting)(Connected&)) {
    Connected node;
    if (node.self() == 1)
        std::this_thread::sleep_for(std::chrono::seconds(25));
    else
        waiting(node);
    wrong("it went on");
}
void long_kick_barrier() {
    busy_while([](Connected& node) { node.barrier->arrive_and_wait(); });
}
void long_wait() {
    busy_while([](Connected& node) { node.await_end(); });
}
void long_board_wait() {
    busy_while([](Connected& node) { node.board->wait_for([] { return false; }); });
}
void long_barrier() {
    busy_while([](Connected& node) { node.network->barrier(); });
}
void long_leave() {
    busy_while([](Connected& node) {
        node.items.reset();
        node.network.reset();
    });
}

// --- nodes that call different collectives -------------------------------------------------------

/// Calls `of_first` on node 0 and `of_others` elsewhere.
void unequal_calls(void (*of_first)(Node&), void (*of_others)(Node&)) {
    Connected node;
    node.network->barrier();
    (node.self() == 0 ? of_first : of_others)(node);
    node.network->barrier();
    wrong("it went on");
}
void broadcast_from(Node& node, std::uint32_t root, std::size_t bytes) {
    node.network->broadcast(NodeId{root}, std::span(node.bytes).first(bytes));
}
void reduce(Node& node, std::size_t count) {
    std::vector<int> values(count, 1);
    node.network->all_reduce(std::span(values), std::plus<>{});
}
void other_root() {
    unequal_calls([](Node& node) { broadcast_from(node, 0, 8); },
                  [](Node& node) { broadcast_from(node, 1, 8); });
}
void other_size() {
    unequal_calls([](Node& node) { reduce(node, 100); }, [](Node& node) { reduce(node, 200); });
}
void more_pieces() {
    unequal_calls([](Node& node) { reduce(node, 2000); }, [](Node& node) { reduce(node, 4000); });
}
void other_kind() {
    unequal_calls([](Node& node) { reduce(node, 2); },
                  [](Node& node) { broadcast_from(node, 1, 8); });
}
void barrier_and_broadcast() {
    unequal_calls([](Node& node) { node.network->barrier(); },
                  [](Node& node) { broadcast_from(node, 0, 8); });
}

// --- boards that are not set up alike ------------------------------------------------------------

void other_order() {
    Node node;
    const std::size_t sizes[] = {8, 128};
    const bool first = node.self() == 0;
    require(node.board->reserve(sizes[first ? 0 : 1]).has_value(), "reserve");
    require(node.board->reserve(sizes[first ? 1 : 0]).has_value(), "reserve");
    node.connect();
}
void one_more() {
    Node node;
    if (node.self() == 1) require(node.board->reserve(8).has_value(), "reserve");
    node.connect();
}
void from_nobody() {
    Node node;
    const auto to = node.self() == 0 ? std::optional(NodeId{1}) : std::nullopt;
    const auto window = node.board->window(64, to, {}, &node.why);
    require(window != nullptr, node.why.c_str());
    node.connect();
}
/// All send to the next, and receive from it too.
void from_the_next() {
    Node node;
    require(node.board->window(64, node.next, node.next, &node.why) != nullptr, node.why.c_str());
    node.connect();
}

// --- objects of kicks out of turn ----------------------------------------------------------------

void take_of_nothing() {
    Connected node;
    node.window->take();
}
void take_twice() {
    Connected node;
    require(node.window->send(8), "send");
    node.window->receive();
    node.window->take();
    node.window->take();
}
void arrive_twice() {
    Connected node;
    if (node.self() != 0) node.await_end();
    node.barrier->arrive();
    node.barrier->arrive();
}
void wait_alone() {
    Connected node;
    node.barrier->wait();
}
void no_member() {
    Connected node;
    (*node.chosen)(5, node.network->nodes());
}
void other_member() {
    Connected node;
    (*node.chosen)(5, node.self() == 0 ? 0 : 1);
}
/// A large value in the tree: the root travels beside it.
void other_member_of_pair() {
    Node node;
    using Pair = std::array<long, 2>;
    auto pair = node.board->broadcast<Pair>({}, kick::Shape::tree, &node.why);
    require(pair.has_value(), node.why.c_str());
    node.connect();
    require((*pair)(Pair{1, node.self()}, 1) == Pair{1, 1}, "a broadcast of a pair");
    (*pair)(Pair{5, 6}, node.self() == 0 ? 0 : 1);
    wrong("it went on");
}
void sum_and_broadcast() {
    Node node;
    auto values = node.self() == 0 ? node.board->broadcast<long>() : std::nullopt;
    auto sums = node.self() != 0 ? node.board->all_reduce<long>() : std::nullopt;
    node.connect();
    if (values)
        (*values)(5, 0);
    else
        (*sums)(5);
    wrong("it went on");
}
void other_value_size() {
    Node node;
    if (node.self() == 0)
        node.board->broadcast<int>();
    else
        node.board->broadcast<long>();
    node.connect();
}

// --- waits where nobody may wait -----------------------------------------------------------------

/// Node 0 has node 1's handler run `wait`.
void wait_in_handler(Node& node, std::function<void()> wait) {
    in_handler = std::move(wait);
    node.network->barrier();
    if (node.self() == 0)
        accepted(*node.network, [&] {
            return node.network->try_message_async({.target = NodeId{1}, .id = message_id});
        });
    node.await_end();
}
void board_wait_in_handler() {
    Connected node;
    wait_in_handler(node, [&] { node.board->wait_for([] { return false; }); });
}
void kick_barrier_in_handler() {
    Connected node;
    wait_in_handler(node, [&] { node.barrier->arrive_and_wait(); });
}
void receive_in_handler() {
    Connected node;
    wait_in_handler(node, [&] { node.items->receive(); });
}
net::Network* of_callback = nullptr;
/// Over shm the callback runs within the call that makes the request.
void barrier_in_callback() {
    Connected node;
    of_callback = node.network.get();
    const net::Callback waits{[](void*, net::Outcome) noexcept { of_callback->barrier(); },
                              nullptr};
    accepted(*node.network, [&] { return node.network->try_write_async(node.write(waits)); });
    node.await_end();
}
void early_wait() {
    Node node;
    node.network->wait_until([] { return false; });
}
void early_wake() {
    Node node;
    node.network->wake();
}
void early_board_wait() {
    Node node;
    node.board->wait_for([] { return false; });
}
void pending_destroyed() {
    Connected node;
    net::Pending pending;
    // What a request that has been accepted and is not over has done.
    pending.callback().under_way->fetch_add(1);
}

// --- what is none --------------------------------------------------------------------------------

bool ready() { return true; }
int larger(int a, int b) { return a > b ? a : b; }
long larger_long(long a, long b) { return a > b ? a : b; }

/// Node 1 comes late, to those that have asked it whether it left, sends and leaves at once.
void late() {
    Connected node;
    if (node.self() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    node.barrier->arrive_and_wait();
    require((*node.total)(1) == node.network->nodes(), "a sum with one that came late");
    if (node.self() == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        node.items->send(7);
        require(node.window->send(8), "a window just before the end");
    } else if (node.before.value == 1) {
        require(node.window->receive().size() == 8, "a window of one that left");
        std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        require(node.items->receive() == 7, "an item of one that left");
        std::printf("late and right over %s\n", node.network->provider());
    }
}
/// Plain functions are callables, a barrier may be asked first and waited for then, and a channel
/// that ends sends what was streamed.
void no_misuse() {
    Connected node;
    const unsigned self = node.self(), last = node.network->nodes() - 1;
    require(node.network->wait_until(ready), "a plain function as a predicate");
    node.board->wait_for(ready);
    require(node.network->all_reduce(static_cast<int>(self), larger) == static_cast<int>(last),
            "a plain function as an operation");
    require((*node.total)(self, larger_long) == last, "a plain function as a kick operation");
    require((*node.chosen)(self + 5, last) == last + 5, "a broadcast of the last member");
    for (unsigned i = 0; i < 3; ++i) {
        node.barrier->arrive();
        node.board->wait_for([&] { return node.barrier->passed(); });
        if (i == 1) node.barrier->wait();
    }
    node.items->stream(7);
    auto items = std::move(node.items);
    int item = 0;
    if (self == 0) {
        item = 7;
        items.reset();
    } else {
        item = items->receive();
        items->flush();
    }
    require(item == 7, "an item of a channel that ended");
    node.network->barrier();
    if (self == 0) std::printf("no misuse over %s\n", node.network->provider());
}

}  // namespace
}  // namespace net_face

int main(int argc, char** argv) {
    using namespace net_face;
    watch_steps();
    const std::pair<const char*, void (*)()> cases[] = {
        {"left_by_exit", left_by_exit},
        {"left_by_quick_exit", left_by_quick_exit},
        {"left_second_by_exit", left_second_by_exit},
        {"left_before_connect", left_before_connect},
        {"left_in_barrier", left_in_barrier},
        {"left_in_kick_barrier", left_in_kick_barrier},
        {"left_late", left_late},
        {"left_in_sum", left_in_sum},
        {"left_in_sum_of_tree", left_in_sum_of_tree},
        {"left_without_sending", left_without_sending},
        {"left_without_taking", left_without_taking},
        {"left_without_items", left_without_items},
        {"left_with_full_channel", left_with_full_channel},
        {"left_in_wait", left_in_wait},
        {"long_kick_barrier", long_kick_barrier},
        {"long_wait", long_wait},
        {"long_board_wait", long_board_wait},
        {"long_barrier", long_barrier},
        {"long_leave", long_leave},
        {"late", late},
        {"other_root", other_root},
        {"other_size", other_size},
        {"more_pieces", more_pieces},
        {"other_kind", other_kind},
        {"barrier_and_broadcast", barrier_and_broadcast},
        {"other_order", other_order},
        {"one_more", one_more},
        {"from_nobody", from_nobody},
        {"from_the_next", from_the_next},
        {"take_of_nothing", take_of_nothing},
        {"take_twice", take_twice},
        {"arrive_twice", arrive_twice},
        {"wait_alone", wait_alone},
        {"no_member", no_member},
        {"other_member", other_member},
        {"other_member_of_pair", other_member_of_pair},
        {"sum_and_broadcast", sum_and_broadcast},
        {"other_value_size", other_value_size},
        {"board_wait_in_handler", board_wait_in_handler},
        {"kick_barrier_in_handler", kick_barrier_in_handler},
        {"receive_in_handler", receive_in_handler},
        {"barrier_in_callback", barrier_in_callback},
        {"early_wait", early_wait},
        {"early_wake", early_wake},
        {"early_board_wait", early_board_wait},
        {"pending_destroyed", pending_destroyed}};
    if (argc == 1) return no_misuse(), 0;
    for (const auto& [name, run] : cases)
        if (std::strcmp(name, argv[1]) == 0) return run(), 0;
    return 64;
}
