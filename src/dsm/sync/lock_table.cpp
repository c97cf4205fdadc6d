// SPDX-License-Identifier: BSD-3-Clause
// Role: the lock table (see the header). A lock is a slot at the node its key hashes to; who waits
// hangs a queue node of its own node behind the last one (MCS) and waits there. The news of the
// last holder lie beside the slot. Invariant: a slot, once bound to a key, stays bound: an address
// that becomes a lock again finds it. Layout of the segment on every node: slots, queue nodes,
// news.
#include "dsm/sync/lock_table.hpp"

#include <cstddef>
#include <mutex>

#include "base/fatal.hpp"
#include "base/latch.hpp"
#include "base/thread_context.hpp"
#include "dsm/dsm.hpp"
#include "dsm/engine/sparse_array.hpp"
#include "gas/gas.hpp"
#include "net/net.hpp"

namespace hiroba::dsm {

namespace {

constexpr std::uint32_t slots_per_node = 1u << 16;
constexpr std::uint32_t queue_nodes_per_node = 1u << 14;
constexpr std::size_t cell_bytes = cache_line_bytes;

// Words of a slot.
constexpr std::size_t key_at = 0, tail_at = 8, holder_at = 16, news_bytes_at = 24;
// Words of a queue node.
constexpr std::size_t next_at = 0, granted_at = 8;
/// In granted_at: another node has unlocked; the queue node's own takes it back when it needs one.
constexpr std::uint64_t given_back = 2;

// A queue node of the job: 0 is none.
struct Waiter {
    std::uint64_t raw = 0;
    static Waiter make(NodeId node, std::uint32_t index) {
        return {std::uint64_t{node.value} << 32 | (index + 1u)};
    }
    NodeId node() const { return NodeId{static_cast<std::uint32_t>(raw >> 32)}; }
    std::uint32_t index() const { return static_cast<std::uint32_t>(raw) - 1; }
    explicit operator bool() const { return raw != 0; }
};

struct Slot {
    NodeId node;
    std::uint32_t index;
};

class Table final : public LockTable {
public:
    Table(net::Endpoint& endpoint, SharedMemory& memory, gas::Segment segment,
          std::size_t news_stride)
        : endpoint_(endpoint),
          memory_(memory),
          segment_(std::move(segment)),
          news_stride_(news_stride),
          free_(queue_nodes_per_node),
          buffer_(news_stride) {
        for (std::uint32_t i = 0; i < queue_nodes_per_node; ++i) {
            free_[i] = queue_nodes_per_node - 1 - i;
        }
    }

    void attach() override { segment_.attach(); }
    void interrupt_waits_for(Interruptions interruptions) noexcept override {
        interruptions_ = interruptions;
    }
    void lock(LockKey key) noexcept override;
    bool try_lock(LockKey key) noexcept override;
    void unlock(LockKey key) noexcept override;
    void forget(LockKey) noexcept override {}

    static std::size_t segment_bytes(std::size_t news_stride) {
        return slots_per_node * (cell_bytes + news_stride) + queue_nodes_per_node * cell_bytes;
    }

private:
    gas::GlobalAddress at(Slot slot, std::size_t word) const {
        return {slot.node, slot.index * cell_bytes + word};
    }
    gas::GlobalAddress at(Waiter waiter, std::size_t word) const {
        return {waiter.node(),
                (slots_per_node + std::uint64_t{waiter.index()}) * cell_bytes + word};
    }
    gas::GlobalAddress news_of(Slot slot) const {
        return {slot.node, (slots_per_node + std::uint64_t{queue_nodes_per_node}) * cell_bytes +
                               slot.index * news_stride_};
    }
    Slot find(LockKey key) noexcept;
    bool queue_up(Slot slot, Waiter& mine) noexcept;
    Waiter take_queue_node() noexcept;
    void give_queue_node(Waiter waiter) noexcept;
    void collect_given_back() noexcept;
    void become_holder(Slot slot, Waiter mine) noexcept;
    void publish_news(Slot slot) noexcept;

    net::Endpoint& endpoint_;
    SharedMemory& memory_;
    gas::Segment segment_;
    std::size_t news_stride_;
    Interruptions interruptions_;
    Latch free_latch_;
    SparseArray<std::uint32_t> free_;  ///< stack of free queue nodes
    std::uint32_t free_count_ = queue_nodes_per_node;
    Latch buffer_latch_;
    SparseArray<std::byte> buffer_;
};

// Keys are stored plus one: 0 is an unbound slot.
Slot Table::find(LockKey key) noexcept {
    const std::uint64_t hash = (key + 1) * 0x9E37'79B9'7F4A'7C15u;
    Slot slot{NodeId{static_cast<std::uint32_t>((hash >> 40) % endpoint_.nodes())},
              static_cast<std::uint32_t>(hash >> 20) % slots_per_node};
    for (std::uint32_t tries = 0; tries < slots_per_node; ++tries) {
        std::uint64_t bound = segment_.load(at(slot, key_at));
        if (bound == 0) bound = segment_.compare_swap(at(slot, key_at), 0, key + 1);
        if (bound == 0 || bound == key + 1) return slot;
        slot.index = (slot.index + 1) % slots_per_node;
    }
    die(exit_environment, "more than %u locks hash to node %u; the program may use fewer",
        slots_per_node, slot.node.value);
}

Waiter Table::take_queue_node() noexcept {
    const std::scoped_lock guard{free_latch_};
    if (free_count_ == 0) collect_given_back();
    HIROBA_INVARIANT(free_count_ > 0, "%u locks held or waited for on one node",
                     queue_nodes_per_node);
    return Waiter::make(endpoint_.self(), free_[--free_count_]);
}

/// With the latch. Rare: as many locks as there are queue nodes have been unlocked elsewhere.
void Table::collect_given_back() noexcept {
    for (std::uint32_t i = 0; i < queue_nodes_per_node; ++i) {
        const Waiter each = Waiter::make(endpoint_.self(), i);
        if (segment_.load(at(each, granted_at)) != given_back) continue;
        segment_.store(at(each, granted_at), 0);
        free_[free_count_++] = i;
    }
}

void Table::give_queue_node(Waiter waiter) noexcept {
    if (waiter.node() != endpoint_.self()) {
        segment_.store(at(waiter, granted_at), given_back);
        return;
    }
    const std::scoped_lock guard{free_latch_};
    free_[free_count_++] = waiter.index();
}

/// True: nobody was there.
bool Table::queue_up(Slot slot, Waiter& mine) noexcept {
    mine = take_queue_node();
    segment_.store(at(mine, next_at), 0);
    segment_.store(at(mine, granted_at), 0);
    const Waiter before{segment_.swap(at(slot, tail_at), mine.raw)};
    if (before) segment_.store(at(before, next_at), mine.raw);
    return !before;
}

void Table::lock(LockKey key) noexcept {
    // What lies on the program's stack here nobody else looks at.
    Slot slot;
    Waiter mine;
    bool granted = false;
    on_runtime_stack([&] {
        slot = find(key);
        granted = queue_up(slot, mine);
        if (granted) become_holder(slot, mine);
    });
    while (!granted) {
        on_runtime_stack([&] {
            const auto is_granted = [&] { return segment_.load(at(mine, granted_at)) != 0; };
            endpoint_.wait_until([&] { return is_granted() || interruptions_.are_pending(); });
            granted = is_granted();
            if (granted) become_holder(slot, mine);
        });
        if (!granted) interruptions_.serve();
    }
}

bool Table::try_lock(LockKey key) noexcept {
    const Slot slot = find(key);
    if (segment_.load(at(slot, tail_at)) != 0) return false;
    const Waiter mine = take_queue_node();
    segment_.store(at(mine, next_at), 0);
    segment_.store(at(mine, granted_at), 0);
    if (segment_.compare_swap(at(slot, tail_at), 0, mine.raw) != 0) {
        give_queue_node(mine);
        return false;
    }
    become_holder(slot, mine);
    return true;
}

void Table::become_holder(Slot slot, Waiter mine) noexcept {
    segment_.store(at(slot, holder_at), mine.raw);
    const std::size_t bytes = segment_.load(at(slot, news_bytes_at));
    if (bytes == 0) return;
    {
        const std::scoped_lock guard{buffer_latch_};
        segment_.get(news_of(slot), {buffer_.data(), bytes});
        memory_.learn(NodeId{~0u}, {buffer_.data(), bytes});
    }
    memory_.acquire(Others::running);
}

void Table::publish_news(Slot slot) noexcept {
    memory_.release(Others::running);
    const std::scoped_lock guard{buffer_latch_};
    const std::size_t bytes = memory_.news_for_anyone(buffer_.span());
    segment_.put(news_of(slot), {buffer_.data(), bytes});
    segment_.store(at(slot, news_bytes_at), bytes);
}

void Table::unlock(LockKey key) noexcept {
    const Slot slot = find(key);
    const Waiter mine{segment_.load(at(slot, holder_at))};
    // Who holds it may be of another node: a lock is the job's.
    if (!mine) die(exit_environment, "unlock of the lock at 0x%lx, which nobody holds", key);
    publish_news(slot);
    segment_.store(at(slot, holder_at), 0);
    Waiter next{segment_.load(at(mine, next_at))};
    if (!next) {
        if (segment_.compare_swap(at(slot, tail_at), mine.raw, 0) == mine.raw) {
            give_queue_node(mine);
            return;
        }
        // A waiter has swapped itself in and is about to say who it is.
        Backoff backoff;
        while (!(next = Waiter{segment_.load(at(mine, next_at))})) backoff.pause();
    }
    segment_.store(at(next, granted_at), 1);
    endpoint_.wake(next.node());
    give_queue_node(mine);
}

}  // namespace

Result<std::unique_ptr<LockTable>> LockTable::create(net::Endpoint& endpoint,
                                                     SharedMemory& memory) {
    const std::size_t news_stride = round_up(memory.news_bytes_max(), cell_bytes);
    auto segment = gas::Segment::allocate(endpoint, Table::segment_bytes(news_stride));
    if (!segment) return segment.error();
    return std::unique_ptr<LockTable>{
        new Table{endpoint, memory, std::move(*segment), news_stride}};
}

}  // namespace hiroba::dsm
