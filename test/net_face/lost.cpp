// SPDX-License-Identifier: BSD-3-Clause
// Role: a program of a user of which one node dies, or stands still for a second, in the middle of
// requests of two threads of each node to all others. Of the dead: what is pending ends soon, with
// Outcome::peer_lost unless its memory is still mapped, later requests too, messages and kicks to
// it hold nobody up, and the others go on. Of the one that stood still: nothing is lost.
// Usage: lost killed|stopped; with HIROBA_LOSS_GRACE for `killed`.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "net_face/job.hpp"

namespace net_face {
namespace {

constexpr unsigned threads_count = 2;
constexpr std::size_t nodes_max = 8, place_bytes = 4096;
constexpr net::ActiveId told_id{0};
using Clock = std::chrono::steady_clock;

class Work {
public:
    Work() : network_(open_network()), board_(kick::Board::make(*network_, &why_)) {
        require(board_ != nullptr, why_.c_str());
        nodes_ = network_->nodes();
        self_ = network_->self().value;
        require(nodes_ >= 3 && nodes_ <= nodes_max, "three to eight nodes");
        victim_ = nodes_ - 1;
        const auto memory =
            network_->allocate(nodes_max * threads_count * place_bytes + place_bytes, &why_);
        const auto place = board_->reserve(8 * nodes_max);
        require(memory && place, why_.c_str());
        memory_ = *memory;
        network_->on(
            told_id,
            [](void* count, NodeId, std::span<const std::uint64_t>,
               std::span<const std::byte>) noexcept {
                static_cast<std::atomic<std::uint64_t>*>(count)->fetch_add(1);
            },
            &told_);
        require(network_->connect(&why_), why_.c_str());
        const auto mine = network_->register_local(std::span(mine_), &why_);
        require(mine.has_value(), why_.c_str());
        mine_handle_ = *mine;
        kick_ = board_->kick<std::uint64_t>(NodeId{victim_}, *place);
        kick_offset_ = static_cast<std::uint32_t>(*place % kick::page_bytes + 8 * self_);
        require(kick_.has_value(), "a kick");
        const pid_t self = getpid();
        network_->all_gather(std::as_bytes(std::span(&self, 1)),
                             std::as_writable_bytes(std::span(processes_).first(nodes_)));
    }

    void killed() {
        const net::Handle served = served_of_victim();
        start_threads();
        std::thread asking([&] {
            while (self_ != victim_ && ask(served) == net::Ended::done) step();
        });
        await_rounds(200);
        if (self_ == victim_) raise(SIGKILL);
        await([&] { return lost_.load() != 0 || is_mapped(); }, "that a node was lost");
        const std::uint64_t before = rounds_.load();
        await_rounds(before + 200);
        for (unsigned i = 0; i < 1000; ++i) {
            kick_->store(kick_offset_, i);
            board_->wake(NodeId{victim_});
            step();
        }
        stop_threads();
        asking.join();  // what waited for an answer has ended, and so does what is asked now
        require(ask(served) == net::Ended::peer_lost, "a question to the dead, later");
        require(others_lost_.load() == 0, "a request to a node that lives was lost");
        require((lost_.load() != 0) != is_mapped(),
                "requests to the dead, by mapped memory or not");
        net::Pending late;
        request(NodeId{victim_}, 1, 0, late);
        require(network_->wait(late) == is_mapped(), "a request to the dead, later");
        std::printf("node %u went on without node %u\n", self_, victim_);
        std::fflush(stdout);
        part();
        _exit(0);
    }

    void stopped() {
        start_threads();
        await_rounds(50);
        if (self_ == 0) {
            kill(processes_[victim_], SIGSTOP);
            const auto until = Clock::now() + std::chrono::seconds(1);
            while (Clock::now() < until) usleep(1000), step();
            kill(processes_[victim_], SIGCONT);
        }
        await_rounds(rounds_.load() + 200);
        stop_threads();
        require(lost_.load() + others_lost_.load() == 0, "a request was lost");
        network_->barrier();
        // Each thread adds 1 in each round to a word of each other node.
        std::uint64_t asked = rounds_.load(), all = 0;
        all = network_->all_reduce(asked, std::plus<>{});
        std::uint64_t here = 0;
        std::memcpy(&here, network_->local(memory_).data(), sizeof here);
        require(here == all - asked, [&] {
            return std::to_string(here) + " additions of " + std::to_string(all - asked);
        });
        network_->barrier();
        if (self_ == 0) std::printf("%u nodes missed nothing\n", nodes_);
    }

private:
    /// Waits until all that live have come here, and have heard that this node has: barriers would
    /// wait for the dead.
    void part() {
        const auto here = network_->local<std::uint64_t>(memory_);
        for (std::uint32_t node = 0; node < victim_; ++node) {
            if (node == self_) continue;
            std::memset(mine_.data(), 1, 8);
            net::Pending told;
            accepted(*network_, [&] {
                const net::WriteParams write{NodeId{node},
                                             {mine_handle_, 0},
                                             {memory_, 8 * (1 + self_)},
                                             8,
                                             told.callback()};
                return network_->try_write_async(write);
            });
            require(network_->wait(told), "a word of farewell");
        }
        for (std::uint32_t node = 0; node < victim_; ++node) {
            if (node == self_) continue;
            await([&] { return std::atomic_ref(here[1 + node]).load() != 0; }, "the other's end");
        }
        network_->wait_until([] { return false; }, 200'000'000);  // acknowledges what came last
    }
    /// Memory of the victim's own, which its handlers read for others.
    net::Handle served_of_victim() {
        const auto mine = network_->expose(std::span(mine_), &why_);
        require(mine.has_value(), why_.c_str());
        net::Exposed of_victim = *mine;
        network_->broadcast(NodeId{victim_}, std::as_writable_bytes(std::span(&of_victim, 1)));
        const auto attached = network_->attach(of_victim, &why_);
        require(attached.has_value(), why_.c_str());
        return *attached;
    }
    net::Ended ask(net::Handle served) {
        std::array<std::byte, 100> bytes;
        return network_->read(NodeId{victim_}, {served, 0}, bytes);
    }
    bool is_mapped() const { return network_->mapped(memory_, NodeId{victim_}) != nullptr; }

    /// Makes request number `i` of those of a round: an atomic, a write, a read, a message.
    void request(NodeId node, unsigned i, unsigned thread, net::Pending& pending) {
        const std::uint64_t at = place_bytes * (1 + self_ * threads_count + thread);
        const net::LocalAddress mine{mine_handle_, place_bytes * thread};
        accepted(*network_, [&] {
            const net::Callback then = pending.callback();
            net::Submission made = net::Submission::refused;
            switch (i) {
                case 0:
                    made = network_->try_atomic_async({.target = node,
                                                       .at = {memory_, 0},
                                                       .op = net::AtomicOp::fetch_add,
                                                       .bytes = 8,
                                                       .operand = 1,
                                                       .old = mine,
                                                       .on_complete = then});
                    break;
                case 1:
                    made = network_->try_write_async({node, mine, {memory_, at}, 2000, then});
                    break;
                case 2:
                    made = network_->try_read_async({node, {memory_, at}, mine, 2000, then});
                    break;
                default:
                    made = network_->try_message_async(
                        {.target = node, .id = told_id, .on_complete = then});
            }
            return made;
        });
    }

    void work(unsigned thread) {
        std::array<net::Pending, nodes_max> pending;
        while (!over_.load()) {
            for (std::uint32_t node = 0; node < nodes_; ++node) {
                if (node == self_) continue;
                for (unsigned i = 0; i < 4; ++i) request(NodeId{node}, i, thread, pending[node]);
            }
            for (std::uint32_t node = 0; node < nodes_; ++node) {
                if (network_->wait(pending[node])) continue;
                (node == victim_ ? lost_ : others_lost_).fetch_add(1);
            }
            rounds_.fetch_add(1);
            network_->wake();
            step();
        }
    }
    void start_threads() {
        for (unsigned thread = 0; thread < threads_count; ++thread)
            threads_.emplace_back([this, thread] { work(thread); });
    }
    void stop_threads() {
        over_ = true;
        for (std::thread& thread : threads_) thread.join();
    }
    template <class Look>
    void await(Look&& look, const char* what) {
        constexpr std::uint64_t limit_ns = 20'000'000'000;
        require(network_->wait_until(look, limit_ns), what);
    }
    void await_rounds(std::uint64_t count) {
        await([&] { return rounds_.load() >= count; }, "rounds");
    }

    std::string why_;
    std::unique_ptr<net::Network> network_;
    std::unique_ptr<kick::Board> board_;
    std::uint32_t nodes_ = 0, self_ = 0, victim_ = 0;
    net::Handle memory_, mine_handle_;
    std::vector<std::byte> mine_ = std::vector<std::byte>(threads_count * place_bytes);
    std::optional<kick::Kick<std::uint64_t>> kick_;
    std::uint32_t kick_offset_ = 0;
    std::array<pid_t, nodes_max> processes_{};
    std::vector<std::thread> threads_;
    std::atomic<std::uint64_t> told_{0}, rounds_{0}, lost_{0}, others_lost_{0};
    std::atomic<bool> over_{false};
};

}  // namespace
}  // namespace net_face

int main(int argc, char** argv) {
    net_face::watch_steps();
    const std::string_view what = argc > 1 ? argv[1] : "";
    net_face::Work work;
    if (what == "killed") work.killed();
    if (what == "stopped") work.stopped();
    return 0;
}
