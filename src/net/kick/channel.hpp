// SPDX-License-Identifier: BSD-3-Clause
// Role: a ring from one node to another, a page long. Source: Tanabe et al., DIMMnet-1, section
// 4.2: the items lie at the consumer; the producer has a copy of the head in its LLCM, the consumer
// one of the tail, so that both poll their own memory.
// Invariant: positions count for ever; an item lands before the tail that covers it, and its place
// is free before the head that says so.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "net/kick/kick_store.hpp"

namespace hiroba::net::kick {

/// A channel's parts of every node's LLCM.
struct ChannelPlace {
    Offset items = 0, tail = 0, head = 0;
    static Result<ChannelPlace> reserve(Board& board) {
        ChannelPlace place;
        for (Offset* each : {&place.items, &place.tail, &place.head}) {
            const bool ring = each == &place.items;
            const auto part = board.reserve(ring ? page_bytes : cache_line_bytes,
                                            ring ? page_bytes : cache_line_bytes);
            if (!part) return part.error();
            *each = *part;
        }
        return place;
    }
};

template <Kickable T>
inline constexpr std::uint64_t channel_items = page_bytes / sizeof(T);

/// Thread: one at a time; not from a handler.
template <Kickable T>
class ChannelSender {
public:
    static Result<ChannelSender> open(Board& board, const ChannelPlace& place, NodeId to) {
        const auto items = board.target(to, place.items);
        if (!items) return items.error();
        const auto tail = board.target(to, place.tail);
        if (!tail) return tail.error();
        const auto kick_items = board.kick<T>(*items);
        if (!kick_items) return kick_items.error();
        const auto kick_tail = board.kick<std::uint64_t>(*tail);
        if (!kick_tail) return kick_tail.error();
        const Header header{.rank = to.value, .region = board.llcm().value};
        return ChannelSender{board, place, *kick_items, *kick_tail, board.stamp_for(header)};
    }

    /// False: the ring is full. The receiver may see the item at once, and has seen it or is woken
    /// after flush(): where nothing is mapped many items leave in one packet.
    bool try_stream(const T& item) noexcept {
        if (!has_room()) return false;
        const auto at = static_cast<std::uint32_t>(tail_ % channel_items<T>);
        ++tail_;
        if (items_.is_mapped()) [[likely]] {
            items_.store(at * sizeof(T), item);
            kick_tail_.store(place_.tail % page_bytes, tail_);
            return true;
        }
        pending_[pending_count_++] = item;
        // A packet's items lie side by side at the receiver.
        if (pending_count_ == pending_max || at + 1 == channel_items<T>) post_pending();
        return true;
    }
    /// Waits for room. The last item of a stream is followed by flush().
    void stream(const T& item) noexcept {
        if (try_stream(item)) return;
        flush();
        board_->wait_for([this] { return has_room(); });
        try_stream(item);
    }
    void flush() noexcept {
        if (pending_count_ != 0) post_pending();
        board_->wake(kick_tail_.node());
    }
    /// One item, at once.
    void send(const T& item) noexcept {
        stream(item);
        flush();
    }

    NodeId to() const noexcept { return kick_tail_.node(); }
    bool has_room() noexcept {
        if (tail_ - head_ == channel_items<T>) head_ = board_->load<std::uint64_t>(place_.head);
        return tail_ - head_ != channel_items<T>;
    }

private:
    static constexpr std::uint32_t pending_max = Board::landing_bytes_max / sizeof(T) / 2;

    ChannelSender(Board& board, const ChannelPlace& place, Kick<T> items, Kick<std::uint64_t> tail,
                  const wire::LandingBytes& block)
        : board_(&board), place_(place), items_(items), kick_tail_(tail), block_(block) {}
    void post_pending() noexcept {
        const std::uint64_t first = (tail_ - pending_count_) % channel_items<T>;
        board_->post(kick_tail_.node(), block_, place_.items + first * sizeof(T),
                     std::as_bytes(std::span{pending_}).first(pending_count_ * sizeof(T)));
        pending_count_ = 0;
        kick_tail_.store(place_.tail % page_bytes, tail_);
    }

    Board* board_;
    ChannelPlace place_;
    Kick<T> items_;
    Kick<std::uint64_t> kick_tail_;
    std::uint64_t tail_ = 0;
    std::uint64_t head_ = 0;    ///< as last looked up
    wire::LandingBytes block_;  ///< header of the packets where nothing is mapped
    std::array<T, pending_max> pending_{};
    std::uint32_t pending_count_ = 0;
};

/// Thread: one at a time; not from a handler.
template <Kickable T>
class ChannelReceiver {
public:
    static Result<ChannelReceiver> open(Board& board, const ChannelPlace& place, NodeId from) {
        const auto head = board.target(from, place.head);
        if (!head) return head.error();
        const auto kick_head = board.kick<std::uint64_t>(*head);
        if (!kick_head) return kick_head.error();
        return ChannelReceiver{board, place, *kick_head};
    }

    std::optional<T> try_receive() noexcept {
        if (!has_item()) return std::nullopt;
        T item;
        std::memcpy(&item, board_->at(place_.items) + head_ % channel_items<T> * sizeof(T),
                    sizeof item);
        ++head_;
        // Room is given back by the quarter: a sender that needs it waits for at most so much.
        if (head_ % give_back == 0) {
            kick_head_.store(place_.head % page_bytes, head_);
            board_->wake(kick_head_.node());
        }
        return item;
    }
    T receive() noexcept {
        if (!has_item()) board_->wait_for([this] { return has_item(); });
        return *try_receive();
    }
    NodeId from() const noexcept { return kick_head_.node(); }
    bool has_item() noexcept {
        if (head_ == tail_) tail_ = board_->load<std::uint64_t>(place_.tail);
        return head_ != tail_;
    }

private:
    static constexpr std::uint64_t give_back = channel_items<T> / 4;
    ChannelReceiver(Board& board, const ChannelPlace& place, Kick<std::uint64_t> head)
        : board_(&board), place_(place), kick_head_(head) {}
    Board* board_;
    ChannelPlace place_;
    Kick<std::uint64_t> kick_head_;
    std::uint64_t head_ = 0;
    std::uint64_t tail_ = 0;  ///< as last looked up
};

}  // namespace hiroba::net::kick
