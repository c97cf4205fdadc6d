// SPDX-License-Identifier: BSD-3-Clause
// Role: recognizes an atomic that is the last thing a function does, as gcc's code of a reduction
// ends a region: what it adds to the variable can be told from the registers, and nothing of the
// function looks at the variable afterwards.
// Invariant: reads code, changes nothing. Where anything is not exactly as described here, the
// answer is that there is none.
//
//     lock add %ecx, 12(%rbx)         leaq 8(%rbx), %rcx
//     popq ...                     1: movq %rdx, %xmm1 ; movq %rdx, %rax
//     ret                             addsd %xmm0, %xmm1 ; movq %xmm1, %rsi     in any order
//                                     lock cmpxchgq %rsi, (%rcx)
//                                     jne ...
//                                     popq ... ; ret
#pragma once

#include <cstdint>
#include <span>

#include "omp/team/join_terms.hpp"

namespace hiroba::omp {

/// Where the term lies when the thread is at the instruction.
enum class TermPlace : std::uint8_t {
    general_register,
    vector_register,
    constant,
    stack,   ///< `value` bytes above the stack pointer
    memory,  ///< at the address `value`
};

struct LastOperation {
    TermArithmetic arithmetic;  ///< operator `none`: the instruction is not of this kind
    bool negated = false;       ///< of the term
    bool by_exchange = false;   ///< cmpxchg, which says that it succeeded by the zero flag
    TermPlace place = TermPlace::constant;
    std::uint8_t term_register = 0;  ///< in the processor's numbering
    std::uint8_t base_register = 0;  ///< with `displacement`: the variable, if that is its address
    std::int32_t displacement = 0;
    bool has_frame = false;              ///< the way back begins at rbp, not at the stack pointer
    std::int32_t return_address_at = 0;  ///< bytes above one of them
    std::int64_t value = 0;
    std::uintptr_t begin = 0;  ///< of the instructions that all this was read from

    explicit operator bool() const { return arithmetic.operation != TermOperator::none; }
};

/// @param before  addresses of the instructions in front of it, ascending, without a gap; about 8
/// @param begin, end  of the section
LastOperation last_operation_at(std::uintptr_t address, std::span<const std::uintptr_t> before,
                                std::uintptr_t begin, std::uintptr_t end);

}  // namespace hiroba::omp
