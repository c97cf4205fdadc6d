// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dsm/small_world.hpp"

#include <cstring>

#include "dsm/thread_part.hpp"

namespace hiroba::sim_test {

namespace {

using dsm::Others;

/// The digest of a state: multiply and rotate by words of eight bytes (wyhash's mixing).
class Digest {
public:
    void add(std::uint64_t value) noexcept { add_part(value, sizeof value); }
    /// Only the length of a row of blocks that are all 0 counts: most of what is shown is such.
    void add(Bytes bytes) noexcept {
        if (bytes.size() <= sizeof(std::uint64_t)) return add_part(value_of(bytes), bytes.size());
        add(bytes.size());
        std::uint64_t zeros = 0;
        for (; bytes.size() >= block_bytes; bytes = bytes.subspan(block_bytes)) {
            std::uint64_t words[block_bytes / 8], any = 0;
            std::memcpy(words, bytes.data(), block_bytes);
            for (const std::uint64_t word : words) any |= word;
            if (any == 0) {
                ++zeros;
                continue;
            }
            add(zeros);
            zeros = 0;
            add_block(words);
        }
        add(zeros);
        while (!bytes.empty()) {
            const Bytes part = bytes.first(std::min(bytes.size(), sizeof(std::uint64_t)));
            add(value_of(part));
            bytes = bytes.subspan(part.size());
        }
    }
    std::uint64_t sum() const noexcept { return sum_; }

private:
    static constexpr std::size_t block_bytes = 64;
    static std::uint64_t mixed(std::uint64_t a, std::uint64_t b) noexcept {
        const auto product = static_cast<unsigned __int128>(a) * b;
        return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    }
    /// At most eight bytes. Most are as many as a type has, whose copy is no call.
    static std::uint64_t value_of(Bytes bytes) noexcept {
        const auto as = [&](auto value) -> std::uint64_t {
            std::memcpy(&value, bytes.data(), sizeof value);
            return value;
        };
        switch (bytes.size()) {
            case 1: return as(std::uint8_t{});
            case 2: return as(std::uint16_t{});
            case 4: return as(std::uint32_t{});
            case 8: return as(std::uint64_t{});
        }
        std::uint64_t value = 0;
        for (const std::byte each : bytes)
            value = value << 8 | std::to_integer<std::uint64_t>(each);
        return value;
    }
    /// Few bytes, and how many.
    void add_part(std::uint64_t value, std::size_t bytes) noexcept {
        sum_ = mixed(sum_ ^ value, 0x9E37'79B9'7F4A'7C15u + 2 * bytes) ^ 0xD6E8'FEB8'6659'FD93u;
        sum_ = sum_ << 23 | sum_ >> 41;
    }
    /// Two words in each product, so that the products do not wait for each other (as wyhash).
    void add_block(const std::uint64_t (&words)[block_bytes / 8]) noexcept {
        constexpr std::uint64_t odd[] = {0xA076'1D64'78BD'642Fu, 0xE703'7ED1'A0B4'28DBu,
                                         0x8EBC'6AF0'9C88'C6E3u, 0x5899'65CC'7537'4CC3u};
        std::uint64_t all = 0;
        for (unsigned i = 0; i < 4; ++i)
            all += mixed(words[2 * i] ^ odd[i], words[2 * i + 1] ^ odd[i] ^ sum_);
        add(all);
    }
    std::uint64_t sum_ = 0x2545'F491'4F6C'DD1Du;
};

/// How often a home has answered the node: with bytes, or that it has the newest.
std::uint64_t answers_of(ClusterNode& node) noexcept {
    const dsm::MemoryCounts counts = node.memory().counts();
    return counts.fetches_by_notice + counts.fetches_by_home + counts.renewals;
}

}  // namespace

SmallWorld::SmallWorld(Cluster& cluster, std::vector<std::uintptr_t> blocks)
    : cluster_(cluster),
      nodes_(cluster.options().nodes),
      addresses_(std::move(blocks)),
      invariants_(cluster, addresses_),
      gates_(nodes_),
      answers_before_(nodes_),
      mail_(2 * nodes_ * nodes_) {
    for (const std::uintptr_t address : addresses_) {
        const std::uint64_t offset = *cluster.map().offset_of(address);
        blocks_.push_back(static_cast<dsm::BlockId>(offset / page_bytes));
    }
    threads_.reserve(cluster.threads() + nodes_);
}

void SmallWorld::come(ClusterNode& node) {
    HIROBA_INVARIANT(node.memory().news_bytes_max() <= news_bytes, "news of %lu bytes",
                     node.memory().news_bytes_max());
    node.memory().on_race([](void* raced, std::uintptr_t, std::uint32_t, NodeId,
                             NodeId) noexcept { *static_cast<bool*>(raced) = true; },
                          &raced_);
    threads_.push_back(&cluster_.scheduler().running());
    cluster_.scheduler().begin_choice(cluster_.threads() +
                                      (cluster_.options().with_payers ? nodes_ : 0));
}

void SmallWorld::see(ClusterNode& node, unsigned word) {
    const std::uintptr_t at = addresses_[word / words_per_block] + word % words_per_block * 8;
    const std::uint64_t saw = node.load(at, 8);
    if (saw == right_[word] || !failure_.empty()) return;
    failure_ = "node " + std::to_string(node.endpoint().self().value) + " sees " +
               std::to_string(saw) + " in word " + std::to_string(word) + ", should be " +
               std::to_string(right_[word]);
    cluster_.scheduler().stop();
}

void SmallWorld::see_with_one_answer(ClusterNode& node, unsigned word) {
    Answers& before = answers_before_[node.self().value];
    cluster_.scheduler().step();
    before = answers_of(node);
    see(node, word);
    before.reset();
}

std::uint64_t SmallWorld::answers_since(std::uint32_t rank) noexcept {
    const Answers& before = answers_before_[rank];
    return before ? answers_of(cluster_.node(rank)) - *before : 0;
}

std::string SmallWorld::broken() {
    for (std::uint32_t rank = 0; rank < nodes_; ++rank)
        if (answers_since(rank) > 1)
            return "node " + std::to_string(rank) + " has been answered, and asks again";
    return invariants_.broken_now();
}

void SmallWorld::see_at_least(ClusterNode& node, unsigned word, std::uint64_t least) {
    const std::uint64_t saw = read(node, word);
    if (saw >= least || !failure_.empty()) return;
    failure_ = "node " + std::to_string(node.endpoint().self().value) + " sees " +
               std::to_string(saw) + " in word " + std::to_string(word) + ", has seen " +
               std::to_string(least);
    cluster_.scheduler().stop();
}

void SmallWorld::see_or_told(ClusterNode& node, unsigned word, std::uint64_t right) {
    const std::uint64_t saw = read(node, word);
    if (saw == right || raced_ || !failure_.empty()) return;
    failure_ = std::to_string(saw) + " in word " + std::to_string(word) + ", should be " +
               std::to_string(right) + ", and no race was told";
    cluster_.scheduler().stop();
}

void SmallWorld::add(ClusterNode& node, unsigned word) {
    const std::uintptr_t at = addresses_[word / words_per_block] + word % words_per_block * 8;
    right_[word] += 1;
    node.store(at, 8, right_[word]);
}

std::uint64_t SmallWorld::read(ClusterNode& node, unsigned word) {
    cluster_.scheduler().step();
    return node.load(addresses_[word / words_per_block] + word % words_per_block * 8, 8);
}

void SmallWorld::write(ClusterNode& node, unsigned word, std::uint64_t value) {
    cluster_.scheduler().step();
    node.store(addresses_[word / words_per_block] + word % words_per_block * 8, 8, value);
}

void SmallWorld::write_and_tell(ClusterNode& node, unsigned word, std::uint64_t value) {
    cluster_.scheduler().step();
    tell();
    node.store(addresses_[word / words_per_block] + word % words_per_block * 8, 8, value);
}

void SmallWorld::add_behind_write(ClusterNode& node, unsigned word, std::uint64_t wrote) {
    const std::uint64_t found = fetch_add(node, word, 1);
    if (found == wrote || !failure_.empty()) return;
    failure_ = "an atomic found " + std::to_string(found) + " in word " + std::to_string(word) +
               ", and another thread of its node had begun to write " + std::to_string(wrote);
    cluster_.scheduler().stop();
}

void SmallWorld::atomic_set(ClusterNode& node, unsigned word) {
    auto* const address =
        reinterpret_cast<void*>(addresses_[word / words_per_block] + word % words_per_block * 8);
    node.memory().enter_atomic(address, 8);
    add(node, word);
    node.memory().leave_atomic(address, 8);
}

std::uint64_t SmallWorld::fetch_add(ClusterNode& node, unsigned word, std::uint64_t count) {
    const std::uintptr_t at = addresses_[word / words_per_block] + word % words_per_block * 8;
    cluster_.scheduler().step();
    node.memory().enter_atomic(reinterpret_cast<void*>(at), 8);
    const std::uint64_t found = node.load(at, 8);
    node.store(at, 8, found + count);
    node.memory().leave_atomic(reinterpret_cast<void*>(at), 8);
    return found;
}

void SmallWorld::await_write(ClusterNode& node, unsigned word) {
    const std::uintptr_t at = addresses_[word / words_per_block] + word % words_per_block * 8;
    cluster_.scheduler().step();
    node.memory().await_write(reinterpret_cast<void*>(at));
}

void SmallWorld::look(ClusterNode& node, unsigned flag, unsigned data) {
    const std::uint64_t told = read(node, flag);
    const std::uint64_t saw = read(node, data);
    if (saw >= told || !failure_.empty()) return;
    failure_ = "node " + std::to_string(node.endpoint().self().value) + " sees " +
               std::to_string(told) + " in word " + std::to_string(flag) + " and " +
               std::to_string(saw) + " in word " + std::to_string(data) + ", written before";
    cluster_.scheduler().stop();
}

void SmallWorld::be_seen_to_wait(ClusterNode& node, std::uint32_t thread, unsigned word) {
    News& news = mail(1, 0, 0);
    if (thread == 0) {
        read(node, word);
        tell();
        await_told(2);
        node.memory().learn(NodeId{~0u}, {news.bytes.data(), news.size});
        node.memory().flush_aside();
        read(node, word);
    } else if (node.endpoint().self().value != 0) {
        await_told(1);
        fetch_add(node, word, 1);
        node.memory().release(Others::running);
        news.size = node.memory().news_for_anyone(news.bytes);
        tell();
    }
}

void SmallWorld::lock(ClusterNode& node, unsigned which) {
    Lock& lock = locks_[which];
    cluster_.scheduler().step();
    while (lock.held) cluster_.scheduler().pass();
    lock.held = true;
    if (lock.news.size == 0) return;
    node.memory().learn(NodeId{~0u}, {lock.news.bytes.data(), lock.news.size});
    node.memory().acquire(Others::running);
}

void SmallWorld::unlock(ClusterNode& node, unsigned which) {
    Lock& lock = locks_[which];
    node.memory().release(Others::running);
    check_merged(node);
    lock.news.size = node.memory().news_for_anyone(lock.news.bytes);
    lock.held = false;
}

void SmallWorld::hand_on(ClusterNode& node, unsigned which) {
    lock(node, which);
    Lock& lock = locks_[which];
    lock.news.size = node.memory().news_for_anyone(lock.news.bytes);
    lock.held = false;
}

void SmallWorld::locked_add(ClusterNode& node, unsigned which, unsigned word) {
    lock(node, which);
    see(node, word);
    add(node, word);
    unlock(node, which);
}

void SmallWorld::atomic_add(ClusterNode& node, unsigned word) {
    auto* const address =
        reinterpret_cast<void*>(addresses_[word / words_per_block] + word % words_per_block * 8);
    node.memory().enter_atomic(address, 8);
    see(node, word);
    add(node, word);
    node.memory().leave_atomic(address, 8);
}

// In the short form where there is one: then other threads of the node may be at the block.
void SmallWorld::short_atomic_add(ClusterNode& node, unsigned word) {
    auto* const address =
        reinterpret_cast<void*>(addresses_[word / words_per_block] + word % words_per_block * 8);
    cluster_.scheduler().step();
    const dsm::OwnAtomics own = node.memory().own_atomics();
    if (own.try_go_by != nullptr && own.try_go_by(own.context, address)) {
        see(node, word);
        add(node, word);
        return own.end_going_by(own.context);
    }
    if (own.try_enter == nullptr || !own.try_enter(own.context, address, 8))
        node.memory().enter_atomic(address, 8);
    see(node, word);
    add(node, word);
    if (own.try_leave == nullptr || !own.try_leave(own.context, address, 8))
        node.memory().leave_atomic(address, 8);
}

// The smaller wts is dropped: the block of word 2 is ahead by two writes.
void SmallWorld::add_and_drop_notice(ClusterNode& node) {
    locked_add(node, 0, 2);
    locked_add(node, 0, 2);
    lock(node, 0);
    add(node, 0);
    add(node, 2);
    unlock(node, 0);
}

void SmallWorld::await_told(std::uint32_t times) {
    cluster_.scheduler().step();
    while (told_ < times) cluster_.scheduler().pass();
}

// The order of release, news, acquire and everyone_knows() is omp/team's.
void SmallWorld::meet(ClusterNode& node) {
    const std::uint32_t self = node.endpoint().self().value;
    Gate& gate = gates_[self];
    const std::uint64_t round = gate.rounds;
    cluster_.scheduler().step();
    if (++gate.come < cluster_.threads_of(self)) {
        while (gate.rounds == round) cluster_.scheduler().pass();
        return;
    }
    node.memory().release(Others::stopped);
    check_merged(node);
    exchange(node, round, Others::stopped);
    gate.come = 0;
    ++gate.rounds;
}

void SmallWorld::meet_beside(ClusterNode& node) {
    Gate& gate = gates_[node.endpoint().self().value];
    cluster_.scheduler().step();
    node.memory().release(Others::running);
    exchange(node, gate.rounds, Others::running);
    ++gate.rounds;
}

void SmallWorld::exchange(ClusterNode& node, std::uint64_t round, Others others) {
    const std::uint32_t self = node.endpoint().self().value;
    for (std::uint32_t i = 1; i < nodes_; ++i) {
        const std::uint32_t to = (self + i) % nodes_;
        News& news = mail(self, to, round);
        news.size = node.memory().news_for(NodeId{to}, news.bytes);
    }
    ++gates_[self].sent;
    for (std::uint32_t i = 1; i < nodes_; ++i) {
        const std::uint32_t from = (self + i) % nodes_;
        cluster_.scheduler().step();
        while (gates_[from].sent <= round) cluster_.scheduler().pass();
        const News& news = mail(from, self, round);
        node.memory().learn(NodeId{from}, {news.bytes.data(), news.size});
    }
    node.memory().acquire(others);
    node.memory().everyone_knows();
}

/// Where another thread of the node may have written since, nothing can be said.
void SmallWorld::check_merged(ClusterNode& node) {
    const std::uint32_t self = node.endpoint().self().value;
    if (cluster_.threads_of(self) > 1 || !failure_.empty()) return;
    failure_ = invariants_.broken_after_release(self);
    if (!failure_.empty()) cluster_.scheduler().stop();
}

std::uint64_t SmallWorld::digest() noexcept {
    Digest digest;
    const auto add = [](void* sum, Bytes part) { static_cast<Digest*>(sum)->add(part); };
    for (std::uint32_t rank = 0; rank < nodes_; ++rank) {
        ClusterNode& node = cluster_.node(rank);
        node.coherence().show_state(blocks_, bytes_used_of_block, add, &digest);
        for (const std::uintptr_t at : addresses_) digest.add(node.engine().page_state(at));
        digest.add(gates_[rank].come);
        digest.add(gates_[rank].rounds);
        digest.add(gates_[rank].sent);
        digest.add(answers_since(rank));
    }
    for (const Lock& lock : locks_) {
        digest.add(lock.held);
        digest.add(Bytes{lock.news.bytes.data(), lock.news.size});
    }
    for (const News& news : mail_) digest.add(Bytes{news.bytes.data(), news.size});
    for (const std::uint64_t value : right_) digest.add(value);
    digest.add(raced_);
    digest.add(told_);
    for (const net::sim::Fiber* const thread : threads_) {
        digest.add(thread->ended);
        const dsm::ThreadPart& part = dsm::thread_part(thread->context);
        digest.add(part.atomic_block);
        if (thread->ended) continue;
        const auto* const from = static_cast<const std::byte*>(thread->stack_pointer);
        digest.add(Bytes{from, static_cast<std::size_t>(thread->stack_top - from)});
    }
    return digest.sum();
}

}  // namespace hiroba::sim_test
