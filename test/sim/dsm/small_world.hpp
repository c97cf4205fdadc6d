// SPDX-License-Identifier: BSD-3-Clause
// Role: what the scenarios of the exhaustive exploration are made of: words, locks and meetings of
// a few threads, and what each word must hold. Invariant: the shared memory's engine is the real
// one. What carries its news is reduced to single steps: a lock is one word of the test, a meeting
// one mailbox for each pair of nodes, so that no order is spent on their own protocols, which have
// tests of their own. A release, the news it leads to and their way are as many steps as the engine
// makes of them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/dsm/cluster.hpp"
#include "sim/dsm/invariants.hpp"

namespace hiroba::sim_test {

class SmallWorld {
public:
    static constexpr unsigned blocks_max = 3, words_per_block = 2, locks_max = 3;
    static constexpr std::size_t bytes_used_of_block = 64;

    /// Word w lies in block w / 2. @param blocks  where they begin
    SmallWorld(Cluster& cluster, std::vector<std::uintptr_t> blocks);

    // --- by the program's threads ----------------------------------------------------------------

    /// Reads a word and compares.
    void see(ClusterNode& node, unsigned word);
    void add(ClusterNode& node, unsigned word);
    /// As see(), of a block that many want: what its home answers once must be enough, or its lock
    /// goes round (docs/protocol.md#races). No other thread of the node learns anything meanwhile.
    void see_with_one_answer(ClusterNode& node, unsigned word);
    /// Reads a word that has been known to be `least`.
    void see_at_least(ClusterNode& node, unsigned word, std::uint64_t least);
    /// Reads a word: `right`, or a race has been told.
    void see_or_told(ClusterNode& node, unsigned word, std::uint64_t right);
    /// Without a look at what is right: for programs with races, and flags.
    std::uint64_t read(ClusterNode& node, unsigned word);
    void write(ClusterNode& node, unsigned word, std::uint64_t value);
    /// Likewise; told as soon as it has begun, be it that its page comes a while later.
    void write_and_tell(ClusterNode& node, unsigned word, std::uint64_t value);
    /// Adds one, as fetch_add(), to what a write has left that began before.
    void add_behind_write(ClusterNode& node, unsigned word, std::uint64_t wrote);
    /// One thread of each node, beside which the node's other threads run on.
    void meet_beside(ClusterNode& node);
    void lock(ClusterNode& node, unsigned lock);
    void unlock(ClusterNode& node, unsigned lock);
    /// As lock() and unlock(), with no release in between: tells of others' writes alone.
    void hand_on(ClusterNode& node, unsigned lock);
    /// In the critical section of `lock`: word += 1.
    void locked_add(ClusterNode& node, unsigned lock, unsigned word);
    void atomic_add(ClusterNode& node, unsigned word);
    void short_atomic_add(ClusterNode& node, unsigned word);
    /// As atomic_add() of a word that others may be reading.
    void atomic_set(ClusterNode& node, unsigned word);
    /// An atomic that says what it found, likewise.
    std::uint64_t fetch_add(ClusterNode& node, unsigned word, std::uint64_t count);
    /// Reads a flag, then what was written before it: word `data` is no smaller.
    void look(ClusterNode& node, unsigned flag, unsigned data);
    /// By the first thread and the last, before all else: the first one's background flusher brings
    /// it an atomic of the other node, and it loads that at once. tell() is called twice.
    void be_seen_to_wait(ClusterNode& node, std::uint32_t thread, unsigned word);
    /// Tells that a loop of loads waits for the word.
    void await_write(ClusterNode& node, unsigned word);
    /// Adds to words 0 and 2 so that a signature of one notice drops that of word 0.
    void add_and_drop_notice(ClusterNode& node);
    /// A barrier of all threads.
    void meet(ClusterNode& node);

    /// What one thread has done before tell() another comes behind, though its memory learns
    /// nothing of it: keeps orders out that are not the point of a scenario.
    void tell() noexcept { ++told_; }
    void await_told(std::uint32_t times);

    // --- between two steps -----------------------------------------------------------------------

    std::uint64_t digest() noexcept;
    std::string broken();
    const std::string& failure() const noexcept { return failure_; }
    /// Some node has told of a race.
    bool raced() const noexcept { return raced_; }
    std::uint64_t checks() const noexcept { return invariants_.checks(); }

    /// Threads of the program are told apart by the order in which they come here.
    void come(ClusterNode& node);

private:
    static constexpr std::size_t news_bytes = 1024;
    struct News {
        std::array<std::byte, news_bytes> bytes{};
        std::size_t size = 0;
    };
    struct Lock {
        bool held = false;
        News news;
    };
    struct Gate {  ///< of one node
        std::uint32_t come = 0;
        std::uint64_t rounds = 0, sent = 0;
    };
    /// Counts the answers that a node in see_with_one_answer() had before; empty for the others.
    using Answers = std::optional<std::uint64_t>;
    std::uint64_t answers_since(std::uint32_t rank) noexcept;
    void exchange(ClusterNode& node, std::uint64_t round, dsm::Others others);
    void check_merged(ClusterNode& node);
    /// The mails of two rounds, because a node may be one ahead.
    News& mail(std::uint32_t from, std::uint32_t to, std::uint64_t round) {
        return mail_[(round % 2 * nodes_ + from) * nodes_ + to];
    }

    Cluster& cluster_;
    std::uint32_t nodes_;
    std::vector<std::uintptr_t> addresses_;
    std::vector<dsm::BlockId> blocks_;
    Invariants invariants_;
    std::vector<net::sim::Fiber*> threads_;
    std::array<std::uint64_t, blocks_max * words_per_block> right_{};
    std::array<Lock, locks_max> locks_;
    std::vector<Gate> gates_;
    std::vector<Answers> answers_before_;
    std::uint32_t told_ = 0;
    std::vector<News> mail_;
    std::string failure_;
    bool raced_ = false;
};

}  // namespace hiroba::sim_test
