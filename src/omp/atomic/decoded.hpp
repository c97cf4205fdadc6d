// SPDX-License-Identifier: BSD-3-Clause
// Role: one instruction with its operands, as the scans of code look at it. Private to this folder.
// Invariant: reads code, changes nothing.
#pragma once

#include <Zydis/Zydis.h>

#include <cstddef>
#include <cstdint>

#include "omp/atomic/code_scan.hpp"

namespace hiroba::omp {

struct Decoded {
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

/// The visible operand that names memory, or an address by lea; null: there is none.
const ZydisDecodedOperand* memory_operand(const Decoded& decoded);

/// Fills in length and memory operand; false when the operand cannot be counted anew elsewhere.
bool describe_operand(const Decoded& decoded, const ZydisDecodedOperand* memory, CodeSite& site);

}  // namespace hiroba::omp
