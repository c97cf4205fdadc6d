// SPDX-License-Identifier: BSD-3-Clause
#include "acp/command_station.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>

#include "base/fatal.hpp"

namespace hiroba::acp {
namespace {

/// The access that this thread issued last: ACP_HANDLE_CONT follows it.
struct LastOfThread {
    const CommandStation* station = nullptr;
    std::uint64_t handle = 0;
};
thread_local LastOfThread last_of_thread;

/// The caller's next store (the handle counter or `oldest_`) has release order and makes this copy
/// visible.
void carry_out(const Access& access, std::byte* dst, std::byte* src) noexcept {
    if (access.is_atomic) {
        const std::uint64_t old =
            gas::apply_to_word(src, access.op, access.width, access.operand, access.expected);
        gas::store_word(dst, old, access.width);
    } else if (access.bytes == 8) {
        std::uint64_t word;  // one store, of which no thread sees a half
        std::memcpy(&word, src, 8);
        std::memcpy(dst, &word, 8);
    } else {
        std::memmove(dst, src, access.bytes);
    }
}

}  // namespace

CommandStation::CommandStation(net::Endpoint& endpoint, std::uint64_t last_handle)
    : endpoint_(endpoint),
      self_(endpoint.self()),
      layout_(endpoint.nodes()),
      issued_(last_handle),
      slots_(static_cast<Slot*>(::operator new(sizeof(Slot) * capacity))) {}

// --- issuing -------------------------------------------------------------------------------------

bool CommandStation::is_satisfied(Order order) const noexcept {
    if (order.kind == Order::Kind::none) return true;
    if (order.kind == Order::Kind::everything) {
        return oldest_.load(std::memory_order_acquire) == nothing;  // pairs with retire()
    }
    return is_complete(order.handle);
}

std::uint64_t CommandStation::submit(gas::Delegate& delegate, const Access& access,
                                     gas::ResolvedAddress dst, gas::ResolvedAddress src,
                                     Order order) {
    LastOfThread& last = last_of_thread;
    if (order.kind == Order::Kind::previous) {
        order.handle = last.station == this ? last.handle : last_handle();
    }
    std::uint64_t handle;
    const bool in_reach = dst.reach != nullptr && src.reach != nullptr;
    if (access.bytes == 0 || (in_reach && is_satisfied(order))) {
        if (access.bytes != 0) carry_out(access, dst.reach, src.reach);
        dst.release();
        src.release();
        handle = new_handle();
    } else {
        handle = enqueue(delegate, access, dst, src, order);
    }
    last = {this, handle};
    return handle;
}

std::uint64_t CommandStation::submit_here(const Access& access, std::byte* dst,
                                          std::byte* src) noexcept {
    carry_out(access, dst, src);
    const std::uint64_t handle = new_handle();
    last_of_thread = {this, handle};
    return handle;
}

std::uint64_t CommandStation::enqueue(gas::Delegate& delegate, const Access& access,
                                      const gas::ResolvedAddress& dst,
                                      const gas::ResolvedAddress& src, Order order) {
    latch_.lock();
    while (tail_ - head_ == capacity) {
        latch_.unlock();
        delegate.flush(gas::CommandBatcher::When::now);
        // Acquire, pairs with retire().
        endpoint_.wait_until([this] { return !is_full_.load(std::memory_order_acquire); });
        latch_.lock();
    }
    const std::uint64_t position = claim(access, dst, src);
    const std::uint64_t handle = slot(position).handle;
    const std::uint64_t head = head_;
    queue_behind(position, order);
    pump(delegate);
    const bool has_retired = head_ != head;
    latch_.unlock();
    delegate.flush(gas::CommandBatcher::When::due);
    if (has_retired) endpoint_.wake_local();
    return handle;
}

std::uint64_t CommandStation::claim(const Access& access, const gas::ResolvedAddress& dst,
                                    const gas::ResolvedAddress& src) {
    const std::uint64_t position = tail_++;
    Slot& made = *std::construct_at(&slot(position));
    made.access = access;
    made.dst = dst;
    made.src = src;
    made.unsent = made.unfinished = access.bytes;
    made.first_follower = made.next_follower = nothing;
    made.state = State::waiting;
    made.follows_when_sent = made.by_message = false;
    made.handle = new_handle();
    if (position == head_) oldest_.store(made.handle, std::memory_order_release);  // is_complete()
    is_full_.store(tail_ - head_ == capacity, std::memory_order_relaxed);
    return position;
}

// --- order ---------------------------------------------------------------------------------------

Route CommandStation::route_of(const Slot& of) const noexcept {
    return {.origin = self_,
            .src = of.src.node,
            .dst = of.dst.node,
            .is_atomic = of.access.is_atomic,
            .src_color = layout_.parts(of.access.src).color,
            .dst_color = layout_.parts(of.access.dst).color};
}

/// The position of the command with `handle`, or `nothing`: handles grow along the queue, and those
/// of accesses that never were in it are missing.
std::uint64_t CommandStation::find(std::uint64_t handle) noexcept {
    std::uint64_t low = head_, high = tail_;
    while (low < high) {
        const std::uint64_t middle = low + (high - low) / 2;
        if (slot(middle).handle < handle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < tail_ && slot(low).handle == handle ? low : nothing;
}

void CommandStation::queue_behind(std::uint64_t position, Order order) {
    const std::uint64_t mine = slot(position).handle;
    if (order.kind == Order::Kind::none) return make_ready(position);
    if (order.kind == Order::Kind::previous) {
        const std::uint64_t previous = find(order.handle);
        const bool is_over = previous == nothing || slot(previous).state == State::done;
        return is_over ? make_ready(position) : follow(position, previous);
    }
    const std::uint64_t handle =
        order.kind == Order::Kind::everything ? mine - 1 : std::min(order.handle, mine - 1);
    if (is_complete(handle)) return make_ready(position);
    waiters_.push({handle, position});
}

void CommandStation::follow(std::uint64_t position, std::uint64_t previous) {
    Slot& mine = slot(position);
    Slot& before = slot(previous);
    if (may_follow(route_of(before), route_of(mine))) {
        mine.by_message = true;
        if (before.state == State::sent) return make_ready(position);
        mine.follows_when_sent = true;
    }
    mine.next_follower = before.first_follower;
    before.first_follower = position;
}

void CommandStation::make_ready(std::uint64_t position) {
    slot(position).state = State::ready;
    ready_.push_back(position);
}

void CommandStation::release_followers(Slot& of) {
    std::uint64_t position = of.first_follower;
    of.first_follower = nothing;
    while (position != nothing) {
        Slot& follower = slot(position);
        const std::uint64_t next = follower.next_follower;
        if (of.state == State::done || follower.follows_when_sent) {
            make_ready(position);
        } else {
            follower.next_follower = of.first_follower;
            of.first_follower = position;
        }
        position = next;
    }
}

// --- sending -------------------------------------------------------------------------------------

/// Both ends are in reach, and no predecessor is on its way by message to the same place.
bool CommandStation::is_here(const Slot& of) const noexcept {
    const bool is_own = of.src.node == self_ && of.dst.node == self_;
    return of.src.reach != nullptr && of.dst.reach != nullptr && (is_own || !of.by_message);
}

void CommandStation::pump(gas::Delegate& delegate) {
    while (!ready_.empty()) {
        const std::uint64_t position = ready_.front();
        Slot& of = slot(position);
        if (is_here(of)) {
            ready_.pop_front();
            carry_out(of.access, of.dst.reach, of.src.reach);
            of.unsent = of.unfinished = 0;
            finish_slot(position);
            continue;
        }
        const std::uint64_t bytes = std::min<std::uint64_t>(of.unsent, delegate.data_bytes_max());
        if (bytes_under_way_ != 0 && bytes_under_way_ + bytes > bytes_under_way_max) return;
        bytes_under_way_ += bytes;
        of.unsent -= bytes;
        if (of.access.is_atomic) {
            send_atomic(delegate, position);
        } else {
            send_piece(delegate, position, bytes);
        }
        if (of.unsent != 0) continue;
        ready_.pop_front();
        of.state = State::sent;
        release_followers(of);
    }
}

void CommandStation::send_piece(gas::Delegate& delegate, std::uint64_t position,
                                std::uint64_t bytes) {
    const Slot& of = slot(position);
    const std::uint64_t offset = of.access.bytes - of.unsent - bytes;
    if (of.src.node == self_) {
        delegate.put(of.dst.node, position, of.access.dst + offset, {of.src.reach + offset, bytes});
    } else {
        delegate.copy(of.src.node, position, of.access.dst + offset, of.access.src + offset, bytes);
    }
}

void CommandStation::send_atomic(gas::Delegate& delegate, std::uint64_t position) {
    const Slot& of = slot(position);
    const Access& access = of.access;
    if (of.src.node == self_) {
        const std::uint64_t old = gas::apply_to_word(of.src.reach, access.op, access.width,
                                                     access.operand, access.expected);
        return delegate.put(of.dst.node, position, access.dst,
                            std::as_bytes(std::span(&old, 1)).first(access.width));
    }
    gas::DelegationRecord record;
    record.kind = gas::DelegationRecord::Kind::atomic;
    record.op = access.op;
    record.width = static_cast<std::uint8_t>(access.width);
    record.origin = self_;
    record.token = position;
    record.dst = access.dst;
    record.src = access.src;
    record.operand = access.operand;
    record.expected = access.expected;
    delegate.atomic(of.src.node, record);
}

// --- completing ----------------------------------------------------------------------------------

void CommandStation::finished(gas::Delegate& delegate, std::uint64_t token,
                              std::uint64_t bytes) noexcept {
    const std::scoped_lock guard{latch_};
    const bool is_known = token >= head_ && token < tail_;
    HIROBA_INVARIANT(is_known, "answer to command %lu; there are %lu to %lu", token, head_, tail_);
    Slot& of = slot(token);
    const std::uint64_t wanted = of.unfinished - of.unsent;
    HIROBA_INVARIANT(bytes <= wanted, "answer of %lu bytes to command %lu, which waits for %lu",
                     bytes, token, wanted);
    of.unfinished -= bytes;
    bytes_under_way_ -= bytes;
    delegate.answered(executor_of(of), of.src.node == self_ ? of.access.dst : of.access.src);
    if (of.unfinished == 0) finish_slot(token);
    pump(delegate);
}

void CommandStation::finish_slot(std::uint64_t position) {
    Slot& of = slot(position);
    of.state = State::done;
    of.dst.release();
    of.src.release();
    release_followers(of);
    retire();
}

void CommandStation::retire() noexcept {
    while (head_ != tail_ && slot(head_).state == State::done) ++head_;
    const std::uint64_t oldest = head_ == tail_ ? nothing : slot(head_).handle;
    // Release, pairs with is_complete(): a thread that sees the new value sees what the commands
    // brought.
    oldest_.store(oldest, std::memory_order_release);
    is_full_.store(tail_ - head_ == capacity, std::memory_order_release);  // enqueue()
    while (!waiters_.empty() && waiters_.top().handle < oldest) {
        make_ready(waiters_.top().position);
        waiters_.pop();
    }
}

void CommandStation::complete(gas::Delegate& delegate, std::uint64_t handle) {
    if (is_complete(handle)) return;
    delegate.flush(gas::CommandBatcher::When::now);
    endpoint_.wait_until([this, handle] { return is_complete(handle); });
}

bool CommandStation::is_incomplete(gas::Delegate& delegate, std::uint64_t handle) {
    if (is_complete(handle)) return false;
    delegate.flush(gas::CommandBatcher::When::now);
    endpoint_.poll();
    return !is_complete(handle);
}

}  // namespace hiroba::acp
