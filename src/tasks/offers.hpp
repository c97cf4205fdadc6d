// SPDX-License-Identifier: BSD-3-Clause
// Role: the tasks that a worker offers to all nodes of the job: closures that have not begun, in
// memory that other nodes reach. The owner pushes and pops at the bottom; thieves, of this node or
// others, take from the top. The algorithm is that of deque.hpp.
//
// Thieves on other nodes read the ends and the entry, and then raise `top` by a compare-swap of the
// network (steal.hpp). Where not every node's memory is mapped, the owner and this node's workers
// raise it by the network, too: devices' atomics and the processors' need not know each other.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hiroba/net.hpp"
#include "hiroba/tasks_base.hpp"
#include "tasks/stop.hpp"

namespace hiroba::tasks {

/// A task that has not begun.
struct Entry {
    std::uint32_t number = 0, hash = 0;  ///< of its detail::TaskType
    NodeId home{};                       ///< that waits for it
    std::uint32_t bytes = 0;             ///< of `closure`
    std::uint64_t join = 0;              ///< the address of its Join, at home
    std::uint64_t unused = 0;
    alignas(16) std::byte closure[closure_bytes_max];

    static constexpr std::size_t head_bytes = 32;
    std::size_t words() const noexcept {
        return (head_bytes + std::min<std::size_t>(bytes, closure_bytes_max) + 7) / 8;
    }
};
static_assert(sizeof(Entry) == 128 && std::is_trivially_copyable_v<Entry>);

/// Both ends, as they lie in exposed memory.
struct Ends {
    alignas(64) std::atomic<std::uint64_t> top;
    alignas(64) std::atomic<std::uint64_t> bottom;
};
static_assert(sizeof(Ends) == 128);

/// How `top` of this node's memory is raised through the network.
struct TopByNetwork {
    net::Network* network = nullptr;  ///< nullptr: by the processor
    net::RemoteAddress at{};
};

class Offers {
public:
    static std::size_t bytes_of(std::uint32_t capacity) noexcept {
        return sizeof(Ends) + capacity * sizeof(Entry);
    }
    /// @param memory  zeroed, bytes_of(capacity), aligned to 64
    Offers(std::byte* memory, std::uint32_t capacity, const TopByNetwork& by = {}) noexcept
        : ends_(reinterpret_cast<Ends*>(memory)),
          words_(reinterpret_cast<std::atomic<std::uint64_t>*>(memory + sizeof(Ends))),
          capacity_(capacity),
          by_(by) {}

    /// The owner. @return false: it is full
    bool push(const Entry& entry, const void* closure) noexcept {
        const std::uint64_t bottom = ends_->bottom.load(std::memory_order_relaxed);  // its own
        // Acquire, pairs with raise(): who took the entry has read it.
        if (bottom - ends_->top.load(std::memory_order_acquire) >= capacity_) [[unlikely]]
            return false;
        std::atomic<std::uint64_t>* const to = words_of(bottom);
        std::uint64_t head[Entry::head_bytes / 8];
        std::memcpy(head, &entry, sizeof head);
        for (std::size_t i = 0; i < std::size(head); ++i)
            to[i].store(head[i], std::memory_order_relaxed);
        const auto* from = static_cast<const std::byte*>(closure);
        std::size_t left = entry.bytes;
        for (std::size_t i = std::size(head); left > 0; ++i) {
            const std::size_t piece = std::min<std::size_t>(left, 8);
            std::uint64_t word = 0;
            std::memcpy(&word, from, piece);
            to[i].store(word, std::memory_order_relaxed);
            from += piece;
            left -= piece;
        }
        ends_->bottom.store(bottom + 1, std::memory_order_release);  // pairs with take()
        return true;
    }
    /// The owner: the Join of the newest entry, or 0. Another may take the entry meanwhile.
    std::uint64_t newest() const noexcept {
        const std::uint64_t bottom = ends_->bottom.load(std::memory_order_relaxed);  // its own
        if (bottom == ends_->top.load(std::memory_order_relaxed)) return 0;
        return words_of(bottom - 1)[offsetof(Entry, join) / 8].load(std::memory_order_relaxed);
    }
    /// The owner: the newest entry. @return false: there is none
    bool pop(Entry& to) noexcept {
        const std::uint64_t bottom = ends_->bottom.load(std::memory_order_relaxed);  // its own
        // Relaxed: top only grows, so empty stays empty.
        if (bottom == ends_->top.load(std::memory_order_relaxed)) return false;
        ends_->bottom.store(bottom - 1, std::memory_order_seq_cst);
        const std::uint64_t top = ends_->top.load(std::memory_order_seq_cst);
        const bool is_there = top < bottom;
        if (is_there) copy(bottom - 1, to);
        if (top + 1 < bottom) return true;
        const bool is_mine = is_there && raise(top);
        ends_->bottom.store(bottom, std::memory_order_release);  // pairs with take()
        return is_mine;
    }
    /// Any thread that has this memory mapped: the oldest entry. @return false: there is none, or
    /// another was faster
    bool take(Entry& to) noexcept {
        const std::uint64_t top = ends_->top.load(std::memory_order_seq_cst);
        if (top >= ends_->bottom.load(std::memory_order_seq_cst)) return false;
        copy(top, to);
        return raise(top);
    }
    bool is_empty() const noexcept {
        return ends_->top.load(std::memory_order_relaxed) >=
               ends_->bottom.load(std::memory_order_relaxed);
    }

private:
    std::atomic<std::uint64_t>* words_of(std::uint64_t index) const noexcept {
        return words_ + (index & (capacity_ - 1)) * (sizeof(Entry) / 8);
    }
    /// Leaves anything in `to` if the entry is overwritten meanwhile; raise() fails then.
    void copy(std::uint64_t index, Entry& to) const noexcept {
        const std::atomic<std::uint64_t>* const from = words_of(index);
        std::uint64_t words[sizeof(Entry) / 8];
        constexpr std::size_t head = Entry::head_bytes / 8;
        for (std::size_t i = 0; i < head; ++i) words[i] = from[i].load(std::memory_order_relaxed);
        std::memcpy(static_cast<void*>(&to), words, Entry::head_bytes);
        const std::size_t all = to.words();
        for (std::size_t i = head; i < all; ++i) words[i] = from[i].load(std::memory_order_relaxed);
        std::memcpy(to.closure, words + head, (all - head) * 8);
    }
    bool raise(std::uint64_t from) noexcept {
        if (by_.network == nullptr) return ends_->top.compare_exchange_strong(from, from + 1);
        std::uint64_t found = 0;
        const net::AtomicParams swap{.target = by_.network->self(),
                                     .at = by_.at,
                                     .op = net::AtomicOp::compare_swap,
                                     .operand = from + 1,
                                     .expected = from};
        std::string why;
        if (by_.network->atomic(swap, found, &why) != net::Ended::done)
            stop("a compare-swap on this node's own memory failed: %s", why.c_str());
        return found == from;
    }

    Ends* ends_;
    std::atomic<std::uint64_t>* words_;
    std::uint64_t capacity_;
    TopByNetwork by_;
};

}  // namespace hiroba::tasks
