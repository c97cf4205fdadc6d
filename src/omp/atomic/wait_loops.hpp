// SPDX-License-Identifier: BSD-3-Clause
// Role: finds the loops that wait: a few loads, a comparison, a branch back. `while (!flag);`, an
// atomic read in a loop, and their kin make no call and take no fault, so nothing else sees them.
// Invariant: reads code, changes nothing. A loop is told only where another thread's write alone
// can end it once it has come back: it stores nothing, calls nothing, and each of its rounds reads
// the same registers.
#pragma once

#include <cstdint>
#include <vector>

#include "omp/atomic/branch_targets.hpp"
#include "omp/atomic/code_scan.hpp"

namespace hiroba::omp {

/// One instruction of a loop that waits.
struct LoopStep {
    enum class Kind : std::uint8_t {
        plain,
        load,  ///< from memory that may be waited for
        exit,  ///< a conditional branch out of the loop
        back,  ///< a branch to the loop's first instruction, behind all others
    };
    Kind kind = Kind::plain;
    std::uint8_t condition = 0;  ///< of a branch: as jump_later() takes it
    std::uintptr_t target = 0;   ///< of an exit
    CodeSite code;               ///< kind flush where it has no memory operand
};

struct WaitLoop {
    std::vector<LoopStep> steps;  ///< in the order of their addresses, without gaps
    std::uintptr_t begin() const { return steps.front().code.address; }
    std::uintptr_t end() const { return steps.back().code.address + steps.back().code.length; }
    /// Where a jump to a copy of the loop fits that no branch enters in its middle; 0: nowhere.
    std::uintptr_t place_of_jump(const BranchTargets& targets) const;
    /// Returns the length of the instruction there.
    std::uint8_t length_at(std::uintptr_t address) const;
};

inline constexpr std::size_t loop_bytes_max = 64;
inline constexpr std::size_t loop_steps_max = 12;
inline constexpr std::size_t loop_loads_max = 2;  ///< the last ones are Kind::load
inline constexpr std::size_t loop_exits_max = 3;

/// The loop from `begin` to the branch that ends at `end`; no steps: it is none that waits.
WaitLoop wait_loop_at(std::uintptr_t begin, std::uintptr_t end);

}  // namespace hiroba::omp
