// SPDX-License-Identifier: BSD-3-Clause
// Role: a program of a user that makes every kind of request, kick and collective, round by round,
// and checks everything that comes: each atomic happened once, each message came once and whole,
// each byte is what its writer wrote last, and no other byte was written.
// Usage: every_request ROUNDS; the network it runs on is bad, or somebody throws datagrams at it.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "net_face/job.hpp"

namespace net_face {
namespace {

constexpr std::size_t page = 4096, area_bytes = 6 * page, nodes_max = 8;
constexpr std::size_t sizes[] = {8, 100, 1500, 5000, 20'000, 0, 1, 8191};
constexpr unsigned adds_of_round = 4;
constexpr net::ActiveId told_id{3};
constexpr std::uint32_t window_bytes = 1200;

/// Byte `at` of what `writer` writes in `round`; never 0.
std::byte pattern(std::uint32_t writer, std::uint64_t round, std::size_t at) {
    const std::uint64_t mixed =
        (round * 0x9E37'79B9'7F4A'7C15u + writer * 0xC2B2'AE3Du + at) * 0xBF58'476D'1CE4'E5B9u;
    return static_cast<std::byte>(1 + mixed % 255);
}
void fill(std::span<std::byte> bytes, std::uint32_t writer, std::uint64_t round) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern(writer, round, i);
}
void check(std::span<const std::byte> bytes, std::uint32_t writer, std::uint64_t round,
           const char* what) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        require(bytes[i] == pattern(writer, round, i), [&] {
            return "byte " + std::to_string(i) + " of " + std::to_string(bytes.size()) + " of " +
                   what + " by node " + std::to_string(writer) + " in round " +
                   std::to_string(round) + " is another's";
        });
    }
}

/// What active messages brought to this node.
struct Mail {
    std::uint64_t rounds = 0;
    std::array<std::vector<std::uint8_t>, nodes_max> seen;
    std::array<std::atomic<std::uint64_t>, nodes_max> count{};

    static void take(void* context, NodeId from, std::span<const std::uint64_t> arguments,
                     std::span<const std::byte> payload) noexcept {
        auto& self = *static_cast<Mail*>(context);
        require(arguments.size() == 2 && arguments[0] == from.value, "a message's arguments");
        const std::uint64_t round = arguments[1];
        require(round >= 1 && round <= self.rounds, "a message of a round that there is not");
        require(self.seen[from.value][round]++ == 0, "a message came twice");
        check(payload, from.value, round, "a message");
        self.count[from.value].fetch_add(1, std::memory_order_release);  // pairs with Work::mail()
    }
};

class Work {
public:
    explicit Work(std::uint64_t rounds)
        : rounds_(rounds), network_(open_network()), board_(kick::Board::make(*network_, &why_)) {
        require(board_ != nullptr, why_.c_str());
        nodes_ = network_->nodes();
        self_ = network_->self().value;
        require(nodes_ >= 2 && nodes_ <= nodes_max, "two to eight nodes");
        // Each pair of a writer and a page between, which nobody writes.
        const auto memory = network_->allocate(page + nodes_ * (area_bytes + page), &why_);
        const auto place = board_->reserve(8 * nodes_max);
        require(memory && place, why_.c_str());
        memory_ = *memory;
        place_ = *place;
        window_ =
            board_->window(window_bytes, next(), NodeId{(self_ + nodes_ - 1) % nodes_}, &why_);
        auto channel = board_->channel<std::uint64_t>(next(), previous(), &why_);
        require(window_ != nullptr && channel, why_.c_str());
        channel_.emplace(std::move(*channel));
        mail_.rounds = rounds;
        for (auto& seen : mail_.seen) seen.resize(rounds + 1);
        network_->on(told_id, Mail::take, &mail_);
        require(network_->connect(&why_), why_.c_str());
        const auto mine = network_->register_local(std::span(mine_), &why_);
        const auto back = network_->register_local(std::span(back_), &why_);
        const auto old = network_->register_local(std::span(old_), &why_);
        require(mine && back && old, why_.c_str());
        mine_handle_ = *mine;
        back_handle_ = *back;
        old_handle_ = *old;
        for (std::uint32_t node = 0; node < nodes_; ++node)
            kicks_.push_back(board_->kick<std::uint64_t>(NodeId{node}, place_));
    }

    void run() {
        for (std::uint64_t round = 1; round <= rounds_; ++round) {
            const std::size_t bytes = sizes[round % std::size(sizes)];
            fill(std::span(mine_).first(bytes), self_, round);
            request(round, bytes);
            kick(round);
            require(network_->wait(pending_), "a node was lost");
            step();
            take_olds();
            network_->barrier();
            look(round, bytes);
            collect(round);
            network_->barrier();
            step();
        }
        finish();
    }

private:
    NodeId next() const { return NodeId{(self_ + 1) % nodes_}; }
    NodeId previous() const { return NodeId{(self_ + nodes_ - 1) % nodes_}; }
    static std::uint64_t area_of(std::uint32_t writer) {
        return page + writer * (area_bytes + page);
    }

    /// Writes, atomics and messages to all others, all under way together.
    void request(std::uint64_t round, std::size_t bytes) {
        for (std::uint32_t node = 0; node < nodes_; ++node) {
            if (node == self_) continue;
            accepted(*network_, [&] {
                return begin([&](net::Callback then) {
                    return network_->try_write_async({.target = NodeId{node},
                                                      .from = {mine_handle_, 0},
                                                      .to = {memory_, area_of(self_)},
                                                      .bytes = bytes,
                                                      .on_complete = then});
                });
            });
            for (unsigned i = 0; i < adds_of_round; ++i) add(node, i);
            const std::uint64_t arguments[] = {self_, round};
            accepted(*network_, [&] {
                return begin([&](net::Callback then) {
                    return network_->try_message_async({.target = NodeId{node},
                                                        .id = told_id,
                                                        .arguments = arguments,
                                                        .payload = {mine_handle_, 0},
                                                        .payload_bytes = bytes,
                                                        .on_complete = then});
                });
            });
        }
    }

    /// Adds 1 to a word of `node`, by turns of 8 and of 4 bytes.
    void add(std::uint32_t node, unsigned i) {
        const std::uint64_t place = node * adds_of_round + i;
        accepted(*network_, [&] {
            return begin([&](net::Callback then) {
                return network_->try_atomic_async({.target = NodeId{node},
                                                   .at = {memory_, i % 2 * 8},
                                                   .op = net::AtomicOp::fetch_add,
                                                   .bytes = i % 2 == 0 ? 8u : 4u,
                                                   .operand = 1,
                                                   .old = {old_handle_, 8 * place},
                                                   .on_complete = then});
            });
        });
    }

    template <class Make>
    net::Submission begin(Make&& make) {
        return make(pending_.callback());
    }

    /// A word, a window and a stream of items, each to where nobody else writes.
    void kick(std::uint64_t round) {
        for (std::uint32_t node = 0; node < nodes_; ++node) {
            if (node == self_) continue;
            kicks_[node]->store(static_cast<std::uint32_t>(place_ % page + 8 * self_), round);
            board_->wake(NodeId{node});
        }
        window_->await_room();
        fill(window_->payload().first(window_bytes), self_, round);
        require(window_->send(window_bytes, &why_), why_.c_str());
        for (std::uint64_t item = 0; item < 20; ++item) channel_->stream(20 * round + item);
        channel_->flush();
    }

    void take_olds() {
        for (std::uint32_t node = 0; node < nodes_; ++node) {
            if (node == self_) continue;
            for (unsigned i = 0; i < adds_of_round; ++i) {
                std::uint64_t old = old_[node * adds_of_round + i];
                if (i % 2 != 0) old &= 0xffff'ffffu;
                sums_[2 * node + i % 2] += old;
            }
        }
    }

    /// What the others wrote here, and what this node wrote there, read back.
    void look(std::uint64_t round, std::size_t bytes) {
        const auto here = network_->local(memory_);
        for (std::uint32_t node = 0; node < nodes_; ++node) {
            if (node == self_) continue;
            check(here.subspan(area_of(node), bytes), node, round, "a write");
            accepted(*network_, [&] {
                return begin([&](net::Callback then) {
                    return network_->try_read_async({.source = NodeId{node},
                                                     .from = {memory_, area_of(self_)},
                                                     .to = {back_handle_, 0},
                                                     .bytes = bytes,
                                                     .on_complete = then});
                });
            });
            require(network_->wait(pending_), "a node was lost");
            check(std::span(back_).first(bytes), self_, round, "a read");
            board_->wait_until<std::uint64_t>(place_ + 8 * node,
                                              [&](std::uint64_t came) { return came >= round; });
            require(board_->load<std::uint64_t>(place_ + 8 * node) == round, "a kick");
            network_->wait_until([&] {
                return mail_.count[node].load(std::memory_order_acquire) == round;  // Mail::take()
            });
            step();
        }
        const auto came = window_->receive();
        check(came.first(window_bytes), previous().value, round, "a window");
        window_->take();
        for (std::uint64_t item = 0; item < 20; ++item)
            require(channel_->receive() == 20 * round + item, "an item of a stream");
    }

    void collect(std::uint64_t round) {
        const std::uint64_t mine = round * 100 + self_;
        std::uint64_t expected = 0;
        for (std::uint64_t node = 0; node < nodes_; ++node) expected += round * 100 + node;
        require(network_->all_reduce(mine, std::plus<>{}) == expected, "all_reduce");
        std::array<std::uint64_t, nodes_max> all{};
        network_->all_gather(std::as_bytes(std::span(&mine, 1)),
                             std::as_writable_bytes(std::span(all).first(nodes_)));
        for (std::uint64_t node = 0; node < nodes_; ++node)
            require(all[node] == round * 100 + node, "all_gather");
        const NodeId root{static_cast<std::uint32_t>(round % nodes_)};
        std::uint64_t given = mine;
        network_->broadcast(root, std::as_writable_bytes(std::span(&given, 1)));
        require(given == round * 100 + root.value, "broadcast");
    }

    /// Each atomic happened once, and nothing was written where nobody writes.
    void finish() {
        const std::uint64_t count = rounds_ * (nodes_ - 1) * adds_of_round / 2;
        const auto here = network_->local(memory_);
        std::uint64_t word;
        std::uint32_t narrow;
        std::memcpy(&word, here.data(), sizeof word);
        std::memcpy(&narrow, here.data() + 8, sizeof narrow);
        require(word == count && narrow == count, [&] {
            return std::to_string(word) + " and " + std::to_string(narrow) + " additions of " +
                   std::to_string(count);
        });
        network_->all_reduce(std::span(sums_), std::plus<>{});
        for (std::uint32_t at = 0; at < 2 * nodes_; ++at)
            require(sums_[at] == count * (count - 1) / 2, "an atomic's old value came twice");
        const auto untouched = [&](std::size_t from, std::size_t to) {
            for (std::size_t i = from; i < to; ++i)
                require(here[i] == std::byte{}, "a byte that nobody writes was written");
        };
        untouched(12, page);
        for (std::uint32_t node = 0; node < nodes_; ++node)
            untouched(area_of(node) + (node == self_ ? 0 : area_bytes), area_of(node + 1));
        for (std::uint32_t node = 0; node < nodes_; ++node)
            require(mail_.count[node] == (node == self_ ? 0 : rounds_), "messages");
        require(board_->refused() == 0, "a kick was refused");
        network_->barrier();
        if (self_ != 0) return;
        std::printf("%lu rounds on %u nodes over %s: right\n", rounds_, nodes_,
                    network_->provider());
        std::fflush(stdout);  // before what others say at their end
    }

    std::uint64_t rounds_;
    std::string why_;
    Mail mail_;
    std::vector<std::byte> mine_ = std::vector<std::byte>(area_bytes);
    std::vector<std::byte> back_ = std::vector<std::byte>(area_bytes);
    std::array<std::uint64_t, nodes_max * adds_of_round> old_{};
    std::array<std::uint64_t, 2 * nodes_max> sums_{};
    net::Pending pending_;
    std::unique_ptr<net::Network> network_;
    std::unique_ptr<kick::Board> board_;
    std::uint32_t nodes_ = 0, self_ = 0;
    net::Handle memory_, mine_handle_, back_handle_, old_handle_;
    kick::Offset place_ = 0;
    std::unique_ptr<kick::Window> window_;
    std::optional<kick::Channel<std::uint64_t>> channel_;
    std::vector<std::optional<kick::Kick<std::uint64_t>>> kicks_;
};

}  // namespace
}  // namespace net_face

int main(int argc, char** argv) {
    net_face::watch_steps();
    net_face::Work work{argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 40};
    work.run();
    return 0;
}
