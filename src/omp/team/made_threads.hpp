// SPDX-License-Identifier: BSD-3-Clause
// Role: what a thread has from the one that would have made it. The runtime's threads are made
// before main, so that they take over what a thread that the kernel makes has from its maker.
// Invariant: what a thread has changed itself stays while it stands for the same thread.
#pragma once

#include <cstdint>

#include "omp/team/floating_point.hpp"

namespace hiroba::omp {

/// What a new thread has from its maker.
struct Inheritance {
    FloatingPoint floating_point = 0;
    /// Signal mask, affinity and the like, as the layer above has written them down in global
    /// memory; null: as at the start of the program.
    const void* attributes = nullptr;
};

/// What the layer above does about its part.
struct InheritanceHooks {
    /// What a thread that the calling one makes has from it; null: as at the start.
    const void* (*of_this_thread)() noexcept = nullptr;
    /// The calling thread becomes as one that was made with these.
    void (*take_over)(const void* attributes) noexcept = nullptr;
};

/// How the compiler's runtime treats its threads.
enum class PoolKind : std::uint8_t {
    gnu,   ///< ends those that a smaller team leaves
    llvm,  ///< ends none; all compute as their leader at every fork
};

/// Threads of a team that, alone, one region made, by their numbers.
struct ThreadsMade {
    std::uint32_t first = 0, serial = 0;
    Inheritance from;  ///< when they were made
};

/// The threads that the compiler's runtime would have at this moment, as groups with rising
/// numbers.
class MadeThreads {
public:
    /// @param now  called where the region makes threads: what they have from their leader
    template <class Now>
    void begin_region(std::uint32_t team_size, PoolKind pool, Now&& now) noexcept {
        const std::uint32_t stay = team_size < size_ ? team_size : size_;
        if (pool == PoolKind::gnu)
            while (groups_ > 0 && group_[groups_ - 1].first >= stay) --groups_;
        if (team_size > stay) add({stay, ++serial_, now()});
        if (pool == PoolKind::gnu || team_size > size_) size_ = team_size;
    }
    /// The group of a thread other than 0.
    const ThreadsMade& of(std::uint32_t thread) const noexcept {
        std::uint32_t i = groups_ - 1;
        while (i > 0 && group_[i].first > thread) --i;
        return group_[i];
    }

private:
    static constexpr std::uint32_t most = 4;  ///< then the two oldest become one
    void add(const ThreadsMade& made) noexcept {
        if (groups_ == most) {
            for (std::uint32_t i = 1; i + 1 < most; ++i) group_[i] = group_[i + 1];
            --groups_;
        }
        group_[groups_++] = made;
    }

    ThreadsMade group_[most] = {};
    std::uint32_t groups_ = 0, size_ = 1, serial_ = 0;
};

/// What one thread of the runtime has of this.
class OwnInheritance {
public:
    /// The thread enters a region of the spread team as `number`, not 0.
    /// @return whether it has taken over attributes
    bool enter(std::uint32_t number, const MadeThreads& threads, PoolKind pool,
               FloatingPoint of_leader, const InheritanceHooks& hooks) noexcept {
        const ThreadsMade& made = threads.of(number);
        const bool is_new = number != number_ || made.serial != serial_;
        if (pool == PoolKind::llvm || is_new)
            set_floating_point(pool == PoolKind::llvm ? of_leader : made.from.floating_point);
        else if (helped_)
            set_floating_point(before_);
        const bool takes = (is_new || helped_with_attributes_) && hooks.take_over != nullptr;
        if (takes) hooks.take_over(made.from.attributes);
        number_ = number;
        serial_ = made.serial;
        helped_ = helped_with_attributes_ = false;
        entered_ = computing();
        return takes;
    }
    /// The thread helps a team inside a region, for which alone another would be made.
    /// @return as above
    bool help(const Inheritance& leader, const InheritanceHooks& hooks) noexcept {
        if (!helped_) before_ = floating_point();
        helped_ = true;
        set_floating_point(leader.floating_point);
        entered_ = computing();
        if (leader.attributes == nullptr || hooks.take_over == nullptr) return false;
        helped_with_attributes_ = true;
        hooks.take_over(leader.attributes);
        return true;
    }
    /// Whether the thread has changed how it computes since it entered its region.
    bool computes_otherwise() const noexcept { return computing() != entered_; }

private:
    std::uint32_t number_ = 0, serial_ = 0;
    FloatingPoint before_ = 0;  ///< it helped
    FloatingPoint entered_ = computing();
    bool helped_ = false, helped_with_attributes_ = false;
};

}  // namespace hiroba::omp
