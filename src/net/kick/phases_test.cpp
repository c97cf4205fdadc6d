// SPDX-License-Identifier: BSD-3-Clause
// The collectives under a virtual clock: kicks between members take random times (in order per
// pair), members take random times from phase to phase, from nothing to thousands of others'
// phases. The number of seeded runs is in KICK_RUNS (default below); KICK_SEED replays one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "base/test_parts/given_number.hpp"
#include "net/kick/byte_marks.hpp"
#include "net/kick/reduce_phases.hpp"

namespace hiroba::net::kick {
namespace {

constexpr std::uint32_t memory_bytes = 1024;

/// Carries kicks under a virtual clock.
class Network {
public:
    Network(std::uint32_t members, std::uint64_t seed) : memory_(members), random_(seed) {
        for (auto& each : memory_) each.assign(memory_bytes, std::byte{0});
    }

    std::uint64_t now() const { return now_; }
    std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
    std::byte* memory(std::uint32_t member) { return memory_[member].data(); }

    template <class T>
    void send(std::uint32_t from, std::uint32_t to, std::uint32_t offset, T value) {
        // Now and then a packet is very late, and all behind it with it.
        const std::uint64_t delay = 1 + below(20) + (below(50) == 0 ? below(5000) : 0);
        std::uint64_t& last = last_[{from, to}];
        last = std::max(last, now_ + delay);
        at(last, to, [this, to, offset, value] {
            std::memcpy(memory_[to].data() + offset, &value, sizeof value);
        });
    }
    /// Runs `what` and then wakes `member`.
    void at(std::uint64_t when, std::uint32_t member, std::function<void()> what) {
        events_.push({when, ++number_, member, std::move(what)});
    }
    /// Runs the next event; -1 when there is none, else the member it concerns.
    int step() {
        if (events_.empty()) return -1;
        const Event event = events_.top();
        events_.pop();
        now_ = event.when;
        event.what();
        return static_cast<int>(event.member);
    }

private:
    struct Event {
        std::uint64_t when, number;
        std::uint32_t member;
        std::function<void()> what;
        bool operator<(const Event& other) const {
            return when != other.when ? when > other.when : number > other.number;
        }
    };
    std::vector<std::vector<std::byte>> memory_;
    std::mt19937_64 random_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> last_;
    std::priority_queue<Event> events_;
    std::uint64_t now_ = 0, number_ = 0;
};

/// One member's lines of one collective at `base`; `ranks` are the members' numbers in the network.
struct SimLines {
    Network* network;
    std::uint32_t self, base;
    std::vector<std::uint32_t> ranks;

    void kick_byte(std::uint32_t to, std::uint32_t offset, std::uint8_t value) {
        network->send(self, ranks[to], base + offset, value);
    }
    void kick_word(std::uint32_t to, std::uint32_t offset, std::uint64_t value) {
        network->send(self, ranks[to], base + offset, value);
    }
    void kick_word_with_next(std::uint32_t to, std::uint32_t offset, std::uint64_t value) {
        kick_word(to, offset, value);
    }
    void flush(std::uint32_t) {}
    std::uint8_t byte_at(std::uint32_t offset) {
        return static_cast<std::uint8_t>(network->memory(self)[base + offset]);
    }
    std::uint64_t word_at(std::uint32_t offset) {
        std::uint64_t word;
        std::memcpy(&word, network->memory(self) + base + offset, sizeof word);
        return word;
    }
};
static_assert(Lines<SimLines>);
static_assert(Marks<ByteMarks<SimLines>>);
using SimBarrier = BarrierPhases<ByteMarks<SimLines>>;

std::uint64_t runs(std::uint64_t otherwise) { return given_number("KICK_RUNS", otherwise); }
std::uint64_t first_seed() { return given_number("KICK_SEED", 1); }

struct Member {
    std::unique_ptr<SimBarrier> all, pair;
    std::uint64_t all_done = 0, pair_done = 0;  ///< phases passed
    bool in_all = false, in_pair = false;
};

/// Barriers of all members, and between two of them pair barriers of which `pairs_` fit between two
/// of all. A member passes phase p only after all have arrived at p.
struct BarrierRun {
    BarrierRun(std::uint32_t count, Shape shape, std::uint64_t phases_, std::uint64_t pairs_,
               std::uint64_t seed)
        : network(count, seed), members(count), arrivals(count), phases(phases_), pairs(pairs_) {
        std::vector<std::uint32_t> everyone(count);
        for (std::uint32_t i = 0; i < count; ++i) everyone[i] = i;
        // Near the wrap of a byte, or of all 64 bits of the phase counter.
        const std::uint64_t first = seed % 3 == 0 ? 0 : seed % 3 == 1 ? 250 : ~std::uint64_t{0} - 4;
        for (std::uint32_t i = 0; i < count; ++i) {
            fill_as_after(first, i);
            members[i].all = std::make_unique<SimBarrier>(
                ByteMarks{SimLines{&network, i, 0, everyone}}, TreeNode{i, count}, shape, first);
            if (i < 2 && count > 2)
                members[i].pair =
                    std::make_unique<SimBarrier>(ByteMarks{SimLines{&network, i, 256, {0, 1}}},
                                                 TreeNode{i, 2}, Shape::all_to_all);
        }
        for (std::uint32_t i = 0; i < count; ++i) think(i, 1);
    }

    /// The barrier's memory as `phase` phases have left it.
    void fill_as_after(std::uint64_t phase, std::uint32_t i) {
        if (phase == 0) return;
        std::byte* const at = network.memory(i);
        std::memset(at + (phase % 2 == 0 ? 0 : 8), static_cast<int>(phase & 0xff), 8);
        std::memset(at + (phase % 2 == 0 ? 8 : 0), static_cast<int>((phase - 1) & 0xff), 8);
        std::memset(at + 64, static_cast<int>(phase & 0xff), 1);
    }
    void think(std::uint32_t i, std::uint64_t most) {
        network.at(network.now() + network.below(most), i, [this, i] { arrive(i); });
    }
    void arrive(std::uint32_t i) {
        Member& member = members[i];
        if (member.pair != nullptr && member.pair_done < pairs * (member.all_done + 1)) {
            member.in_pair = true;
            member.pair->arrive();
            return;
        }
        if (member.all_done == phases) return;
        ++arrivals[i];
        member.in_all = true;
        member.all->arrive();
    }
    /// False: somebody has passed too early.
    bool look(std::uint32_t i) {
        Member& member = members[i];
        if (member.in_pair && member.pair->passed()) {
            member.in_pair = false;
            const std::uint64_t other = members[1 - i].pair_done + (members[1 - i].in_pair ? 1 : 0);
            if (other < ++member.pair_done) return false;
            think(i, 8);
        }
        if (member.in_all && member.all->passed()) {
            member.in_all = false;
            ++member.all_done;
            for (const std::uint64_t arrived : arrivals)
                if (arrived < member.all_done) return false;
            // One is late by thousands of the others' steps, now and then.
            think(i, network.below(20) == 0 ? 100'000 : 60);
        }
        return true;
    }
    ::testing::AssertionResult go() {
        for (int i; (i = network.step()) >= 0;)
            if (!look(static_cast<std::uint32_t>(i)))
                return ::testing::AssertionFailure() << "member " << i << " passed too early";
        for (std::uint32_t i = 0; i < members.size(); ++i)
            if (members[i].all_done != phases)
                return ::testing::AssertionFailure()
                       << "member " << i << " stands in phase " << members[i].all_done;
        return ::testing::AssertionSuccess();
    }

    Network network;
    std::vector<Member> members;
    std::vector<std::uint64_t> arrivals;
    std::uint64_t phases, pairs;
};

TEST(BarrierPhases, nobody_passes_before_all_have_arrived_and_everybody_passes) {
    for (std::uint64_t run = 0, seed = first_seed(); run < runs(300); ++run, ++seed) {
        const Shape shape = seed % 2 == 0 ? Shape::tree : Shape::all_to_all;
        const auto count =
            static_cast<std::uint32_t>(shape == Shape::tree ? 1 + seed / 2 % 80 : 1 + seed / 2 % 8);
        // Now and then two members are thousands of phases ahead of the others in wall time.
        const bool is_far = seed % 16 < 2;
        BarrierRun barriers{count, shape, is_far ? 4u : 20u, is_far ? 2'500u : 50u, seed};
        ASSERT_TRUE(barriers.go()) << "replay: KICK_RUNS=1 KICK_SEED=" << seed;
    }
}

TEST(BarrierPhases, a_byte_that_wraps_many_times_is_never_mistaken) {
    for (const Shape shape : {Shape::tree, Shape::all_to_all}) {
        BarrierRun barriers{shape == Shape::tree ? 11u : 5u, shape, 1500, 50, 6};
        ASSERT_TRUE(barriers.go());
    }
}

/// Every member contributes (member + 1) * phase in phases 1 to 12; each result is compared.
template <class T>
::testing::AssertionResult reduce(std::uint32_t count, Shape shape, std::uint64_t seed) {
    Network network{count, seed};
    using Phases = ReducePhases<SimLines, T>;
    std::vector<std::unique_ptr<Phases>> members(count);
    std::vector<int> phase(count, 0);
    std::vector<std::uint32_t> everyone(count);
    for (std::uint32_t i = 0; i < count; ++i) everyone[i] = i;
    const auto value = [](std::uint32_t i, int p) { return static_cast<T>((i + 1) * p % 100); };
    const auto sum = [](T a, T b) { return static_cast<T>(a + b); };
    const auto start = [&](std::uint32_t i) {
        if (phase[i] == 12) return;
        members[i]->start(value(i, ++phase[i]));
    };
    for (std::uint32_t i = 0; i < count; ++i) {
        members[i] = std::make_unique<Phases>(SimLines{&network, i, 0, everyone}, i, count, shape);
        network.at(network.below(50), i, [&, i] { start(i); });
    }
    std::vector<int> done(count, 0);
    for (int at; (at = network.step()) >= 0;) {
        const auto i = static_cast<std::uint32_t>(at);
        if (phase[i] == done[i] || !members[i]->finished(sum)) continue;
        T expected{};
        for (std::uint32_t m = 0; m < count; ++m) expected = sum(expected, value(m, phase[i]));
        if (members[i]->result() != expected)
            return ::testing::AssertionFailure() << "member " << i << " phase " << phase[i];
        done[i] = phase[i];
        network.at(network.now() + network.below(100), i, [&, i] { start(i); });
    }
    for (std::uint32_t i = 0; i < count; ++i)
        if (done[i] != 12)
            return ::testing::AssertionFailure() << "member " << i << " stands in " << done[i];
    return ::testing::AssertionSuccess();
}

TEST(ReducePhases, every_member_gets_the_sum_of_its_phase) {
    for (std::uint64_t run = 0, seed = first_seed(); run < runs(200); ++run, ++seed) {
        const auto few = static_cast<std::uint32_t>(1 + seed % 8);
        const auto many = static_cast<std::uint32_t>(1 + seed % 70);
        ASSERT_TRUE(reduce<std::int64_t>(few, Shape::all_to_all, seed)) << seed;
        ASSERT_TRUE(reduce<std::uint8_t>(many, Shape::tree, seed)) << seed;
        ASSERT_TRUE(reduce<long double>(many, Shape::tree, seed)) << seed;
    }
}

/// One member of `count` is in another call. True if that was seen where the first of them
/// finished.
bool unequal_call_is_seen(std::uint32_t count, Shape shape, std::uint64_t seed) {
    Network network{count, seed};
    using Phases = ReducePhases<SimLines, std::int64_t>;
    std::vector<std::unique_ptr<Phases>> members(count);
    std::vector<std::uint32_t> everyone(count);
    for (std::uint32_t i = 0; i < count; ++i) everyone[i] = i;
    const std::uint32_t odd_one = static_cast<std::uint32_t>(seed % count);
    const auto call_of = [=](std::uint32_t i) { return i == odd_one ? 7u : 6u; };
    for (std::uint32_t i = 0; i < count; ++i) {
        members[i] = std::make_unique<Phases>(SimLines{&network, i, 0, everyone}, i, count, shape);
        network.at(network.below(50), i, [&, i] { members[i]->start(1, call_of(i)); });
    }
    bool seen = false;
    for (int at; (at = network.step()) >= 0;) {
        const auto i = static_cast<std::uint32_t>(at);
        seen =
            seen || (members[i]->finished(std::plus<>{}) && members[i]->other_call() != call_of(i));
    }
    return seen;
}

TEST(ReducePhases, a_member_in_another_call_is_seen) {
    for (std::uint64_t run = 0, seed = first_seed(); run < runs(100); ++run, ++seed) {
        ASSERT_TRUE(unequal_call_is_seen(2 + seed % 7, Shape::all_to_all, seed)) << seed;
        ASSERT_TRUE(unequal_call_is_seen(2 + seed % 60, Shape::tree, seed)) << seed;
    }
}

TEST(Tree, has_as_many_levels_as_the_logarithm_to_base_8_and_each_member_once) {
    for (std::uint32_t members = 1; members <= 4096;
         members = members < 80 ? members + 1 : members * 2) {
        std::vector<int> parents(members, 0);
        for (std::uint32_t i = 0; i < members; ++i) {
            const TreeNode node{i, members};
            for (std::uint32_t b = 0; b < node.children(); ++b) {
                const TreeNode child{node.child(b), members};
                ++parents[child.index];
                EXPECT_EQ(child.parent(), i);
                EXPECT_EQ(child.branch(), b);
            }
        }
        for (std::uint32_t i = 0; i < members; ++i) EXPECT_EQ(parents[i], i == 0 ? 0 : 1);
    }
    EXPECT_EQ(tree_levels(1), 0u);
    EXPECT_EQ(tree_levels(9), 1u);
    EXPECT_EQ(tree_levels(10), 2u);
    EXPECT_EQ(tree_levels(73), 2u);
    EXPECT_EQ(tree_levels(4096), 4u);
}

}  // namespace
}  // namespace hiroba::net::kick
