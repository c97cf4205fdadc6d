// SPDX-License-Identifier: BSD-3-Clause
// Role: the barrier that carries memory's news, on simulated nodes with a bad wire and late nodes:
// behind each, every node has the words and the news of all, over both shapes. BARRIER_RUNS sets
// how many runs; BARRIER_SEED replays one.
#include "dsm/sync/news_barrier.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/test_parts/given_number.hpp"
#include "dsm/messages.hpp"
#include "dsm/test_parts/idle_heap.hpp"
#include "dsm/test_parts/idle_memory.hpp"
#include "sim/sim_job.hpp"

namespace hiroba::sim_test {
namespace {

constexpr net::MessageKind test_news = net::MessageKind::test;

/// Its news are how many releases of each node it knows of; an acquire applies what was learned.
class CountedMemory final : public dsm::test::IdleMemory {
public:
    CountedMemory(const dsm::AddressMap& map, std::uint32_t self, std::uint32_t nodes)
        : IdleMemory(map), known(nodes), self_(self), learned_(nodes) {}

    void release(dsm::Others) noexcept override { ++known[self_]; }
    void acquire(dsm::Others) noexcept override {
        known = learned_ = higher(known, learned_);
        last_known = known;
    }
    /// Behind the last acquire.
    void bring_expected() noexcept override { brought += last_known == learned_; }
    std::size_t news_for(NodeId, MutableBytes out) noexcept override {
        std::memcpy(out.data(), known.data(), bytes());
        return bytes();
    }
    std::size_t news_for_anyone(MutableBytes out) noexcept override {
        return news_for(NodeId{0}, out);
    }
    std::size_t news_bytes_max() const noexcept override { return bytes(); }
    void learn(NodeId, Bytes news) noexcept override {
        std::vector<std::uint64_t> told(known.size());
        std::memcpy(told.data(), news.data(), bytes());
        learned_ = higher(learned_, told);
    }

    std::vector<std::uint64_t> known, last_known;
    std::uint64_t brought = 0;

private:
    std::size_t bytes() const noexcept { return known.size() * sizeof(std::uint64_t); }
    static std::vector<std::uint64_t> higher(std::vector<std::uint64_t> a,
                                             const std::vector<std::uint64_t>& b) {
        for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::max(a[i], b[i]);
        return a;
    }
    std::uint32_t self_;
    std::vector<std::uint64_t> learned_;
};

struct Run {
    std::uint32_t nodes;
    std::uint64_t seed, phases;
    dsm::AddressMap map;
    std::string fault{};

    void fail(NodeId self, std::uint64_t phase, const std::string& what) {
        if (fault.empty())
            fault = "node " + std::to_string(self.value) + " of " + std::to_string(nodes) +
                    " in phase " + std::to_string(phase) + ": " + what;
    }
    void node(SimJob& job, NodeId self);
};

std::uint64_t word_of(std::uint32_t node, std::uint64_t phase) { return node * 1'000 + phase; }

void Run::node(SimJob& job, NodeId self) {
    const auto endpoint = job.open(self);
    CountedMemory memory{map, self.value, nodes};
    dsm::test::IdleHeap heap;
    auto mail = net::kick::Mailboxes::create(*endpoint, nullptr, test_news);
    if (!mail) return fail(self, 0, mail.error().text);
    std::uint64_t asked = 0;
    const auto ask = [&] { return ++asked % 2 == 0 ? dsm::Others::stopped : dsm::Others::running; };
    auto barrier = dsm::NewsBarrier::create(*endpoint, memory, heap, **mail, ask);
    if (!barrier) return fail(self, 0, barrier.error().text);
    if (!endpoint->connect()) return fail(self, 0, "did not connect");
    (*mail)->attach();
    Random random{seed * 0x9E37'79B9 + self.value};
    job.gather(self, {});
    for (std::uint64_t phase = 1; phase <= phases; ++phase) {
        // Most are quick, some late by many times what a barrier takes.
        const bool late = random.below(16) == 0;
        job.scheduler().work(1 + random.below(late ? 3'000'000 : 2'000));
        const auto words = (*barrier)->meet({word_of(self.value, phase), phase});
        for (std::uint32_t other = 0; other < nodes; ++other) {
            if (words[other].value != word_of(other, phase) || words[other].call != phase)
                fail(self, phase, "the word of node " + std::to_string(other) + " is wrong");
            const std::uint64_t known = memory.known[other];
            if (known != phase)
                fail(self, phase,
                     "knows " + std::to_string(known) + " releases of " + std::to_string(other));
        }
        // It asks once, and brings nothing where threads of the program run.
        if (asked != phase || memory.brought != phase / 2)
            fail(self, phase, "brought what is used " + std::to_string(memory.brought) + " times");
    }
    job.gather(self, {});
}

std::string run(net::sim::FiberStacks& stacks, std::uint32_t nodes, std::uint64_t seed,
                std::uint64_t phases) {
    net::sim::SchedulerOptions scheduling;
    scheduling.seed = seed;
    scheduling.limit_ns = 60'000'000'000;
    net::sim::NetworkOptions wire;
    if (seed % 3 != 0) {
        wire.loss = 10;
        wire.duplicate = 10;
        wire.reorder = 40;
    }
    SimJob job{stacks, nodes, scheduling, wire};
    Run what{nodes, seed, phases, dsm::AddressMap({.nodes = nodes, .heap_bytes = page_bytes})};
    const auto outcome = job.run([&](NodeId self) { what.node(job, self); });
    if (what.fault.empty() && outcome != net::sim::Scheduler::Outcome::ended)
        return outcome_name(outcome);
    return what.fault;
}

TEST(NewsBarrier, gives_everybody_the_words_and_the_news_of_all_whatever_the_wire_does) {
    net::sim::FiberStacks stacks;
    const std::uint64_t first = given_number("BARRIER_SEED", 1),
                        runs = given_number("BARRIER_RUNS", 120);
    for (std::uint64_t seed = first; seed < first + runs; ++seed) {
        // Both shapes; with 20 there are nodes without children beside some that have one.
        const auto nodes = static_cast<std::uint32_t>(1 + seed % 20);
        ASSERT_EQ(run(stacks, nodes, seed, 6), "")
            << "replay: BARRIER_RUNS=1 BARRIER_SEED=" << seed;
    }
}

TEST(NewsBarrier, holds_in_a_tree_of_three_levels) {
    net::sim::FiberStacks stacks;
    EXPECT_EQ(run(stacks, 76, 3, 4), "");
}

TEST(NewsBarrier, refuses_words_and_news_that_no_mail_takes) {
    net::sim::FiberStacks stacks;
    SimJob job{stacks, 1, {}, {}};
    class LongNews final : public dsm::test::IdleMemory {
    public:
        using IdleMemory::IdleMemory;
        std::size_t news_for_anyone(MutableBytes) noexcept override { return 0; }
        std::size_t news_bytes_max() const noexcept override {
            return net::kick::Mailboxes::mail_bytes_max;
        }
        void release(dsm::Others) noexcept override {}
        void acquire(dsm::Others) noexcept override {}
        void learn(NodeId, Bytes) noexcept override {}
    };
    std::string said;
    job.run([&](NodeId self) {
        const dsm::AddressMap map({.nodes = 1, .heap_bytes = page_bytes});
        const auto endpoint = job.open(self);
        LongNews memory{map};
        dsm::test::IdleHeap heap;
        auto mail = net::kick::Mailboxes::create(*endpoint, nullptr, test_news);
        const auto made = dsm::NewsBarrier::create(*endpoint, memory, heap, **mail,
                                                   [] { return dsm::Others::running; });
        said = made ? "made" : made.error().text;
    });
    EXPECT_NE(said.find("HIROBA_NOTICES"), std::string::npos) << said;
}

}  // namespace
}  // namespace hiroba::sim_test
