// SPDX-License-Identifier: BSD-3-Clause
// Role: block on the fly: a prepared header with payload space. The sender composes in the window,
// sends it as a whole, and asks before it composes the next; the receiver takes it where it landed.
// Source: Tanabe et al., DIMMnet-1, BOTF (64 windows of up to 464 bytes).
// Invariant: a window's bytes change only while it is not in flight. In flight lasts from send()
// until the receiver's take(): only then may its bytes be overwritten there, too.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "net/kick/kick_store.hpp"

namespace hiroba::net::kick {

/// A window's parts of every node's LLCM: where it lands at the receiver, and the word that the
/// receiver kicks back to the sender.
struct WindowPlace {
    /// 4 bytes number, 4 bytes length, 8 bytes number whose room is waited for; payload: next line
    Offset landing = 0;
    Offset taken = 0;
    std::uint32_t payload_bytes = 0;

    /// On every node in the same order, before connect(). `payload_bytes`: 1 to payload_bytes_max.
    static Result<WindowPlace> reserve(Board& board, std::uint32_t payload_bytes);
    static constexpr std::uint32_t wanted_offset = 8;
    static constexpr std::uint32_t payload_bytes_max = Board::landing_bytes_max;
    /// The bytes of the LLCM that a window takes, at most.
    static constexpr std::size_t bytes_for(std::uint32_t payload_bytes) {
        return round_up(payload_bytes, cache_line_bytes) + 2 * cache_line_bytes;
    }
};

/// The sending end. Thread: one at a time.
class Window {
public:
    /// After Board::attach().
    static Result<Window> open(Board& board, const WindowPlace& place, NodeId to);

    /// Whether the receiver has taken what was sent last.
    bool may_overwrite() noexcept { return board_->load<std::uint32_t>(place_.taken) == sent_; }
    /// Waits until may_overwrite(). Not from a handler.
    void await_room() noexcept;
    /// Has take() wake this node, which is about to wait until may_overwrite().
    void ask_for_room() noexcept;
    NodeId to() const noexcept { return to_; }
    /// Where to compose; where peers are mapped it is the receiver's memory. Only while
    /// may_overwrite().
    MutableBytes payload() noexcept {
        std::byte* const start = announce_.is_mapped()
                                     ? board_->at(to_, place_.landing) + cache_line_bytes
                                     : own_.data();
        return {start, place_.payload_bytes};
    }

    /// Sends the first `bytes` bytes (0 to payload_bytes) and wakes the receiver. An error when
    /// the window is in flight: nothing was done.
    Result<void> send(std::uint32_t bytes) noexcept;

private:
    Window(Board& board, const WindowPlace& place, NodeId to, Kick<std::uint64_t> announce,
           const Header& header);

    Board* board_;
    WindowPlace place_;
    NodeId to_;
    Kick<std::uint64_t> announce_;
    wire::LandingBytes prepared_;
    std::vector<std::byte> own_;  ///< payload space where nothing is mapped
    std::uint32_t sent_ = 0;

    friend class Landed;
};

/// The receiving end. Thread: one at a time.
class Landed {
public:
    static Result<Landed> open(Board& board, const WindowPlace& place, NodeId from);

    /// Whether there is something that was not taken yet.
    bool arrived() noexcept { return number_at(word()) == taken_ + 1; }
    /// The bytes, until take(). Only after arrived(). Lengths no window has stop the node.
    Bytes bytes() noexcept;
    /// Gives the window back to its sender.
    void take() noexcept;
    NodeId from() const noexcept { return from_; }

private:
    Landed(Board& board, const WindowPlace& place, NodeId from, Kick<std::uint32_t> give_back)
        : board_(&board), place_(place), from_(from), give_back_(give_back) {}
    std::uint64_t word() noexcept { return board_->load<std::uint64_t>(place_.landing); }
    std::uint64_t wanted() noexcept {
        return board_->load<std::uint64_t>(place_.landing + WindowPlace::wanted_offset);
    }
    static std::uint32_t number_at(std::uint64_t word) noexcept {
        return static_cast<std::uint32_t>(word);
    }

    Board* board_;
    WindowPlace place_;
    NodeId from_;
    Kick<std::uint32_t> give_back_;
    std::uint32_t taken_ = 0;
};

}  // namespace hiroba::net::kick
