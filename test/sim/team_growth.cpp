// SPDX-License-Identifier: BSD-3-Clause
// Role: prints what a region and a barrier of OpenMP take between 2 to N simulated nodes, and what
// one node sends and receives, on wires as fast as mapped memory, as datagrams and as InfiniBand;
// bench/team_growth.py draws it. Usage: sim_team_growth [N]
// Fails when a barrier does not hold; when one node sends or receives more mails in a barrier than
// a tree of arity 8 has neighbours, or more than twice as many in the fork and the join of a
// region, where other hosts are told at the join, too; when its card has more packets than those
// mails, where no node has anything to tell; or when a way takes more than three times the
// shortest.
//
// What runs is TeamLink with its mailboxes; memory and heap do nothing but count, and news are as
// many bytes as nodes have something to tell: none, or one notice each.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "dsm/test_parts/idle_heap.hpp"
#include "dsm/test_parts/idle_memory.hpp"
#include "net/kick/kick.hpp"
#include "net/kick/peer_queue.hpp"
#include "omp/team/team_link.hpp"
#include "sim/sim_job.hpp"

namespace {

using namespace hiroba;

constexpr std::uint32_t notice_bytes = 12;

// --- room for the mailboxes of all nodes in one process ------------------------------------------

// A node reserves 256 KiB of addresses for each peer: 1024 nodes together more than a process has.
// Their mails are short, so queues lie beside each other in the places of one.
constexpr std::size_t queue_bytes =
    net::kick::PeerQueue::places * net::kick::PeerQueue::body_bytes_max;
constexpr std::size_t beside = 4;
constexpr std::size_t mail_room = net::kick::PeerQueue::body_bytes_max / beside;
bool makes_mailboxes = false;
std::size_t queues_made = 0;            ///< in this run
std::vector<std::byte*> shared_queues;  ///< of this run and those before, which it uses again

}  // namespace

extern "C" void* mmap(void* at, std::size_t bytes, int protection, int flags, int file,
                      off_t offset) noexcept {
    const auto map = [&] {
        return reinterpret_cast<void*>(
            ::syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
    };
    if (!makes_mailboxes || bytes != queue_bytes) return map();
    const std::size_t which = queues_made / beside, lane = queues_made % beside;
    if (which == shared_queues.size()) {
        void* const made = map();
        if (made == MAP_FAILED) return made;
        shared_queues.push_back(static_cast<std::byte*>(made));
    }
    ++queues_made;
    return shared_queues[which] + lane * mail_room;
}

extern "C" int munmap(void* at, std::size_t bytes) noexcept {
    if (bytes == queue_bytes) return 0;  // the next run uses it again
    return static_cast<int>(::syscall(SYS_munmap, at, bytes));
}

namespace {

// --- what TeamLink works with --------------------------------------------------------------------

/// Knows whose notice of the present phase has come: a bit for each node.
class CountingMemory final : public dsm::test::IdleMemory {
public:
    CountingMemory(const dsm::AddressMap& map, std::uint32_t self, std::uint32_t nodes, bool tells)
        : IdleMemory(map), self_(self), known_(nodes), tells_(tells) {}

    void release(dsm::Others) noexcept override { known_[self_] = true; }
    void acquire(dsm::Others) noexcept override {}
    std::size_t news_for(NodeId, MutableBytes out) noexcept override {
        const std::size_t bytes = encode(out);
        ++sent;
        bytes_sent += bytes - set_bytes();
        return bytes;
    }
    std::size_t news_for_anyone(MutableBytes out) noexcept override { return encode(out); }
    std::size_t news_bytes_max() const noexcept override {
        return set_bytes() + known_.size() * notice_bytes;
    }
    void learn(NodeId, Bytes news) noexcept override {
        ++received;
        for (std::size_t node = 0; node < known_.size(); ++node)
            if ((std::to_integer<unsigned>(news[node / 8]) >> node % 8 & 1) != 0)
                known_[node] = true;
    }
    /// Whether all nodes' notices have come; begins the next phase.
    bool take_all() noexcept {
        const bool all = std::ranges::all_of(known_, [](bool come) { return come; });
        known_.assign(known_.size(), false);
        return all;
    }
    /// The bytes of the set that the test adds to each mail.
    std::size_t set_bytes() const noexcept { return (known_.size() + 7) / 8; }
    void count_anew() noexcept { sent = received = bytes_sent = 0; }

    std::uint64_t sent = 0, received = 0, bytes_sent = 0;

private:
    /// The set as bits, by which the test judges, and as many bytes more as notices would take.
    std::size_t encode(MutableBytes out) noexcept {
        std::memset(out.data(), 0, set_bytes());
        std::size_t notices = 0;
        for (std::size_t node = 0; node < known_.size(); ++node) {
            if (!known_[node]) continue;
            ++notices;
            out[node / 8] |= std::byte{static_cast<unsigned char>(1u << node % 8)};
        }
        return set_bytes() + (tells_ ? notices * notice_bytes : 0);
    }
    std::uint32_t self_;
    std::vector<bool> known_;
    bool tells_;
};

// --- a run ---------------------------------------------------------------------------------------

struct Wire {
    const char* name;
    net::sim::NetworkOptions options;
    std::uint64_t turn_max_ns;
};

/// One way, as `hiroba perf` and the vendors' sheets say; a call is what sending takes of a core.
const Wire wires[] = {
    {"shm", {.latency_ns = 220, .jitter_ns = 0, .bytes_per_us = 10'000, .call_ns = 40}, 100},
    {"udp", {.latency_ns = 4'200, .jitter_ns = 0, .bytes_per_us = 1'250, .call_ns = 1'500}, 1000},
    {"infiniband",
     {.latency_ns = 900, .jitter_ns = 0, .bytes_per_us = 12'000, .call_ns = 100},
     200},
};

/// The most of any node.
struct Most {
    std::uint64_t sent = 0, received = 0, bytes = 0;
    void take(std::uint64_t sent_here, std::uint64_t received_here, std::uint64_t bytes_here) {
        sent = std::max(sent, sent_here);
        received = std::max(received, received_here);
        bytes = std::max(bytes, bytes_here);
    }
};

struct Row {
    std::string fault;
    std::uint64_t region_ns = 0, barrier_ns = 0;
    Most region;   ///< mails of fork and join together
    Most barrier;  ///< mails of one barrier
    Most packets;  ///< of a node's card in `Run::barriers` barriers, and of nodes that are ahead
};

struct Run {
    static constexpr std::uint32_t barriers = 4;

    std::uint32_t nodes;
    bool tells;
    dsm::AddressMap map;
    std::vector<std::unique_ptr<CountingMemory>> memories;
    Row row;

    Run(std::uint32_t nodes, bool tells)
        : nodes(nodes), tells(tells), map({.nodes = nodes, .heap_bytes = page_bytes}) {}

    void fail(NodeId self, const char* what) {
        if (row.fault.empty()) row.fault = "node " + std::to_string(self.value) + ": " + what;
    }
    void node(sim_test::SimJob& job, NodeId self);
    void region(sim_test::SimJob& job, NodeId self, omp::TeamLink& link);
    void barrier(NodeId self, omp::TeamLink& link) {
        link.begin_barrier();
        while (!link.finish_barrier({})) {
        }
        if (!memories[self.value]->take_all()) fail(self, "passed a barrier before others came");
    }
};

void Run::region(sim_test::SimJob& job, NodeId self, omp::TeamLink& link) {
    CountingMemory& memory = *memories[self.value];
    const std::uint64_t begun = job.scheduler().time_ns();
    memory.count_anew();
    omp::Fork fork;
    fork.place.team_size = nodes;
    if (self.value == 0) {
        link.fork(fork, nodes);
    } else if (link.await_fork(&fork, {}) != omp::TeamLink::Called::region) {
        return fail(self, "was not called to the region");
    }
    Most fork_and_join;
    fork_and_join.take(memory.sent, memory.received, memory.bytes_sent);
    memory.take_all();
    barrier(self, link);
    memory.count_anew();
    const net::sim::Network::CardCounts before = job.network().counts_of(self);
    const std::uint64_t first = job.scheduler().time_ns();
    for (std::uint32_t i = 0; i < barriers; ++i) barrier(self, link);
    const std::uint64_t last = job.scheduler().time_ns();
    const net::sim::Network::CardCounts after = job.network().counts_of(self);
    row.barrier.take(memory.sent / barriers, memory.received / barriers,
                     memory.bytes_sent / barriers);
    row.packets.take(after.sent - before.sent, after.received - before.received,
                     after.bytes_sent - before.bytes_sent - memory.sent * memory.set_bytes());
    memory.count_anew();
    if (self.value != 0) {
        link.await([&] { return link.children_have_joined(); }, {});
        link.arrive_at_join();
    } else {
        while (!link.join({})) {
        }
    }
    row.region.take(fork_and_join.sent + memory.sent, fork_and_join.received + memory.received,
                    fork_and_join.bytes + memory.bytes_sent);
    if (self.value != 0) return;
    row.barrier_ns = (last - first) / barriers;
    // The one barrier in front is not counted.
    row.region_ns = job.scheduler().time_ns() - begun - (barriers + 1) * row.barrier_ns;
}

void Run::node(sim_test::SimJob& job, NodeId self) {
    const auto endpoint = job.open(self);
    CountingMemory& memory = *memories[self.value];
    dsm::test::IdleHeap heap;
    omp::Cancellation cancellation;
    makes_mailboxes = true;
    auto link =
        omp::TeamLink::create({.endpoint = endpoint.get(), .memory = &memory, .heap = &heap});
    makes_mailboxes = false;
    if (!link) return fail(self, link.error().text.c_str());
    (*link)->set_cancellation(cancellation, false);
    if (!endpoint->connect()) return fail(self, "did not connect");
    (*link)->attach();
    for (int i = 0; i < 2; ++i) {  // The second finds everything warm.
        job.gather(self, {});
        region(job, self, **link);
    }
    job.gather(self, {});
}

Row run(net::sim::FiberStacks& stacks, const Wire& wire, std::uint32_t nodes, bool tells) {
    net::sim::SchedulerOptions scheduling;
    scheduling.turn_max_ns = wire.turn_max_ns;
    net::sim::NetworkOptions options = wire.options;
    options.resend_min_ns = 10'000'000;  // nothing is lost
    sim_test::SimJob job{stacks, nodes, scheduling, options};
    Run what{nodes, tells};
    queues_made = 0;
    for (std::uint32_t rank = 0; rank < nodes; ++rank)
        what.memories.push_back(std::make_unique<CountingMemory>(what.map, rank, nodes, tells));
    const auto outcome = job.run([&](NodeId self) { what.node(job, self); });
    if (what.row.fault.empty() && outcome != net::sim::Scheduler::Outcome::ended)
        what.row.fault = sim_test::outcome_name(outcome);
    return what.row;
}

/// Ways of a barrier: all to all one, along the tree up and down.
std::uint32_t ways_of(std::uint32_t nodes) {
    return nodes <= net::kick::tree_arity ? 1 : 2 * net::kick::tree_levels(nodes);
}

/// What a node has too much of; empty: nothing. A parent and 8 children are 9 mails each way,
/// however many nodes there are.
std::string excess(const Row& row, std::uint32_t nodes) {
    const std::uint64_t mails = std::min(nodes - 1, net::kick::tree_arity + 1);
    const std::tuple<const char*, const Most&, std::uint64_t> counted[] = {
        {"barrier", row.barrier, mails}, {"region", row.region, 2 * mails}};
    for (const auto& [what, most, allowed] : counted)
        if (most.sent > allowed || most.received > allowed)
            return std::string("one node sends ") + std::to_string(most.sent) + " mails and gets " +
                   std::to_string(most.received) + " in a " + what;
    // A mail is one packet. Neighbours may be a barrier ahead.
    const std::uint64_t packets = mails * (Run::barriers + 1);
    if (row.packets.sent <= packets && row.packets.received <= packets) return "";
    return "one card sends " + std::to_string(row.packets.sent) + " packets and gets " +
           std::to_string(row.packets.received) + " in " + std::to_string(Run::barriers) +
           " barriers";
}

void print_row(const Wire& wire, std::uint32_t nodes, bool tells, const Row& row) {
    const auto whole = [](std::uint64_t value) { return static_cast<unsigned long>(value); };
    std::printf("%s,%u,%u,%u,%lu,%lu,%lu,%lu,%lu,%lu,%lu,%lu,%lu,%lu\n", wire.name,
                tells ? notice_bytes : 0, nodes, net::kick::tree_levels(nodes),
                whole(row.region_ns), whole(row.barrier_ns), whole(row.barrier.sent),
                whole(row.barrier.received), whole(row.barrier.bytes), whole(row.region.sent),
                whole(row.region.received), whole(row.packets.sent / Run::barriers),
                whole(row.packets.received / Run::barriers),
                whole(row.packets.bytes / Run::barriers));
    std::fflush(stdout);
}

/// Prints the rows of one wire, with or without notices. False: something is wrong.
bool print_rows(const Wire& wire, std::uint32_t nodes_max, bool tells) {
    double least = 1e18, most = 0;
    for (std::uint32_t nodes = 2; nodes <= nodes_max; nodes *= 2) {
        net::sim::FiberStacks stacks;
        const Row row = run(stacks, wire, nodes, tells);
        const std::string fault = row.fault.empty() ? excess(row, nodes) : row.fault;
        if (!fault.empty()) {
            std::fprintf(stderr, "%u nodes, %s: %s\n", nodes, wire.name, fault.c_str());
            return false;
        }
        print_row(wire, nodes, tells, row);
        const double way_ns = static_cast<double>(row.barrier_ns) / ways_of(nodes);
        least = std::min(least, way_ns);
        most = std::max(most, way_ns);
    }
    if (tells || most <= 3 * least) return true;  // what all have to tell grows with the nodes
    std::fprintf(stderr, "%s: a way takes %.0f to %.0f ns\n", wire.name, least, most);
    return false;
}

}  // namespace

int main(int count, char** words) {
    const unsigned long nodes_max = count > 1 ? std::strtoul(words[1], nullptr, 10) : 64;
    if (nodes_max < 2 || nodes_max > 1024) {
        std::fprintf(stderr, "sim_team_growth %s: wanted 2 to 1024 nodes\n", words[1]);
        return 64;
    }
    std::printf(
        "wire,notice_bytes,nodes,levels,region_ns,barrier_ns,sent_max,received_max,bytes_max,"
        "region_sent_max,region_received_max,packets_sent_max,packets_received_max,"
        "wire_bytes_max\n");
    bool right = true;
    for (const Wire& wire : wires)
        for (const bool tells : {false, true})
            right = print_rows(wire, static_cast<std::uint32_t>(nodes_max), tells) && right;
    return right ? 0 : 1;
}
