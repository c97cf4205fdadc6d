// SPDX-License-Identifier: BSD-3-Clause
// Role: futex_waitv(2): waits for one of several words. A thread is in the list of each global one;
// those of this node's own are looked at alone.
// Invariant: it is in all lists before it looks, and in none when it returns.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

#include "abi/libc/sync/futexes.hpp"

namespace hiroba::abi::futex {
namespace {

/// Looks at words of this node's own between two answers: a wake need not change a word.
constexpr std::uint32_t looks_max = 32;

const std::uint32_t* word_of(const futex_waitv& entry) noexcept {
    return reinterpret_cast<const std::uint32_t*>(entry.uaddr);
}

bool is_sound(const futex_waitv& entry) noexcept {
    constexpr std::uint32_t size_mask = 3, size_u32 = 2, known = size_u32 | FUTEX_PRIVATE_FLAG;
    return (entry.flags & size_mask) == size_u32 && (entry.flags & ~known) == 0 &&
           entry.__reserved == 0 && entry.uaddr % sizeof(std::uint32_t) == 0;
}

/// In the lists of all global words.
class Waits {
public:
    Waits(const futex_waitv* vector, std::uint32_t count) noexcept
        : vector_(vector), count_(count) {
        for (std::uint32_t i = 0; i < count; ++i)
            if (is_global(i)) waiters_[i] = world()->sync->join_futex(key(i), ~0u);
    }
    Waits(const Waits&) = delete;
    Waits& operator=(const Waits&) = delete;

    /// The first whose word is not what the caller expects; `count`: none.
    std::uint32_t changed() const noexcept {
        world()->memory->flush();
        for (std::uint32_t i = 0; i < count_; ++i) {
            auto& word = *const_cast<std::uint32_t*>(word_of(vector_[i]));
            if (std::atomic_ref{word}.load() != static_cast<std::uint32_t>(vector_[i].val))
                return i;
        }
        return count_;
    }
    /// Sleeps in the first global word's list, and looks at the others.
    /// @return the one that was woken, or `count`
    std::uint32_t await(std::uint64_t pause_ns, bool* interrupted) noexcept {
        std::uint64_t left_ns = pause_ns;
        for (std::uint32_t i = 0; i < count_; ++i) {
            if (!is_global(i)) continue;
            const auto outcome = world()->sync->await_futex(waiters_[i], in_ns(left_ns));
            if (outcome == dsm::SyncOutcome::done) return i;
            if (outcome == dsm::SyncOutcome::busy) *interrupted = true;
            left_ns = 0;
        }
        return count_;
    }
    /// @return one that was woken, or `count`
    std::uint32_t leave() noexcept {
        std::uint32_t woken = count_;
        for (std::uint32_t i = 0; i < count_; ++i)
            if (is_global(i) && world()->sync->leave_futex(key(i), waiters_[i])) woken = i;
        return woken;
    }

private:
    bool is_global(std::uint32_t i) const noexcept {
        return table_of(word_of(vector_[i])) != nullptr;
    }
    dsm::SyncKey key(std::uint32_t i) const noexcept { return key_of(word_of(vector_[i])); }

    const futex_waitv* vector_;
    std::uint32_t count_;
    std::array<dsm::SyncWaiter, FUTEX_WAITV_MAX> waiters_{};
};

}  // namespace

long wait_for_one(const futex_waitv* vector, std::uint32_t count,
                  const dsm::Deadline* deadline) noexcept {
    for (std::uint32_t i = 0; i < count; ++i)
        if (!is_sound(vector[i])) return -EINVAL;
    Waits waits{vector, count};
    long result = -EAGAIN;
    std::uint64_t pause_ns = pause_first_ns;
    for (std::uint32_t look = 0;; ++look) {
        const std::uint32_t changed = waits.changed();
        if (changed < count) {
            if (look > 0) result = changed;
            break;
        }
        const std::uint64_t left_ns = deadline != nullptr ? deadline->left_ns() : ~0ull;
        result = left_ns == 0 ? -ETIMEDOUT : 0;
        if (left_ns == 0 || look == looks_max) break;
        bool interrupted = false;
        const std::uint32_t woken = waits.await(std::min(left_ns, pause_ns), &interrupted);
        if (woken < count) result = woken;
        if (woken == count && interrupted) result = -EINTR;
        if (woken < count || interrupted) break;
        pause_ns = std::min(2 * pause_ns, pause_max_ns);
    }
    const std::uint32_t woken = waits.leave();
    if (woken == count) return result;
    world()->memory->flush();
    return woken;
}

}  // namespace hiroba::abi::futex
