// SPDX-License-Identifier: BSD-3-Clause
// Role: how a thread computes: rounding, traps, subnormal numbers, by SSE and by the x87 unit.
// Invariant: two registers of the processor, which a thread that the kernel makes has as its maker
// had them; the runtime's threads are made before main and take them over here.
#pragma once

#include <cstdint>

namespace hiroba::omp {

/// Both registers in one word: MXCSR below, the x87 unit's control word above.
using FloatingPoint = std::uint32_t;

inline FloatingPoint floating_point() noexcept {
    std::uint32_t sse = 0;
    std::uint16_t x87 = 0;
    asm volatile("stmxcsr %0" : "=m"(sse));
    asm volatile("fnstcw %0" : "=m"(x87));
    return (sse & 0xffffu) | static_cast<std::uint32_t>(x87) << 16;
}

inline void set_floating_point(FloatingPoint wanted) noexcept {
    const FloatingPoint present = floating_point();
    if (present == wanted) return;  // to write them is slow
    const std::uint32_t sse = wanted & 0xffffu;
    const auto x87 = static_cast<std::uint16_t>(wanted >> 16);
    asm volatile("ldmxcsr %0" : : "m"(sse));
    if ((present ^ wanted) >> 16 != 0) asm volatile("fldcw %0" : : "m"(x87));
}

/// Threads of a team that, alone, one region made, by their numbers.
struct ThreadsMade {
    std::uint32_t first = 0, serial = 0;
    FloatingPoint of_leader = 0;  ///< when it made them
};

/// The threads that the compiler's runtime would have at this moment, as groups with rising
/// numbers: gcc's makes them as a team needs them, ends those that a smaller one leaves, and lets
/// the others be as they are. LLVM's makes all compute as their leader at every fork.
class MadeThreads {
public:
    void begin_region(std::uint32_t team_size, FloatingPoint of_leader, bool all_anew) noexcept {
        if (all_anew) size_ = 1;
        const std::uint32_t stay = team_size < size_ ? team_size : size_;
        while (groups_ > 0 && group_[groups_ - 1].first >= stay) --groups_;
        if (team_size > stay) add({stay, ++serial_, of_leader});
        size_ = team_size;
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
class OwnFloatingPoint {
public:
    /// The thread enters a region of the spread team as `number`, not 0. What it has changed itself
    /// stays while it stands for the same thread.
    void enter(std::uint32_t number, const MadeThreads& threads) noexcept {
        const ThreadsMade& made = threads.of(number);
        if (number != number_ || made.serial != serial_)
            set_floating_point(made.of_leader);
        else if (helped_)
            set_floating_point(before_);
        number_ = number;
        serial_ = made.serial;
        helped_ = false;
    }
    /// The thread helps a team inside a region, for which alone another would be made.
    void help(FloatingPoint of_leader) noexcept {
        if (!helped_) before_ = floating_point();
        helped_ = true;
        set_floating_point(of_leader);
    }

private:
    std::uint32_t number_ = 0, serial_ = 0;
    FloatingPoint before_ = 0;  ///< it helped
    bool helped_ = false;
};

}  // namespace hiroba::omp
