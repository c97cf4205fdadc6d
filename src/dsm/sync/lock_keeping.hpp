// SPDX-License-Identifier: BSD-3-Clause
// Role: how long a node keeps a lock that came to it, and whether it tells others at once what was
// written under it, and how long one that waits leaves it to the other: each by what a change of
// hands costs here. Guesses only: whatever they say, the locks are right.
// Source of keeping a lock in one place for a while: Dice, Marathe, Shavit, "Lock cohorting", PPoPP
// 2012.
//
// To hand a lock to another node costs a release here, its way, and misses there; to unlock and
// lock it again here costs nearly nothing. So a node whose threads come back at once keeps a wanted
// lock for some more holds. And a node whose threads use a lock once before another's do publishes
// at the unlock what it has written: then the next takes the lock without waiting for any of them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

namespace hiroba::dsm {

/// What it costs to hand a lock on: the release in front of it and the acquire behind it, as they
/// were of late on this node, for either side. Thread: any.
class HandOverCost {
public:
    void note_release(std::uint64_t ns) noexcept { note(release_ns_, ns); }
    void note_acquire(std::uint64_t ns) noexcept { note(acquire_ns_, ns); }
    /// A thread that left a lock comes back at once if the lock could not have got there before.
    std::uint64_t soon_ns() const noexcept {
        return std::clamp(both_ns(), soon_min_ns, soon_max_ns);
    }
    std::uint64_t both_ns() const noexcept {
        return release_ns_.load(std::memory_order_relaxed) +
               acquire_ns_.load(std::memory_order_relaxed);
    }
    /// How long a node leaves it to the unlocks of the one in front.
    std::uint64_t patience_ns() const noexcept {
        return std::clamp(4 * both_ns(), patience_min_ns, patience_max_ns);
    }

    static constexpr std::uint64_t soon_min_ns = 5'000, soon_max_ns = 50'000;
    static constexpr std::uint64_t patience_min_ns = 20'000, patience_max_ns = 400'000;

private:
    // Relaxed: a value that another thread overwrites is lost.
    static void note(std::atomic<std::uint64_t>& mean, std::uint64_t ns) noexcept {
        const std::uint64_t before = mean.load(std::memory_order_relaxed);
        mean.store(before - before / 8 + std::min(ns, patience_max_ns) / 8,
                   std::memory_order_relaxed);
    }
    std::atomic<std::uint64_t> release_ns_{0}, acquire_ns_{0};
};

/// One lock as seen by one node; all zero before its first stay. Thread: the one that holds the
/// lock or is about to fetch it.
class LockKeeping {
public:
    /// A thread here wants the lock, which is elsewhere.
    void wanted_again(std::uint64_t now_ns, std::uint64_t soon_ns) noexcept {
        former_holds_ = holds_;
        holds_ = 0;
        const bool at_once = since_ns_ != 0 && now_ns - since_ns_ < soon_ns;
        if (at_once && evidence_ < evidence_max) ++evidence_;
    }
    /// The lock has come to this node.
    void came(std::uint64_t now_ns) noexcept {
        since_ns_ = now_ns;
        missed_ns_ = 0;
    }
    /// @param missed_ns  of the thread, in all its misses so far, when it takes the lock
    void locked(std::uint64_t missed_ns) noexcept {
        missed_before_ns_ = static_cast<std::uint32_t>(missed_ns);
    }
    void unlocked() noexcept {
        ++holds_;
        was_used_ = true;
    }
    /// @param missed_ns  as of locked(), by the same thread when it unlocks
    void missed(std::uint64_t missed_ns) noexcept {
        // Modulo 2^32: of a hold that misses for more than four seconds a part is counted.
        const std::uint32_t missed = static_cast<std::uint32_t>(missed_ns) - missed_before_ns_;
        missed_ns_ = std::min(missed_ns_, missed_max_ns) + std::min(missed, missed_max_ns);
    }
    /// Another node waits: whether what it has cost to bring here what lies under the lock, and
    /// what a hand-over costs, is still more than a fifth of the stay.
    /// @param hand_over_ns  HandOverCost::both_ns()
    bool has_to_pay_off(std::uint64_t now_ns, std::uint64_t hand_over_ns) const noexcept {
        const std::uint64_t stay_ns = now_ns - since_ns_;
        return evidence_ > 0 && missed_ns_ != 0 &&
               stay_ns < std::min(stay_max_ns, 5 * (missed_ns_ + hand_over_ns));
    }
    /// Whether it has been held since the last call.
    bool was_used() noexcept { return std::exchange(was_used_, false); }
    /// Another node waits: whether to let threads of this one have it once more.
    bool keeps() const noexcept { return holds_ < holds_of(evidence_); }
    /// No thread waits: whether to publish now. As far into this stay as the former one went; if
    /// the lock then stays, not for ever.
    /// @param sleeps  the thread that unlocks goes to sleep until another has had the lock
    bool publishes(bool sleeps = false) const noexcept {
        return former_holds_ != 0 &&
               (sleeps || (holds_ >= former_holds_ && holds_ - former_holds_ < publications_max));
    }
    void left(std::uint64_t now_ns) noexcept { since_ns_ = now_ns; }
    /// It was kept although another node waited, and no thread here came back for it.
    void was_kept_in_vain() noexcept { evidence_ = evidence_after_vain; }

    static constexpr std::uint32_t publications_max = 8;
    static constexpr std::uint32_t holds_max = 32;
    static constexpr std::uint64_t stay_max_ns = 20'000'000;

private:
    static constexpr std::int8_t evidence_max = 8, evidence_after_vain = -2;
    static constexpr std::uint32_t missed_max_ns = 1'000'000'000;
    static std::uint32_t holds_of(std::int8_t evidence) noexcept {
        return evidence <= 0 ? 1 : std::min(holds_max, 1u << std::min<int>(evidence, 5));
    }

    std::uint32_t holds_ = 0;
    std::uint32_t former_holds_ = 0;  ///< 0: no former stay
    std::int8_t evidence_ = 0;        ///< that threads here come back at once
    bool was_used_ = false;
    std::uint32_t missed_ns_ = 0;         ///< of threads that held it, in this stay
    std::uint32_t missed_before_ns_ = 0;  ///< of the thread that holds it, before that, modulo
    std::uint64_t since_ns_ = 0;          ///< it came, or has left
};

}  // namespace hiroba::dsm
