// SPDX-License-Identifier: BSD-3-Clause
// Role: the few x86-64 encodings that trampolines need, appended to a buffer that runs in place.
// Invariant: an instruction that is copied computes the same address as the one it was copied
// from, given the stated change of the stack pointer.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "omp/atomic/code_scan.hpp"

namespace hiroba::omp {

class MachineCode {
public:
    explicit MachineCode(std::byte* at) : at_(at) {}

    std::byte* at() const { return at_; }
    std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(at_); }
    bool reaches() const { return reaches_; }  ///< false once a displacement was too far

    void bytes(std::initializer_list<std::uint8_t> code);
    /// A 32-bit displacement to `target`, counted from `behind` bytes after the displacement.
    void relative(std::uintptr_t target, std::size_t behind = 0);
    void jump(std::uintptr_t target);
    /// A jump to anywhere, 14 bytes; no register is used.
    void jump_far(std::uintptr_t target);
    /// A conditional jump (second opcode byte) or, with 0xe9, a jump, whose target is set later.
    std::byte* jump_later(std::uint8_t condition);
    void land(std::byte* jump);

    void load_constant(std::uintptr_t value);              ///< rsi = value
    void compare_constant(const std::uint64_t* constant);  ///< cmp rdi, [constant]
    void call_constant(const std::uint64_t* constant);     ///< call [constant]
    void add_constant(const std::uint64_t* constant);      ///< add rdi, [constant]
    /// An instruction up to its absolute 32-bit displacement, and that.
    void at_segment(std::initializer_list<std::uint8_t> opcode, std::int32_t displacement) {
        at_stack(opcode, displacement);
    }
    // 8 bytes at [rsp + offset].
    void load_rax(std::int32_t offset) { at_stack({0x48, 0x8b, 0x84, 0x24}, offset); }
    void load_rdi(std::int32_t offset) { at_stack({0x48, 0x8b, 0xbc, 0x24}, offset); }
    void store_rax(std::int32_t offset) { at_stack({0x48, 0x89, 0x84, 0x24}, offset); }
    void store_rdi(std::int32_t offset) { at_stack({0x48, 0x89, 0xbc, 0x24}, offset); }
    /// rsp += bytes; flags stay.
    void move_stack(std::int32_t bytes) { at_stack({0x48, 0x8d, 0xa4, 0x24}, bytes); }
    /// rdi = address of the site's operand, with rsp `pushed` bytes below the program's.
    void load_address(const CodeSite& site, std::int32_t pushed);
    /// rdi += where the bit in `register` lies; rsi is scratch. rax, rdi, rsi of the program are at
    /// the given offsets from rsp.
    void add_bit_offset(const CodeSite& site, std::uint8_t rax_at, std::uint8_t rdi_at,
                        std::uint8_t rsi_at);
    /// The instruction itself, with rsp `pushed` bytes below the program's.
    void copy(const CodeSite& site, std::int32_t pushed);

private:
    void number(std::uint64_t value, std::size_t count);
    void at_stack(std::initializer_list<std::uint8_t> opcode, std::int32_t offset) {
        bytes(opcode);
        number(static_cast<std::uint32_t>(offset), 4);
    }
    void operand(const CodeSite& site, std::uint8_t register_field, std::int32_t pushed);

    std::byte* at_;
    bool reaches_ = true;
};

/// Forbids writing to what is written there, `what` in the error's line, and lets it run.
Result<void> make_executable(const char* what, void* memory, std::size_t bytes);

}  // namespace hiroba::omp
