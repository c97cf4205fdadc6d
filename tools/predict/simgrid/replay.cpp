// SPDX-License-Identifier: BSD-3-Clause
// Role: recorded work on SimGrid: an actor for each thread, a host for each node.
// Invariant: actors run one at a time, so what they share needs no lock of its own.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "tools/predict/simgrid/actors.hpp"

namespace hiroba::tools {

namespace {

namespace s4u = simgrid::s4u;

constexpr double per_second = 1e9;  // ns, and flops of a host that is as fast as the recorded one
constexpr double meeting_bytes = 64;
constexpr double awake_ns = 5e3;  // with a core for each thread a meeting wakes nobody

double now_ns() { return s4u::Engine::get_clock() * per_second; }

/// What one thread has spent of a stretch so far.
struct Spent {
    Limits limits;
    double arrived_ns = 0;
};

/// A stretch while threads are in it.
struct Going {
    Limits last;  ///< of who came last
    double last_ns = 0, computing_sum = 0;
    std::uint32_t counted = 0;
};

class Job {
public:
    Job(const WorkTable& table, const Wire& wire, std::vector<s4u::Host*> hosts)
        : table_(table), wire_(wire), hosts_(std::move(hosts)) {
        for (std::uint32_t node = 0; node < table.nodes; ++node)
            here_.push_back(s4u::Barrier::create(table.threads));
        going_.resize(table.stretches.size());
        speed_ = hosts_[0]->get_speed();
    }

    void start() {
        for (std::uint32_t thread = 0; thread < table_.nodes * table_.threads; ++thread)
            s4u::Actor::create("thread" + std::to_string(thread), host(thread / table_.threads),
                               [this, thread] { run(thread); });
    }
    const Replayed& result() const { return result_; }

private:
    s4u::Host* host(std::uint32_t node) const { return hosts_[node % hosts_.size()]; }
    bool on_one_host() const { return wire_.shared_memory; }

    void run(std::uint32_t thread) {
        for (std::size_t at = 0; at < table_.stretches.size(); ++at) {
            const Stretch& stretch = table_.stretches[at];
            Spent spent;
            if (!stretch.serial() || thread < table_.threads)
                work(stretch.threads[thread], thread, spent);
            arrive(at, thread, spent);
            const bool over = stretch.serial() && at + 1 == table_.stretches.size();
            if (!over) meet(stretch.end, thread);
            if (thread == 0) leave(at);
        }
    }

    void arrive(std::size_t at, std::uint32_t thread, const Spent& spent) {
        const Stretch& stretch = table_.stretches[at];
        if (stretch.serial() && thread != 0) return;
        Going& going = going_[at];
        going.computing_sum += spent.limits.computing;
        ++going.counted;
        if (going.counted == 1 || now_ns() >= going.last_ns) {
            going.last = spent.limits;
            going.last_ns = now_ns();
        }
    }

    /// The first thread has left the meeting: all that the stretch took is known.
    void leave(std::size_t at) {
        const Going& going = going_[at];
        Limits& sum = result_.limits;
        const double mean = going.computing_sum / std::max(1u, going.counted);
        if (table_.stretches[at].serial()) {
            sum.serial += going.last.computing;
        } else {
            const double computed = std::min(mean, going.last.computing);
            sum.computing += computed;
            sum.imbalance += going.last.computing - computed;
        }
        sum.memory += going.last.memory;
        sum.latency += going.last.latency;
        sum.messages += going.last.messages;
        sum.bytes += going.last.bytes;
        sum.locks += going.last.locks;
        sum.cores += going.last.cores;
        sum.meetings += std::max(0., now_ns() - going.last_ns);
        result_.ns = now_ns();
    }

    /// Computes for `ns` of a core of `where`; the time that this takes.
    double compute(double ns, s4u::Host* where) {
        if (ns <= 0) return 0;
        const double begin = now_ns();
        const double flops = ns / per_second * speed_;
        s4u::this_actor::exec_init(flops)->set_host(where)->wait();
        return now_ns() - begin;
    }

    void work(const ThreadWork& work, std::uint32_t thread, Spent& spent) {
        const std::uint32_t node = thread / table_.threads;
        double takes = 0;
        for (const auto& [key, use] : work.locks) takes += use.takes;
        // Locks and misses lie between pieces of what is computed.
        const double pieces =
            takes > 0 ? std::clamp(std::ceil(takes), 1., 8.) : (work.of_node.empty() ? 1. : 2.);
        const double own = work.computing_ns + work.memory_ns;
        double held = 0;
        for (const auto& [key, use] : work.locks) held += use.held_ns;
        const double free = std::max(0., own - held);
        for (unsigned piece = 0; piece < static_cast<unsigned>(pieces); ++piece) {
            spent.limits.cores += compute(free / pieces, host(node)) - free / pieces;
            for (const auto& [other, asked] : work.of_node)
                ask(asked, pieces, node, other, spent.limits);
            for (const auto& [key, use] : work.locks) take(key, use, pieces, node, spent.limits);
        }
        spent.limits.computing += std::max(work.computing_ns, 0.);
        spent.limits.memory += work.memory_ns;
    }

    /// Asks another node: requests one behind the other, and their answers' bytes.
    void ask(const Asked& asked, double pieces, std::uint32_t node, std::uint32_t other,
             Limits& limits) {
        if (on_one_host() || other == node) return;
        const double exchanges = asked.exchanges / pieces;
        const double bytes = asked.bytes / pieces;
        const double either_end = 2 * exchanges * wire_.message_us * 1e3;
        limits.messages += compute(either_end, host(node)) + compute(either_end, host(other));
        const double latency = latency_ns(node, other);
        double waited = 2 * exchanges * latency;
        if (bytes >= 1) {
            const double begin = now_ns();
            s4u::Comm::sendto(host(other), host(node), static_cast<std::uint64_t>(bytes));
            const double took = now_ns() - begin;
            limits.bytes += std::max(0., took - latency);
            limits.latency += std::min(took, latency);
            waited = std::max(0., waited - latency);
        }
        if (waited > 0) s4u::this_actor::sleep_for(waited / per_second);
        limits.latency += waited;
    }

    void take(std::uint64_t key, const LockUse& use, double pieces, std::uint32_t node,
              Limits& limits) {
        auto& lock = locks_[key];
        if (!lock) lock = s4u::Mutex::create();
        const double begin = now_ns();
        lock->lock();
        limits.locks += now_ns() - begin;
        if (!on_one_host() && table_.nodes > 1) {
            const double took =
                2 * use.takes / pieces *
                (latency_ns(node, (node + 1) % table_.nodes) + 2e3 * wire_.message_us);
            s4u::this_actor::sleep_for(took / per_second);
            limits.latency += took;
        }
        const double held = use.held_ns / pieces;
        limits.cores += compute(held, host(node)) - held;
        lock->unlock();
    }

    double latency_ns(std::uint32_t from, std::uint32_t to) {
        const auto [at, is_new] = latencies_.try_emplace(std::pair{from, to}, 0.);
        if (is_new && host(from) != host(to)) {
            std::vector<s4u::Link*> links;
            double latency = 0;
            host(from)->route_to(host(to), links, &latency);
            at->second = latency * per_second;
        }
        return at->second;
    }

    void send(const std::string& to, std::uint32_t node) {
        compute(wire_.message_us * 1e3, host(node));
        static int message;
        s4u::Mailbox::by_name(to)
            ->put_init(&message, static_cast<std::uint64_t>(meeting_bytes))
            ->detach();
    }
    void receive(const std::string& at, std::uint32_t node) {
        s4u::Mailbox::by_name(at)->get<int>();
        compute(wire_.message_us * 1e3, host(node));
    }
    /// Nodes are a tree: node n's children are n + 1, n + 2, n + 4 ... below its lowest bit.
    template <class Visit>
    void each_child(std::uint32_t node, Visit&& visit) const {
        for (std::uint32_t bit = 1; node + bit < table_.nodes && (node & bit) == 0; bit *= 2)
            visit(node + bit);
    }
    void gather(std::uint32_t node) {
        each_child(node, [&](std::uint32_t child) { receive("up" + std::to_string(child), node); });
        if (node != 0) send("up" + std::to_string(node), node);
    }
    void tell(std::uint32_t node) {
        if (node != 0) receive("down" + std::to_string(node), node);
        each_child(node, [&](std::uint32_t child) { send("down" + std::to_string(child), node); });
    }

    void meet(Meeting meeting, std::uint32_t thread) {
        const std::uint32_t node = thread / table_.threads;
        const bool leads = thread % table_.threads == 0;
        if (leads && on_one_host())
            compute(own_part_ns(meeting), host(node));  // Nodes that wait for a core meet later.
        else if (leads)
            s4u::this_actor::sleep_for(own_part_ns(meeting) / per_second);
        if (meeting != Meeting::fork) {
            here_[node]->wait();
            if (leads) gather(node);
        }
        if (meeting == Meeting::join) return;
        if (leads) tell(node);
        here_[node]->wait();
    }

    /// What a meeting takes that is neither wire nor waiting.
    double own_part_ns(Meeting meeting) const {
        const double there = table_.meeting_ns[static_cast<unsigned>(meeting)];
        return on_one_host() ? there : std::min(there, awake_ns);
    }

    const WorkTable& table_;
    const Wire& wire_;
    std::vector<s4u::Host*> hosts_;
    std::vector<s4u::BarrierPtr> here_;
    std::vector<Going> going_;
    std::map<std::uint64_t, s4u::MutexPtr> locks_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> latencies_;
    double speed_ = per_second;
    Replayed result_;
};

/// A switch without limits, and a link to each host.
std::vector<s4u::Host*> make_hosts(const WorkTable& table, const Wire& wire) {
    auto* const zone = s4u::create_star_zone("machine");
    const std::uint32_t count = wire.shared_memory ? 1 : table.nodes;
    std::vector<s4u::Host*> hosts;
    for (std::uint32_t number = 0; number < count; ++number) {
        const std::string name = std::to_string(number);
        auto* const host = zone->create_host("host" + name, per_second);
        host->set_core_count(static_cast<int>(wire.shared_memory ? table.cores : table.threads));
        host->seal();
        auto* const link = zone->create_split_duplex_link("link" + name, wire.gigabytes_s * 1e9);
        link->set_latency(wire.latency_us / 2 * 1e-6);
        link->seal();
        zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr,
                        {{link, s4u::LinkInRoute::Direction::UP}}, true);
        if (wire.shared_memory) {
            auto* const memory = zone->create_link("memory", 1e12)->set_latency(0)->seal();
            zone->add_route(host->get_netpoint(), host->get_netpoint(), nullptr, nullptr,
                            {s4u::LinkInRoute(memory)}, true);
        }
        hosts.push_back(host);
    }
    zone->seal();
    return hosts;
}

}  // namespace

Replayed replay_here(const WorkTable& table, const ReplayMachine& machine) {
    std::string words[] = {"hiroba-predict",
                           "--log=root.thres:critical",
                           "--cfg=network/model:CM02",
                           "--cfg=network/crosstraffic:0",
                           "--cfg=network/TCP-gamma:0",
                           "--cfg=contexts/stack-size:256"};
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    int count = static_cast<int>(pointers.size());
    pointers.push_back(nullptr);
    s4u::Engine engine(&count, pointers.data());
    std::vector<s4u::Host*> hosts;
    if (machine.platform.empty()) {
        hosts = make_hosts(table, machine.wire);
    } else {
        engine.load_platform(machine.platform);
        hosts = engine.get_all_hosts();
        if (hosts.size() < table.nodes) throw TooFewHosts{hosts.size()};
    }
    Job job(table, machine.wire, hosts);
    job.start();
    engine.run();
    return job.result();
}

}  // namespace hiroba::tools
