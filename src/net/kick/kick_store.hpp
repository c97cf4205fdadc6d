// SPDX-License-Identifier: BSD-3-Clause
// Role: the kick itself: one store whose address says what to do with it.
// Invariant: a kick cannot leave its page: the low bits of the offset are pasted in, as the
// hardware did it, so that the value lies in the page and is aligned whatever the offset. Source:
// Tanabe et al., DIMMnet-1, AOTF.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "base/fatal.hpp"
#include "net/kick/board.hpp"

namespace hiroba::net::kick {

template <class T>
concept Kickable = std::is_trivially_copyable_v<T> &&
    (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);

/// What of an offset says where in its page a value goes.
template <Kickable T>
inline constexpr std::uint32_t kick_offset_mask = page_bytes - sizeof(T);

/// A page of a peer that this node maps. Kicks in program order land in that order.
/// Thread: any. Valid as long as its board.
template <Kickable T>
class MappedKick {
public:
    explicit MappedKick(std::byte* page) noexcept : page_(page) {}

    /// One store into the peer's page, after everything stored before.
    void store(std::uint32_t offset, T value) const noexcept {
        // Release, pairs with the acquire in Board::load().
        std::atomic_ref<T>(*reinterpret_cast<T*>(page_ + (offset & kick_offset_mask<T>)))
            .store(value, std::memory_order_release);
    }

private:
    std::byte* page_;
};

/// A page of a peer, mapped or not. Made by Board::kick(). Not to be used from handlers where
/// nothing is mapped and a queue may be full for long. Thread: one at a time.
template <class T>
class Kick {
    static_assert(Kickable<T>, "a kick carries 1, 2, 4 or 8 bytes");

public:
    /// Sends `value` to `offset` in the page. Release: what this thread stored or kicked to that
    /// node before lands before it. The offset is masked to the page and to the value's alignment;
    /// builds with assertions stop where that changes it.
    void store(std::uint32_t offset, T value) noexcept {
#ifndef NDEBUG
        HIROBA_INVARIANT(fault_of(offset) == nullptr,
                         "kick of %lu bytes to offset %u of a page "
                         "with %u: %s",
                         sizeof(T), offset, bytes_, fault_of(offset));
#endif
        if (page_ != nullptr) [[likely]] {
            MappedKick<T>{page_}.store(offset, value);
        } else {
            post(offset & kick_offset_mask<T>, value, false);
        }
    }

    /// As store(), but it may leave only with the next store() to that node: for what is complete
    /// with another.
    void store_with_next(std::uint32_t offset, T value) noexcept {
        if (page_ != nullptr) [[likely]] {
            store(offset, value);
        } else {
            post(offset & kick_offset_mask<T>, value, true);
        }
    }

    /// As store() and Board::wake(), from handlers and callbacks: what finds no credits leaves as a
    /// message, behind which later kicks do not wait.
    void store_from_handler(std::uint32_t offset, T value) noexcept {
        if (page_ != nullptr) {
            MappedKick<T>{page_}.store(offset, value);
            board_->wake(node());
            return;
        }
        std::uint64_t word = 0;
        std::memcpy(&word, &value, sizeof value);
        board_->post_from_handler(prepared_, offset & kick_offset_mask<T>, word);
    }

    /// As store(), but refuses an offset that leaves the page or the region, or is misaligned.
    Result<void> store_checked(std::uint32_t offset, T value) noexcept {
        if (const char* fault = fault_of(offset)) {
            return Error{ErrorKind::refused, "kick of " + std::to_string(sizeof(T)) +
                                                 " bytes to offset " + std::to_string(offset) +
                                                 " of a page with " + std::to_string(bytes_) +
                                                 ": " + fault};
        }
        store(offset, value);
        return {};
    }

    /// Whether store() is one store.
    bool is_mapped() const noexcept { return page_ != nullptr; }
    /// Only where is_mapped().
    MappedKick<T> mapped() const noexcept { return MappedKick<T>{page_}; }
    NodeId node() const noexcept { return prepared_.to; }

private:
    friend class Board;
    Kick(Board& board, const Header& header) noexcept
        : page_(header.page),
          board_(&board),
          bytes_(header.bytes),
          prepared_(board.prepare(header, sizeof(T))) {}

    const char* fault_of(std::uint32_t offset) const noexcept {
        if (offset % sizeof(T) != 0) return "it is not aligned";
        if (offset > bytes_ || sizeof(T) > bytes_ - offset) return "it does not lie inside";
        return nullptr;
    }

    [[gnu::noinline]] void post(std::uint32_t offset, T value, bool more) noexcept {
        std::uint64_t word = 0;
        std::memcpy(&word, &value, sizeof value);
        board_->post(prepared_, offset, word, more);
    }

    std::byte* page_;
    Board* board_;
    std::uint32_t bytes_;  ///< of the page that may be kicked
    PreparedKick prepared_;
};

}  // namespace hiroba::net::kick
