// SPDX-License-Identifier: BSD-3-Clause
// Role: finds the instructions to rewrite and takes their encoding apart.
// Invariant: reads code, changes nothing. The parts of an encoding refer to the bytes at `address`
// as they are before the rewrite.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "omp/atomic/code_sections.hpp"
#include "omp/atomic/last_operation.hpp"

namespace hiroba::omp {

enum class SiteKind : std::uint8_t {
    atomic,
    flush,
    wait,  ///< a loop that waits by loads alone (wait_loops.hpp)
};

/// How the memory operand's address is made.
enum class Addressing : std::uint8_t {
    registers,    ///< base, index, displacement; not the stack pointer
    stack,        ///< base is rsp
    instruction,  ///< relative to the next instruction
};

inline constexpr std::uint8_t jump_bytes = 5;

struct WaitLoop;

/// One instruction to rewrite, or the rest of a loop from there on. Offsets count from `address`; 0
/// means there is no such part.
struct CodeSite {
    std::uintptr_t address = 0;
    SiteKind kind = SiteKind::atomic;
    Addressing addressing = Addressing::registers;
    std::uint8_t length = 0;
    std::uint8_t operand_bytes = 0;
    std::uint8_t modrm_offset = 0;
    std::uint8_t displacement_offset = 0;
    std::uint8_t operand_end = 0;  ///< first byte behind modrm, sib and displacement
    std::uint8_t rex = 0;          ///< W, R, X, B bits
    bool short_addresses = false;  ///< address-size prefix
    std::int32_t displacement = 0;
    /// bts, btr, btc with the bit number in this register (0 to 15), which may lie beyond the
    /// operand; -1 otherwise.
    std::int8_t bit_register = -1;
    bool by_trap = false;  ///< no room for a jump
    /// A by_trap that has room for one whose last bytes are those of the instruction behind.
    bool may_borrow = false;
    LastOperation last;              ///< where it ends its function as a reduction does
    const WaitLoop* loop = nullptr;  ///< of a SiteKind::wait; the scan's
};

struct CodeScan {
    CodeScan();
    CodeScan(CodeScan&&) noexcept;
    CodeScan& operator=(CodeScan&&) noexcept;
    ~CodeScan();

    std::vector<CodeSite> sites;  ///< ascending
    std::vector<WaitLoop> loops;
    std::size_t left_alone = 0;
    std::size_t undecodable_bytes = 0;
    /// Some instruction has a VEX, EVEX or XOP prefix, or cannot be decoded: the code may have more
    /// in the vector registers than the low 128 bits of the first sixteen.
    bool wide_vectors = false;
};

/// Decodes every section from its start. A site shorter than a jump, or one that a direct branch
/// of the sections enters in its middle, is marked by_trap; may_borrow where it is only short, and
/// neither the section's end nor another site lies within a jump's length.
CodeScan scan_code(std::span<const CodeSection> sections);

}  // namespace hiroba::omp
