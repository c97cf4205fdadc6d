// SPDX-License-Identifier: BSD-3-Clause
// Role: recorded work on another number of nodes and threads.
#include <algorithm>
#include <cmath>

#include "tools/predict/work.hpp"

namespace hiroba::tools {

namespace {

/// How much of what is not a node's own the others have.
double share_of_others(std::uint32_t nodes) { return 1 - 1. / nodes; }

/// Levels of the tree along which nodes meet.
double levels_of(std::uint32_t nodes) { return std::log2(std::max(nodes, 2u)); }

class Spread {
public:
    Spread(const WorkTable& from, WorkTable& to, Growth growth) : from_(from), to_(to) {
        const double nodes = double(to.nodes) / from.nodes;
        const double others = share_of_others(to.nodes) / share_of_others(from.nodes);
        moved_ = growth == Growth::each ? nodes : others;
        serial_ = others;
    }

    ThreadWork of_thread(const Stretch& stretch, std::uint32_t thread) const {
        ThreadWork work;
        const auto count = static_cast<std::uint32_t>(stretch.threads.size());
        if (stretch.serial()) {
            if (thread < std::min(from_.threads, to_.threads))
                add(work, stretch.threads[thread], 1, serial_, 0, thread / to_.threads);
            return work;
        }
        // Threads are points of a line that the recorded ones share out.
        const double all = double(to_.nodes) * to_.threads;
        const double begin = thread / all * count, end = (thread + 1) / all * count;
        for (auto at = static_cast<std::uint32_t>(begin); at < count && at < end; ++at) {
            const double part = std::min(end, at + 1.) - std::max(begin, double(at));
            if (part > 1e-9)
                add(work, stretch.threads[at], part, part * moved_, at / from_.threads,
                    thread / to_.threads);
        }
        return work;
    }

private:
    void add(ThreadWork& to, const ThreadWork& work, double part, double moved,
             std::uint32_t was_node, std::uint32_t node) const {
        to.computing_ns += work.computing_ns * part;
        to.memory_ns += to_.nodes > 1 ? work.memory_ns * moved : 0;
        for (const auto& [key, use] : work.locks) {
            to.locks[key].takes += use.takes * part;
            to.locks[key].held_ns += use.held_ns * part;
        }
        if (to_.nodes == 1) return;
        for (const auto& [other, asked] : work.of_node) {
            Asked& sum = to.of_node[place_of(other, was_node, node)];
            sum.exchanges += asked.exchanges * moved;
            sum.bytes += asked.bytes * moved;
        }
    }

    /// Neighbours stay neighbours; others stay where they are on the way through all nodes.
    std::uint32_t place_of(std::uint32_t other, std::uint32_t was_node, std::uint32_t node) const {
        if (to_.nodes == from_.nodes && other != node) return other;
        std::uint32_t place =
            static_cast<std::uint32_t>(std::uint64_t{other} * to_.nodes / from_.nodes);
        if (other == was_node + 1) place = node + 1;
        if (other + 1 == was_node) place = node + to_.nodes - 1;
        place %= to_.nodes;
        return place != node ? place : (node + 1) % to_.nodes;
    }

    const WorkTable& from_;
    const WorkTable& to_;
    double moved_ = 1, serial_ = 1;
};

}  // namespace

WorkTable spread_over(const WorkTable& table, std::uint32_t nodes, std::uint32_t threads,
                      Growth growth) {
    WorkTable to;
    to.nodes = nodes;
    to.threads = threads;
    to.cores = table.cores;
    to.hosts = table.hosts;
    to.meeting_ns = table.meeting_ns;
    for (double& ns : to.meeting_ns) ns *= levels_of(nodes) / levels_of(table.nodes);
    to.measured_ns = table.measured_ns;
    to.scale = table.scale;
    to.notes = table.notes;
    const Spread spread(table, to, growth);
    to.stretches.reserve(table.stretches.size());
    for (const Stretch& stretch : table.stretches) {
        Stretch& there = to.stretches.emplace_back();
        there.phase = stretch.phase;
        there.end = stretch.end;
        for (std::uint32_t thread = 0; thread < nodes * threads; ++thread)
            there.threads.push_back(spread.of_thread(stretch, thread));
    }
    return to;
}

double on_one_host_ns(const WorkTable& table, std::uint32_t threads) {
    double sum = 0;
    for (const Stretch& stretch : spread_over(table, 1, threads, Growth::divided).stretches) {
        double most = 0;
        for (const ThreadWork& work : stretch.threads) most = std::max(most, work.computing_ns);
        sum += most;
    }
    return sum * table.scale;
}

}  // namespace hiroba::tools
