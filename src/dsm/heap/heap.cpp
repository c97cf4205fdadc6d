// SPDX-License-Identifier: BSD-3-Clause
// Role: the heap of one node: its own arena, and the way of blocks freed away from home.
// Invariant: a block freed on node f goes back to its owner o only in this order
// (docs/layers/heap.md):
//   f: sealed -> release -> sent with f's news               (they tell of all f wrote to it)
//   o: arrived -> learned at one accept -> acquired -> freed at the next   (no old write comes
//   later)
// The release and the acquire in it are made here: a caller's own may have begun before the last
// free was added, or before the news were learned. The news are complete (news_for_anyone): a delta
// would have to be learned in step with the deltas that other parts of the runtime send.
#include "dsm/heap/heap.hpp"

#include <algorithm>
#include <atomic>
#include <span>
#include <utility>

#include "base/fatal.hpp"
#include "base/latch.hpp"
#include "dsm/dsm.hpp"
#include "dsm/heap/arena.hpp"
#include "dsm/heap/freed_pages.hpp"
#include "dsm/heap/remote_frees.hpp"
#include "dsm/messages.hpp"
#include "gas/gas.hpp"
#include "net/net.hpp"

namespace hiroba::dsm {
namespace {

class GlobalHeap final : public Heap {
public:
    GlobalHeap(net::Endpoint& endpoint, const AddressMap& map, SharedMemory& memory,
               gas::Segment table, std::unique_ptr<Arena> arena, SparseArray<std::byte> news,
               SparseArray<Bytes> latest_news, std::unique_ptr<FreedPages> freed_pages)
        : endpoint_(endpoint),
          memory_(memory),
          self_(endpoint.self()),
          nodes_(map.shape().nodes),
          arenas_{map.heap_arena(NodeId{0}).address,
                  map.heap_arena(NodeId{nodes_ - 1}).end() - map.heap_arena(NodeId{0}).address},
          arena_bytes_(map.shape().heap_bytes),
          table_(std::move(table)),
          arena_(std::move(arena)),
          news_(std::move(news)),
          latest_news_(std::move(latest_news)),
          freed_pages_(std::move(freed_pages)) {
        endpoint_.on(
            message::remote_free,
            [](void* heap, NodeId from, Bytes body) noexcept {
                static_cast<GlobalHeap*>(heap)->arrived_.add(from, body);
            },
            this);
    }

    void attach() override {
        table_.attach();
        arena_->publish_in(reinterpret_cast<std::uint64_t*>(table_.local()));
    }

    void* allocate(std::size_t bytes, std::size_t alignment, bool* zeroed) noexcept override {
        const auto block = arena_->allocate(bytes, alignment);
        if (!block) return nullptr;
        *zeroed = block->zeroed;
        return reinterpret_cast<void*>(block->address);
    }
    void* reserve(std::size_t bytes) noexcept override {
        const auto block = arena_->reserve(bytes);
        return block ? reinterpret_cast<void*>(block->address) : nullptr;
    }
    void commit(AddressRange pages) noexcept override;
    bool is_reserved(const void* block) noexcept override {
        return arena_->is_reserved(reinterpret_cast<std::uintptr_t>(block));
    }
    AddressRange first_committed(AddressRange pages) noexcept override {
        return arena_->first_committed(pages);
    }
    void deallocate(void* block) noexcept override;
    bool resize(void* block, std::size_t bytes) noexcept override {
        return arena_->resize(reinterpret_cast<std::uintptr_t>(block), bytes);
    }
    std::size_t usable_bytes(const void* block) noexcept override;
    bool owns(const void* address) const noexcept override {
        return arenas_.contains(reinterpret_cast<std::uintptr_t>(address));
    }
    std::size_t bytes_free() noexcept override { return arena_->bytes_free(); }

    void flush_remote_frees() noexcept override;
    void accept_remote_frees() noexcept override;
    bool has_freed_pages() const noexcept override { return freed_pages_->has_work(); }
    void return_freed_pages() noexcept override { freed_pages_->step(); }
    void before_fork() noexcept override { arena_->lock_all(); }
    void after_fork() noexcept override { arena_->unlock_all(); }

private:
    NodeId owner_of(std::uintptr_t address) const noexcept {
        return NodeId{static_cast<std::uint32_t>((address - arenas_.address) / arena_bytes_)};
    }
    void accept_arrived() noexcept;
    bool learn_arrived() noexcept;
    void free_learned() noexcept;
    void send_to(NodeId owner, std::span<const std::uintptr_t> sealed, Bytes news) noexcept;

    net::Endpoint& endpoint_;
    SharedMemory& memory_;
    const NodeId self_;
    const std::uint32_t nodes_;
    const AddressRange arenas_;  ///< of all nodes, one behind the other
    const std::size_t arena_bytes_;
    gas::Segment table_;
    std::unique_ptr<Arena> arena_;

    OutgoingFrees outgoing_;
    Latch flushing_;  // guards sealing and news_
    SparseArray<std::byte> news_;
    ArrivedFrees arrived_;
    Latch accepting_;                   // guards what is taken out of arrived_, and the two below
    std::atomic<bool> learned_{false};  ///< what is taken out has been learned, not yet freed
    SparseArray<Bytes> latest_news_;    ///< by node; empty between calls
    std::unique_ptr<FreedPages> freed_pages_;
};

void GlobalHeap::deallocate(void* block) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    const bool ours = owns(block);
    if (ours && owner_of(address) != self_) {
        outgoing_.add(address);
        return;
    }
    if (!ours || !arena_->deallocate(address)) {
        fatal("free(): %p is not an allocated block", block);
    }
    freed_pages_->step();
}

void GlobalHeap::commit(AddressRange pages) noexcept {
    if (!owns(reinterpret_cast<void*>(pages.address))) return;
    const NodeId owner = owner_of(pages.address);
    if (owner == self_) return arena_->commit(pages);
    const std::uint64_t first = pages.address - arenas_.address - owner.value * arena_bytes_;
    for (std::uint64_t inside = first; inside < first + pages.bytes; inside += page_bytes) {
        const gas::GlobalAddress word{owner, inside / page_bytes * sizeof(std::uint64_t)};
        for (std::uint64_t found = table_.load(word);
             (found & (PageWord::committed_bit | PageWord::small_bit)) == 0 &&
             table_.compare_swap(word, found, found | PageWord::committed_bit) != found;)
            found = table_.load(word);
    }
}

std::size_t GlobalHeap::usable_bytes(const void* block) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    if (!owns(block)) return 0;
    const NodeId owner = owner_of(address);
    if (owner == self_) return arena_->usable_bytes(address);
    const std::uint64_t inside = address - arenas_.address - owner.value * arena_bytes_;
    return PageWord::block_bytes(table_.load({owner, inside / page_bytes * sizeof(std::uint64_t)}));
}

void GlobalHeap::flush_remote_frees() noexcept {
    if (outgoing_.empty() || !flushing_.try_lock()) return;  // another thread's flush sends them
    const auto sealed = outgoing_.seal();
    if (!sealed.empty()) {
        memory_.release(Others::running);
        const std::size_t news_bytes =
            memory_.news_for_anyone({news_.data(), memory_.news_bytes_max()});
        for (std::uint32_t node = 0; node < nodes_; ++node) {
            send_to(NodeId{node}, sealed, {news_.data(), news_bytes});
        }
    }
    flushing_.unlock();
}

/// Sends those of `sealed` that are `owner`'s, in as many messages as they need.
void GlobalHeap::send_to(NodeId owner, std::span<const std::uintptr_t> sealed,
                         Bytes news) noexcept {
    constexpr std::size_t batch_max = 256;
    constexpr std::byte padding[8]{};
    std::uintptr_t batch[batch_max];
    const std::size_t room = endpoint_.provider().limits().message_bytes_max;
    HIROBA_INVARIANT(sizeof(RemoteFreeHeader) + round_up(news.size(), 8) + sizeof batch[0] <= room,
                     "%lu bytes of news do not fit in a message of %lu; lower HIROBA_NOTICES",
                     static_cast<unsigned long>(news.size()), static_cast<unsigned long>(room));

    for (std::size_t next = 0; next < sealed.size();) {
        const std::size_t news_room = round_up(news.size(), 8);
        const std::size_t count_max =
            std::min(batch_max, (room - sizeof(RemoteFreeHeader) - news_room) / sizeof batch[0]);
        std::uint32_t count = 0;
        for (; next < sealed.size() && count < count_max; ++next) {
            if (owner_of(sealed[next]) == owner) batch[count++] = sealed[next];
        }
        if (count == 0) return;
        const RemoteFreeHeader header{static_cast<std::uint32_t>(news.size()), count};
        const Bytes parts[] = {std::as_bytes(std::span{&header, 1}),
                               news,
                               {padding, news_room - news.size()},
                               std::as_bytes(std::span{batch, count})};
        endpoint_.send(owner, message::remote_free, net::Urgency::when_polled, parts);
        news = {};
    }
}

void GlobalHeap::accept_remote_frees() noexcept {
    accept_arrived();
    freed_pages_->step();
}

void GlobalHeap::accept_arrived() noexcept {
    // Relaxed: a hint; what is missed now waits for the next synchronization.
    if (arrived_.empty() && !learned_.load(std::memory_order_relaxed)) return;
    if (!accepting_.try_lock()) return;
    if (learned_.load(std::memory_order_relaxed)) {
        memory_.acquire(Others::running);
        free_learned();
    }
    arrived_.take();
    learned_.store(learn_arrived(), std::memory_order_relaxed);
    accepting_.unlock();
}

/// Learns the last news of each node that sent some; all its earlier ones are in them or known to
/// every node. True: there were messages.
bool GlobalHeap::learn_arrived() noexcept {
    bool any = false;
    for (; const auto batch = arrived_.next(); any = true) {
        if (!batch->news.empty()) latest_news_[batch->from.value] = batch->news;
    }
    for (std::uint32_t node = 0; any && node < nodes_; ++node) {
        const Bytes news = std::exchange(latest_news_[node], Bytes{});
        if (!news.empty()) memory_.learn(NodeId{node}, news);
    }
    return any;
}

void GlobalHeap::free_learned() noexcept {
    arrived_.rewind();
    while (const auto batch = arrived_.next()) {
        for (const std::uintptr_t address : batch->addresses) {
            if (!owns(reinterpret_cast<void*>(address)) || owner_of(address) != self_ ||
                !arena_->deallocate(address)) {
                fatal("free(): 0x%lx, freed on node %u, is not an allocated block", address,
                      batch->from.value);
            }
        }
    }
}

}  // namespace

Result<std::unique_ptr<Heap>> Heap::create(net::Endpoint& endpoint, const AddressMap& map,
                                           SharedMemory& memory, const HeapOptions& options) {
    auto arena = Arena::create(map.heap_arena(endpoint.self()));
    if (!arena) return arena.error();
    auto table = gas::Segment::allocate(
        endpoint, Arena::table_words(map.shape().heap_bytes) * sizeof(std::uint64_t));
    if (!table) return table.error();
    auto news = SparseArray<std::byte>::reserve(memory.news_bytes_max() + 8);
    if (!news) return news.error();
    auto latest_news = SparseArray<Bytes>::reserve(map.shape().nodes);
    if (!latest_news) return latest_news.error();
    const std::size_t nodes = map.shape().nodes;
    auto asked = SparseArray<AddressRange>::reserve(nodes * FreedPages::ranges_max);
    if (!asked) return asked.error();
    auto asked_counts = SparseArray<std::uint32_t>::reserve(nodes);
    if (!asked_counts) return asked_counts.error();
    auto freed_pages = std::make_unique<FreedPages>(
        FreedPages::Parts{&endpoint, &memory, arena->get(), options.keep_freed_bytes},
        std::move(*asked), std::move(*asked_counts));
    return std::unique_ptr<Heap>{std::make_unique<GlobalHeap>(
        endpoint, map, memory, std::move(*table), std::move(*arena), std::move(*news),
        std::move(*latest_news), std::move(freed_pages))};
}

}  // namespace hiroba::dsm
