// SPDX-License-Identifier: BSD-3-Clause
#include "net/kick/window.hpp"

#include <string>

namespace hiroba::net::kick {

Result<WindowPlace> WindowPlace::reserve(Board& board, std::uint32_t payload_bytes) {
    if (payload_bytes < 1 || payload_bytes > payload_bytes_max) {
        return Error{ErrorKind::refused, "kick window of " + std::to_string(payload_bytes) +
                                             " bytes: it has 1 to " +
                                             std::to_string(payload_bytes_max)};
    }
    WindowPlace place;
    place.payload_bytes = payload_bytes;
    const auto landing = board.reserve(cache_line_bytes + payload_bytes);
    if (!landing) return landing.error();
    const auto taken = board.reserve(cache_line_bytes);
    if (!taken) return taken.error();
    place.landing = *landing;
    place.taken = *taken;
    return place;
}

Result<Window> Window::open(Board& board, const WindowPlace& place, NodeId to) {
    const auto target = board.target(to, place.landing);
    if (!target) return target.error();
    const auto announce = board.kick<std::uint64_t>(*target);
    if (!announce) return announce.error();
    const Header header{.rank = to.value, .region = board.llcm().value};
    return Window{board, place, to, *announce, header};
}

Window::Window(Board& board, const WindowPlace& place, NodeId to, Kick<std::uint64_t> announce,
               const Header& header)
    : board_(&board),
      place_(place),
      to_(to),
      announce_(announce),
      prepared_(board.stamp_for(header)),
      own_(announce.is_mapped() ? 0 : place.payload_bytes) {}

void Window::await_room() noexcept {
    if (may_overwrite()) return;
    ask_for_room();
    board_->wait_for([this] { return may_overwrite(); });
}

void Window::ask_for_room() noexcept {
    announce_.store(place_.landing % page_bytes + WindowPlace::wanted_offset, sent_);
    // Pairs with take(): either it sees that we wait, or we see what it took.
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

Result<void> Window::send(std::uint32_t bytes) noexcept {
    if (bytes > place_.payload_bytes) {
        return Error{ErrorKind::refused, "kick window of " + std::to_string(place_.payload_bytes) +
                                             " bytes: " + std::to_string(bytes) + " to send"};
    }
    if (!may_overwrite()) {
        return Error{ErrorKind::refused, "kick window to node " + std::to_string(to_.value) +
                                             ": number " + std::to_string(sent_) +
                                             " is in flight; ask may_overwrite() first"};
    }
    if (!announce_.is_mapped() && bytes > 0) {
        board_->post(to_, prepared_, place_.landing + cache_line_bytes, payload().first(bytes));
    }
    ++sent_;
    announce_.store(place_.landing % page_bytes, sent_ | std::uint64_t{bytes} << 32);
    board_->wake(to_);
    return {};
}

Result<Landed> Landed::open(Board& board, const WindowPlace& place, NodeId from) {
    const auto target = board.target(from, place.taken);
    if (!target) return target.error();
    const auto give_back = board.kick<std::uint32_t>(*target);
    if (!give_back) return give_back.error();
    return Landed{board, place, from, *give_back};
}

Bytes Landed::bytes() noexcept {
    const auto length = static_cast<std::uint32_t>(word() >> 32);
    HIROBA_INVARIANT(length <= place_.payload_bytes, "%u bytes from node %u in a window of %u",
                     length, from_.value, place_.payload_bytes);
    return {board_->at(place_.landing) + cache_line_bytes, length};
}

void Landed::take() noexcept {
    ++taken_;
    give_back_.store(place_.taken % page_bytes, taken_);
    // A sender that sleeps for other reasons is left alone: with windows to spare nobody waits for
    // room, and each needless wake-up costs two switches where cores are short.
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with await_room()
    if (wanted() == taken_) board_->wake(from_);
}

}  // namespace hiroba::net::kick
