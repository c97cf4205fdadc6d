// SPDX-License-Identifier: BSD-3-Clause
// A task farm by active messages: nodes ask node 0 for work, it gives out numbers of tasks, and
// they send back what they found. The tasks are the placements of the first two queens of a board.
// Node 0 keeps its books in a library that may be entered by one thread alone: foreign calls, which
// the communication thread makes.
// Run: hiroba run --spmd -n 2 ./net_farm [queens, 4 to 13]
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hiroba/net.hpp"

namespace {

namespace net = hiroba::net;
using hiroba::NodeId;
using Word = std::uint64_t;

constexpr Word solutions_of[] = {1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712};
constexpr net::ActiveId wanted_id{0}, task_id{1}, found_id{2};
constexpr Word no_more = ~Word{0};

Word place_queens(unsigned queens, unsigned row, Word columns, Word left, Word right) {
    if (row == queens) return 1;
    Word found = 0;
    for (Word free = ~(columns | left | right) & ((Word{1} << queens) - 1); free != 0;) {
        const Word queen = free & (~free + 1);
        free ^= queen;
        found += place_queens(queens, row + 1, columns | queen, (left | queen) << 1,
                              (right | queen) >> 1);
    }
    return found;
}

/// Boards whose first two queens stand where `task` says.
Word solve(unsigned queens, Word task) {
    const Word first = Word{1} << task / queens, second = Word{1} << task % queens;
    const Word columns = first, left = first << 1, right = first >> 1;
    if (((columns | left | right) & second) != 0) return 0;
    return place_queens(queens, 2, columns | second, (left | second) << 1, (right | second) >> 1);
}

/// Stands for a library without locks that belongs to the thread that called it first.
struct Ledger {
    std::thread::id owner{};
    Word entries = 0, sum = 0;
    bool entered_by_others = false;
    void enter(Word amount) {
        if (entries == 0) owner = std::this_thread::get_id();
        entered_by_others = entered_by_others || owner != std::this_thread::get_id();
        ++entries;
        sum += amount;
    }
};

/// What messages bring. Handlers only put it down: they must not wait, and a task is long.
struct Inbox {
    std::mutex latch;
    std::deque<NodeId> asking;           ///< at node 0
    std::vector<Word> found;             ///< at node 0
    std::atomic<std::uint32_t> mail{0};  ///< at node 0: how much lies in both
    std::atomic<Word> task{no_more};
    std::atomic<bool> answered{false};

    static void wanted(void* context, NodeId from, std::span<const Word>,
                       std::span<const std::byte>) noexcept {
        auto& self = *static_cast<Inbox*>(context);
        const std::scoped_lock guard{self.latch};
        self.asking.push_back(from);
        self.mail.fetch_add(1);
    }
    static void given(void* context, NodeId, std::span<const Word> arguments,
                      std::span<const std::byte>) noexcept {
        auto& self = *static_cast<Inbox*>(context);
        self.task = arguments[0];
        self.answered = true;
    }
    static void came(void* context, NodeId, std::span<const Word> arguments,
                     std::span<const std::byte>) noexcept {
        auto& self = *static_cast<Inbox*>(context);
        const std::scoped_lock guard{self.latch};
        self.found.push_back(arguments[0]);
        self.mail.fetch_add(1);
    }
};

/// Ends the process, and with it the job: a wrong argument.
template <class Params>
[[noreturn]] void give_up(net::Network& network, const Params& params) {
    std::fprintf(stderr, "%s\n", network.why_refused(params).c_str());
    std::exit(1);
}

void send(net::Network& network, NodeId to, net::ActiveId id, Word argument) {
    const net::MessageParams message{.target = to, .id = id, .arguments = std::span(&argument, 1)};
    if (network.insist([&] { return network.try_message_async(message); }) ==
        net::Submission::refused) {
        give_up(network, message);
    }
}

/// Every node but 0.
void work(net::Network& network, Inbox& inbox, unsigned queens) {
    while (true) {
        inbox.answered = false;
        send(network, NodeId{0}, wanted_id, 0);
        network.wait_until([&] { return inbox.answered.load(); });
        const Word task = inbox.task;
        if (task == no_more) return;
        send(network, NodeId{0}, found_id, solve(queens, task));
    }
}

/// Node 0 hands out tasks, takes one itself when nobody asks, and enters what was found.
class Master {
public:
    Master(net::Network& network, Inbox& inbox, unsigned queens)
        : network_(network), inbox_(inbox), queens_(queens), tasks_(Word{queens} * queens) {}

    Word run() {
        Word retired = 0;  // nodes that were told that there is no more
        while (entered_ < tasks_ || retired + 1 < network_.nodes()) {
            take_mail();
            for (const NodeId node : asking_) {
                retired += next_ == tasks_;
                send(network_, node, task_id, next_ == tasks_ ? no_more : next_++);
            }
            for (const Word found : found_) enter(found);
            if (!asking_.empty() || !found_.empty()) continue;
            if (next_ < tasks_) {
                enter(solve(queens_, next_++));
            } else {
                network_.wait_until([&] { return inbox_.mail.load() != 0; });
            }
        }
        network_.wait(calls_);
        return ledger_.entered_by_others ? 0 : ledger_.sum;
    }

private:
    struct Entry {
        Ledger* ledger;
        Word amount;
    };
    void take_mail() {
        const std::scoped_lock guard{inbox_.latch};
        asking_.assign(inbox_.asking.begin(), inbox_.asking.end());
        found_ = inbox_.found;
        inbox_.asking.clear();
        inbox_.found.clear();
        inbox_.mail = 0;
    }
    void enter(Word amount) {
        Entry& entry = entries_.emplace_back(Entry{&ledger_, amount});
        const net::CallParams call{[](void* data) noexcept {
                                       const auto& it = *static_cast<Entry*>(data);
                                       it.ledger->enter(it.amount);
                                   },
                                   &entry, calls_.callback()};
        if (network_.insist([&] { return network_.try_call_async(call); }) ==
            net::Submission::refused) {
            give_up(network_, call);
        }
        ++entered_;
    }
    net::Network& network_;
    Inbox& inbox_;
    unsigned queens_;
    Word tasks_, next_ = 0, entered_ = 0;
    std::vector<NodeId> asking_;
    std::vector<Word> found_;
    Ledger ledger_;
    std::deque<Entry> entries_;
    net::Pending calls_;
};

}  // namespace

int main(int argc, char** argv) {
    const unsigned long queens = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 10;
    if (queens < 4 || queens > 13) {
        std::fprintf(stderr, "usage: net_farm [queens, 4 to 13]\n");
        return 64;
    }
    std::string why;
    Inbox inbox;  // outlives the network, whose messages use it
    const auto network = net::Network::open(&why);
    if (network != nullptr) {
        network->on(wanted_id, Inbox::wanted, &inbox);
        network->on(task_id, Inbox::given, &inbox);
        network->on(found_id, Inbox::came, &inbox);
    }
    if (network == nullptr || !network->connect(&why)) {
        std::fprintf(stderr, "%s\n", why.c_str());
        return 78;
    }
    const auto size = static_cast<unsigned>(queens);
    if (network->self() != NodeId{0}) {
        work(*network, inbox, size);
        return 0;
    }
    const Word found = Master{*network, inbox, size}.run();
    const bool good = found == solutions_of[queens];
    std::printf("%lu queens stand in %lu ways, by %u nodes: VERIFICATION %s\n", queens, found,
                network->nodes(), good ? "SUCCESSFUL" : "FAILED");
    return good ? 0 : 1;
}
