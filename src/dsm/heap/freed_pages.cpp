// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/heap/freed_pages.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <span>

#include "base/fatal.hpp"
#include "dsm/dsm.hpp"
#include "dsm/messages.hpp"
#include "net/net.hpp"

namespace hiroba::dsm {

namespace {
/// More must have become free since a search that found nothing, or a round in vain.
constexpr std::size_t retry_bytes = std::size_t{1} << 20;
/// More than keep_bytes stays while it is used within that time.
constexpr std::uint64_t keep_for_ns = 1'000'000'000;
}  // namespace

FreedPages::FreedPages(const Parts& parts, SparseArray<AddressRange> asked,
                       SparseArray<std::uint32_t> asked_counts) noexcept
    : parts_(parts),
      keep_(parts.keep_bytes),
      asked_(std::move(asked)),
      asked_counts_(std::move(asked_counts)) {
    parts_.endpoint->on(
        message::freed_pages,
        [](void* pages, NodeId from, Bytes body) noexcept {
            static_cast<FreedPages*>(pages)->on_message(from, body);
        },
        this);
}

void FreedPages::step() noexcept {
    if (!has_work() || !stepping_.try_lock()) return;  // another thread does it
    answer_others();
    // Acquire: pairs with on_answer(), so that all_went_ is whole.
    if (state_.load(std::memory_order_acquire) == State::answered) end_round();
    if (is_kept_for_long()) keep_less();
    if (is_too_much()) keep_more();
    if (is_too_much()) begin_round();
    stepping_.unlock();
}

// A program that takes again what went back to the machine pays for each page three times: the
// round, the kernel's zeros, and a fault. Half of the last round is enough to tell. No more is kept
// than was in use at a time.
void FreedPages::keep_more() noexcept {
    const std::size_t again = parts_.arena->take_taken_again();
    if (last_round_bytes_ == 0 || again < last_round_bytes_ / 2) return;
    const std::size_t most =
        std::min(parts_.arena->most_used_bytes(), keep_times_max * parts_.keep_bytes);
    keep_as_usual();
    const std::size_t keep = keep_.load(std::memory_order_relaxed);
    keep_.store(std::max(keep, std::min(2 * keep, most)), std::memory_order_relaxed);
    parts_.arena->take_freed_low();
    look_at_ns_.store(now_ns() + keep_for_ns, std::memory_order_relaxed);
}

// Pages that have been free all the time are not needed so soon. If they are all that was kept
// beyond the usual, everything goes, round after round.
void FreedPages::keep_less() noexcept {
    look_at_ns_.store(now_ns() + keep_for_ns, std::memory_order_relaxed);
    const std::size_t keep = keep_.load(std::memory_order_relaxed);
    const std::size_t unused = std::min(parts_.arena->take_freed_low(), keep);
    if (unused < parts_.keep_bytes) return;
    keep_.store(keep - unused > parts_.keep_bytes ? keep - unused : 0, std::memory_order_relaxed);
}

// Here first (invariant 13): what this node's threads wrote before they freed it, no release need
// have merged, and one that met others' zeros would report a race.
void FreedPages::begin_round() noexcept {
    const std::size_t block_bytes = parts_.memory->map().shape().block_bytes;
    taken_count_ = parts_.arena->take_freed(taken_, block_bytes);
    futile_below_.store(0, std::memory_order_relaxed);
    if (taken_count_ == 0) return note_futile();
    const std::span<const AddressRange> ranges{taken_.data(), taken_count_};
    last_round_bytes_ = 0;
    for (const AddressRange& range : ranges) last_round_bytes_ += range.bytes;
    if (!parts_.memory->discard(ranges)) return give_back(false);
    all_went_.store(true, std::memory_order_relaxed);  // no node has been asked yet
    answers_missing_.store(parts_.endpoint->nodes(), std::memory_order_relaxed);
    state_.store(State::waiting, std::memory_order_relaxed);
    send_to_all({Kind::ask, static_cast<std::uint32_t>(taken_count_)}, std::as_bytes(ranges));
    on_answer(true);
}

void FreedPages::end_round() noexcept {
    send_to_all({Kind::over, 0}, {});
    give_back(all_went_.load(std::memory_order_relaxed));
    state_.store(State::idle, std::memory_order_relaxed);
}

// Pages that could not be discarded everywhere are free all the same, with old bytes in them.
void FreedPages::give_back(bool zero) noexcept {
    parts_.memory->discarded_everywhere();
    for (std::size_t i = 0; i < taken_count_; ++i) parts_.arena->give_back(taken_[i], zero);
    if (!zero) return note_futile();
    if (parts_.arena->freed_bytes() < retry_bytes) keep_as_usual();
}

// The same pages are not tried over and over.
void FreedPages::note_futile() noexcept {
    futile_below_.store(parts_.arena->freed_bytes() + retry_bytes, std::memory_order_relaxed);
    keep_as_usual();
}

// Where everything was to go.
void FreedPages::keep_as_usual() noexcept {
    if (keep_.load(std::memory_order_relaxed) < parts_.keep_bytes)
        keep_.store(parts_.keep_bytes, std::memory_order_relaxed);
}

void FreedPages::answer_others() noexcept {
    for (std::uint32_t node = 0; node < asked_counts_.size(); ++node) {
        // Acquire: pairs with on_message(), so that the ranges are whole.
        std::atomic_ref count{asked_counts_[node]};
        const std::uint32_t ranges = count.load(std::memory_order_acquire);
        if (ranges == 0) continue;
        const bool all_went = parts_.memory->discard({asked_.data() + node * ranges_max, ranges});
        count.store(0, std::memory_order_release);  // pairs with on_message()
        unanswered_.fetch_sub(1, std::memory_order_relaxed);
        const Message answer{Kind::answer, all_went};
        const Bytes part = std::as_bytes(std::span{&answer, 1});
        parts_.endpoint->send(NodeId{node}, message::freed_pages, net::Urgency::when_polled,
                              {&part, 1});
    }
}

void FreedPages::send_to_all(const Message& message, Bytes ranges) noexcept {
    const Bytes parts[] = {std::as_bytes(std::span{&message, 1}), ranges};
    for (std::uint32_t node = 0; node < parts_.endpoint->nodes(); ++node) {
        if (NodeId{node} == parts_.endpoint->self()) continue;
        parts_.endpoint->send(NodeId{node}, message::freed_pages, net::Urgency::when_polled, parts);
    }
}

void FreedPages::on_message(NodeId from, Bytes body) noexcept {
    Message message;
    HIROBA_INVARIANT(body.size() >= sizeof message, "freed pages in %lu bytes from node %u",
                     static_cast<unsigned long>(body.size()), from.value);
    std::memcpy(&message, body.data(), sizeof message);
    if (message.kind == Kind::answer) return on_answer(message.value != 0);
    if (message.kind == Kind::over) return parts_.memory->discarded_everywhere();

    // Acquire: pairs with answer_others(), so that the ranges of the round before are done with.
    std::atomic_ref count{asked_counts_[from.value]};
    HIROBA_INVARIANT(message.kind == Kind::ask && message.value > 0 &&
                         message.value <= ranges_max &&
                         body.size() == sizeof message + message.value * sizeof(AddressRange) &&
                         count.load(std::memory_order_acquire) == 0,
                     "freed pages: kind %u, %u ranges, %lu bytes from node %u",
                     static_cast<unsigned>(message.kind), message.value,
                     static_cast<unsigned long>(body.size()), from.value);
    std::memcpy(asked_.data() + from.value * ranges_max, body.data() + sizeof message,
                body.size() - sizeof message);
    count.store(message.value, std::memory_order_release);  // pairs with answer_others()
    unanswered_.fetch_add(1, std::memory_order_relaxed);
    // An idle node's threads sleep until the next region: one of them does it.
    parts_.endpoint->wake_local();
}

void FreedPages::on_answer(bool all_went) noexcept {
    if (!all_went) all_went_.store(false, std::memory_order_relaxed);
    // Acquire and release: the last answer hands on what all have said.
    if (answers_missing_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    state_.store(State::answered, std::memory_order_release);  // pairs with step()
    parts_.endpoint->wake_local();
}

}  // namespace hiroba::dsm
