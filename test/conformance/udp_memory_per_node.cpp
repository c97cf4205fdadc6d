// SPDX-License-Identifier: BSD-3-Clause
// Role: prints how much memory provider udp takes on each node of jobs of 2, 16 and 1024 nodes, all
// in this process, of which each talks to one other; fails when a peer never talked to costs more
// than 64 bytes. Heap is what grows with the job; resident memory says what a peer talked to costs.
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "net/provider/udp/udp_provider.hpp"

namespace {

using hiroba::Bytes;
using hiroba::NodeId;
using hiroba::net::ControlChannel;
using hiroba::net::OpId;
using hiroba::net::udp::UdpProvider;

/// Where threads that stand for nodes exchange their cards.
class Meeting {
public:
    explicit Meeting(std::uint32_t nodes) : cards_(nodes) {}
    ControlChannel::Gathered gather(std::uint32_t self, Bytes card) {
        std::unique_lock lock{mutex_};
        cards_[self].assign(card.begin(), card.end());
        if (++come_ == cards_.size()) all_here_.notify_all();
        all_here_.wait(lock, [&] { return come_ == cards_.size(); });
        ControlChannel::Gathered all;
        all.bytes = cards_;
        return all;
    }

private:
    std::mutex mutex_;
    std::condition_variable all_here_;
    std::vector<std::vector<std::byte>> cards_;
    std::size_t come_ = 0;
};

struct Counter final : hiroba::net::Arrivals {
    void message(NodeId, hiroba::net::MessageKind, Bytes) noexcept override {}
    void completed(OpId) noexcept override { ++completions; }
    std::size_t completions = 0;
};

std::size_t heap_bytes() {
    malloc_trim(0);
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

std::size_t resident_bytes() {
    std::size_t all = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

using Nodes = std::vector<std::unique_ptr<UdpProvider>>;

bool connect_all(Nodes& nodes, Meeting& meeting) {
    std::vector<std::thread> threads;
    std::atomic<std::uint32_t> connected{0};
    const auto count = static_cast<std::uint32_t>(nodes.size());
    for (std::uint32_t rank = 0; rank < count; ++rank) {
        hiroba::net::ProviderSetup setup{
            .self = NodeId{rank}, .nodes = count, .job_key = 7, .exchange = {}};
        setup.exchange = [&meeting, rank](Bytes card, int) {
            return hiroba::Result<ControlChannel::Gathered>(meeting.gather(rank, card));
        };
        nodes[rank] =
            std::make_unique<UdpProvider>(std::move(setup), hiroba::net::udp::Weather{}, 0);
        threads.emplace_back([&connected, node = nodes[rank].get()] {
            if (!node->allocate(4096)) return;
            const auto met = node->connect();
            if (!met) std::printf("%s\n", met.error().text.c_str());
            connected += met ? 1 : 0;
        });
    }
    for (std::thread& thread : threads) thread.join();
    return connected == count;
}

/// Each node writes a word to the next.
bool talk_to_neighbours(Nodes& nodes) {
    const std::uint64_t word = 1;
    Counter counter;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
        const NodeId next{static_cast<std::uint32_t>((rank + 1) % nodes.size())};
        nodes[rank]->put(OpId{1}, next, {}, 0, std::as_bytes(std::span(&word, 1)));
    }
    for (int round = 0; round < 10'000 && counter.completions < nodes.size(); ++round) {
        for (auto& node : nodes) node->poll(counter, 8);
    }
    return counter.completions == nodes.size();
}

struct Cost {
    double heap = 0, resident = 0;
};

/// The cost of a node; negative when the nodes could not meet or talk.
Cost cost_of_node(std::uint32_t count) {
    Nodes nodes(count);
    auto meeting = std::make_unique<Meeting>(count);
    const std::size_t heap = heap_bytes(), resident = resident_bytes();
    if (!connect_all(nodes, *meeting) || !talk_to_neighbours(nodes)) return {-1, -1};
    meeting.reset();
    return {(static_cast<double>(heap_bytes()) - static_cast<double>(heap)) / count,
            (static_cast<double>(resident_bytes()) - static_cast<double>(resident)) / count};
}

}  // namespace

int main() {
    constexpr double bytes_per_quiet_peer_max = 64;
    constexpr rlim_t files_wanted =
        8192;  // a node has a socket, its bell, and one for each peer it talks to
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = std::min(files.rlim_max, std::max(files.rlim_cur, files_wanted));
    setrlimit(RLIMIT_NOFILE, &files);
    mallopt(M_ARENA_MAX, 1);  // threads that pass by leave nothing behind
    cost_of_node(2);          // what the library allocates once is there from now on
    double two = 0, growth = 0;
    for (const std::uint32_t nodes : {2u, 16u, 1024u}) {
        const Cost cost = cost_of_node(nodes);
        if (cost.heap < 0) {
            std::printf("%u nodes did not meet and talk; see ulimit -n\n", nodes);
            return 1;
        }
        if (nodes == 2) two = cost.heap;
        growth = nodes == 2 ? 0 : (cost.heap - two) / (nodes - 2);
        std::printf(
            "%5u nodes: %8.0f bytes of heap a node, %8.0f resident; %5.1f for each peer more\n",
            nodes, cost.heap, cost.resident, growth);
    }
    return growth <= bytes_per_quiet_peer_max ? 0 : 1;
}
