// SPDX-License-Identifier: BSD-3-Clause
// Role: the command queue and the command station: gives handles, holds commands back until their
// order allows them, sends them to the nodes concerned, and knows what is complete.
// Source: ACP basic layer, sections 4.1, 4.2, 5.1.
//
//   submit() -> [queue] -> ready -> under way -> done -> retired, from the front of the queue
//
// Invariant: a handle is complete when no command with a handle up to it is in the queue. Commands
// whose order is satisfied and whose both ends this node reaches by loads and stores are carried
// out in the call and never enter the queue. Commands become ready in any order; ready ones are
// sent in the order they became so, cut into pieces, at most bytes_under_way_max at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "acp/route.hpp"
#include "base/latch.hpp"
#include "gas/delegate.hpp"
#include "gas/global_memory.hpp"
#include "net/net.hpp"

namespace hiroba::acp {

/// One access, checked: both addresses are resolved, an atomic is aligned.
struct Access {
    bool is_atomic = false;
    net::AtomicOp op{};
    std::uint32_t width = 0;  ///< of an atomic: 4 or 8
    std::uint64_t dst = 0, src = 0;
    std::uint64_t bytes = 0;  ///< moved to dst: an atomic's width
    std::uint64_t operand = 0, expected = 0;
};

/// What must be complete before an access starts.
struct Order {
    enum class Kind : std::uint8_t { none, up_to, everything, previous };
    Kind kind = Kind::none;
    std::uint64_t handle = 0;  ///< of up_to
};

/// Any thread; submit(), complete() and inquire() not from handlers.
class CommandStation {
public:
    /// @param last_handle  handles continue behind it
    CommandStation(net::Endpoint& endpoint, std::uint64_t last_handle);

    /// Takes over both places and releases them. Waits while the queue is full.
    /// @return the handle; never 0
    std::uint64_t submit(gas::Delegate& delegate, const Access& access, gas::ResolvedAddress dst,
                         gas::ResolvedAddress src, Order order);
    /// Carries out what need not wait and has both its ends within reach. @return as submit()
    std::uint64_t submit_here(const Access& access, std::byte* dst, std::byte* src) noexcept;
    bool is_complete(std::uint64_t handle) const noexcept {
        return oldest_.load(std::memory_order_acquire) > handle;  // pairs with retire()
    }
    /// Waits until every access with a handle up to `handle` is complete.
    void complete(gas::Delegate& delegate, std::uint64_t handle);
    /// True when one with a handle up to `handle` is not. Makes progress.
    bool is_incomplete(gas::Delegate& delegate, std::uint64_t handle);
    std::uint64_t last_handle() const noexcept { return issued_.load(std::memory_order_acquire); }

    /// DelegateHooks::finished of this node's delegate.
    void finished(gas::Delegate& delegate, std::uint64_t token, std::uint64_t bytes) noexcept;

    static constexpr std::uint32_t capacity = 4096;  // section 5.1
    static constexpr std::uint64_t bytes_under_way_max = std::uint64_t{512} << 10;
    /// What the full queue takes; before that, as many pages as were touched.
    static constexpr std::size_t queue_bytes() { return sizeof(Slot) * capacity; }

private:
    static constexpr std::uint64_t nothing = ~std::uint64_t{0};
    enum class State : std::uint8_t { waiting, ready, sent, done };
    /// One command. Left uninitialized until its place is claimed: the queue is used as touched.
    struct Slot {
        Access access;
        gas::ResolvedAddress dst, src;
        std::uint64_t handle;
        std::uint64_t unsent;          ///< bytes no message has asked for
        std::uint64_t unfinished;      ///< bytes not known to be at dst
        std::uint64_t first_follower;  ///< position; waits for this to be sent or done
        std::uint64_t next_follower;
        State state;
        bool follows_when_sent;  ///< needs its predecessor sent, not done
        bool by_message;         ///< keeps to the way of its predecessor, though both ends may be
                                 ///< in reach
    };
    struct Waiter {
        std::uint64_t handle;    ///< must be complete
        std::uint64_t position;  ///< of the command that waits
        bool operator>(const Waiter& other) const { return handle > other.handle; }
    };

    bool is_satisfied(Order order) const noexcept;
    std::uint64_t new_handle() noexcept { return issued_.fetch_add(1) + 1; }
    std::uint64_t enqueue(gas::Delegate& delegate, const Access& access,
                          const gas::ResolvedAddress& dst, const gas::ResolvedAddress& src,
                          Order order);
    std::uint64_t claim(const Access& access, const gas::ResolvedAddress& dst,
                        const gas::ResolvedAddress& src);
    Slot& slot(std::uint64_t position) noexcept { return slots_[position % capacity]; }
    Route route_of(const Slot& of) const noexcept;
    std::uint64_t find(std::uint64_t handle) noexcept;
    void queue_behind(std::uint64_t position, Order order);
    void follow(std::uint64_t position, std::uint64_t previous);
    void make_ready(std::uint64_t position);
    void release_followers(Slot& of);
    /// Sends what is ready and allowed. The latch is held.
    void pump(gas::Delegate& delegate);
    bool is_here(const Slot& of) const noexcept;
    NodeId executor_of(const Slot& of) const noexcept {
        return of.src.node == self_ ? of.dst.node : of.src.node;
    }
    void send_piece(gas::Delegate& delegate, std::uint64_t position, std::uint64_t bytes);
    void send_atomic(gas::Delegate& delegate, std::uint64_t position);
    void finish_slot(std::uint64_t position);
    void retire() noexcept;

    net::Endpoint& endpoint_;
    NodeId self_;
    gas::AddressLayout layout_;
    std::atomic<std::uint64_t> issued_;
    std::atomic<std::uint64_t> oldest_{nothing};  ///< handle of the first in the queue
    std::atomic<bool> is_full_{false};

    Latch latch_;  ///< of all below
    struct RawDeleter {
        void operator()(Slot* slots) const noexcept { ::operator delete(slots); }
    };
    std::unique_ptr<Slot[], RawDeleter> slots_;
    std::uint64_t head_ = 0, tail_ = 0;  ///< positions; they never wrap
    std::deque<std::uint64_t> ready_;
    std::priority_queue<Waiter, std::vector<Waiter>, std::greater<>> waiters_;
    std::uint64_t bytes_under_way_ = 0;
};

}  // namespace hiroba::acp
