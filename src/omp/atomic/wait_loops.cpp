// SPDX-License-Identifier: BSD-3-Clause
// How: each round of such a loop computes the same from the same registers, whatever it has read.
// So a register that the loop writes must be written before it is read in each round.
#include "omp/atomic/wait_loops.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "omp/atomic/decoded.hpp"
#include "omp/atomic/quick_length.hpp"

namespace hiroba::omp {
namespace {

using Registers = std::uint32_t;  ///< a bit each, in the processor's numbering; bit 16: the flags
constexpr Registers the_flags = 1u << 16;

Registers bit_of(ZydisRegister name) {
    if (ZydisRegisterGetClass(name) == ZYDIS_REGCLASS_FLAGS) return the_flags;
    const ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name);
    if (ZydisRegisterGetClass(full) != ZYDIS_REGCLASS_GPR64) return 0;
    return 1u << static_cast<unsigned>(ZydisRegisterGetId(full));
}

bool may_be_in_wait(const ZydisDecodedInstruction& instruction) {
    switch (instruction.mnemonic) {
        case ZYDIS_MNEMONIC_MOV:
        case ZYDIS_MNEMONIC_MOVZX:
        case ZYDIS_MNEMONIC_MOVSX:
        case ZYDIS_MNEMONIC_MOVSXD:
        case ZYDIS_MNEMONIC_CMP:
        case ZYDIS_MNEMONIC_TEST:
        case ZYDIS_MNEMONIC_LEA:
        case ZYDIS_MNEMONIC_ADD:
        case ZYDIS_MNEMONIC_SUB:
        case ZYDIS_MNEMONIC_AND:
        case ZYDIS_MNEMONIC_OR:
        case ZYDIS_MNEMONIC_XOR:
        case ZYDIS_MNEMONIC_IMUL:
        case ZYDIS_MNEMONIC_SHL:
        case ZYDIS_MNEMONIC_SHR:
        case ZYDIS_MNEMONIC_SAR:
        case ZYDIS_MNEMONIC_CDQE:
        case ZYDIS_MNEMONIC_NOP:
        case ZYDIS_MNEMONIC_PAUSE: return true;
        default: return false;
    }
}

class Reader {
public:
    Reader(std::uintptr_t begin, std::uintptr_t end) : begin_(begin), end_(end) {}

    bool read() {
        if (!ZYAN_SUCCESS(
                ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
            return false;
        for (std::uintptr_t at = begin_; at < end_;) {
            if (loop.steps.size() == loop_steps_max || !step(at)) return false;
            at += loop.steps.back().code.length;
        }
        // What is written and was read before in the same round is another thing in the next.
        return ends_rightly() && (read_first_ & written_) == 0 && keep_last_loads();
    }

    WaitLoop loop;

private:
    bool step(std::uintptr_t at) {
        Decoded decoded;
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder_, reinterpret_cast<const void*>(at),
                                                 end_ - at, &decoded.instruction,
                                                 decoded.operands)))
            return false;
        LoopStep step;
        step.code.address = at;
        step.code.length = decoded.instruction.length;
        step.code.kind = SiteKind::flush;
        if (decoded.instruction.raw.imm[0].is_relative) {
            if (!branch(decoded, step)) return false;
        } else if (!may_be_in_wait(decoded.instruction) || !operand(decoded, step)) {
            return false;
        }
        follow(decoded);
        loop.steps.push_back(step);
        return true;
    }

    bool branch(const Decoded& decoded, LoopStep& step) {
        const ZydisDecodedInstruction& instruction = decoded.instruction;
        const bool always = instruction.mnemonic == ZYDIS_MNEMONIC_JMP;
        if (!always && instruction.meta.category != ZYDIS_CATEGORY_COND_BR) return false;
        const std::uint8_t opcode = instruction.opcode;
        // jrcxz and the loop instructions have no long form.
        if (!always && (opcode & 0xf0) != 0x70 && (opcode & 0xf0) != 0x80) return false;
        step.condition = always ? 0xe9 : static_cast<std::uint8_t>(0x80 | (opcode & 0xf));
        step.target = step.code.address + instruction.length +
                      static_cast<std::uintptr_t>(instruction.raw.imm[0].value.s);
        if (step.target == begin_ && step.code.address + instruction.length == end_) {
            step.kind = LoopStep::Kind::back;
            return always ? exits_ > 0 : true;
        }
        step.kind = LoopStep::Kind::exit;
        const bool within = step.target >= begin_ && step.target < end_;
        return !always && !within && ++exits_ <= loop_exits_max;
    }

    bool operand(const Decoded& decoded, LoopStep& step) {
        for (int i = 0; i < decoded.instruction.operand_count; ++i) {
            const ZydisDecodedOperand& each = decoded.operands[i];
            if (each.type == ZYDIS_OPERAND_TYPE_MEMORY &&
                (each.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0)
                return false;
            if (each.type == ZYDIS_OPERAND_TYPE_REGISTER &&
                (each.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 &&
                (bit_of(each.reg.value) == 0 ||
                 bit_of(each.reg.value) == bit_of(ZYDIS_REGISTER_RSP)))
                return false;
            if (each.type == ZYDIS_OPERAND_TYPE_REGISTER &&
                bit_of(each.reg.value) == bit_of(ZYDIS_REGISTER_RSP))
                return false;
        }
        const ZydisDecodedOperand* const memory = memory_operand(decoded);
        if (memory == nullptr || decoded.instruction.mnemonic == ZYDIS_MNEMONIC_NOP) return true;
        step.code.kind = SiteKind::atomic;
        if (!describe_operand(decoded, memory, step.code)) return false;
        if (memory->mem.type == ZYDIS_MEMOP_TYPE_MEM && step.code.addressing != Addressing::stack)
            step.kind = LoopStep::Kind::load;
        return true;
    }

    /// Keeps what the round has read before it has written it, and what it writes.
    void follow(const Decoded& decoded) {
        Registers read = 0, written = 0;
        for (int i = 0; i < decoded.instruction.operand_count; ++i) {
            const ZydisDecodedOperand& each = decoded.operands[i];
            if (each.type == ZYDIS_OPERAND_TYPE_MEMORY) {
                read |= bit_of(each.mem.base) | bit_of(each.mem.index);
            } else if (each.type == ZYDIS_OPERAND_TYPE_REGISTER) {
                if (each.actions & ZYDIS_OPERAND_ACTION_MASK_READ) read |= bit_of(each.reg.value);
                if (each.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
                    written |= bit_of(each.reg.value);
                // A shift by 0 leaves the flags as they were.
                if (each.actions & ZYDIS_OPERAND_ACTION_CONDWRITE) read |= bit_of(each.reg.value);
            }
        }
        // A register minus itself is 0 whatever it was.
        const ZydisDecodedOperand* const both = decoded.operands;
        if (decoded.instruction.mnemonic == ZYDIS_MNEMONIC_XOR &&
            both[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            both[1].type == ZYDIS_OPERAND_TYPE_REGISTER && both[0].reg.value == both[1].reg.value)
            read &= ~bit_of(both[0].reg.value);
        read_first_ |= read & ~written_;
        written_ |= written;
    }

    bool ends_rightly() const {
        return !loop.steps.empty() && loop.steps.back().kind == LoopStep::Kind::back;
    }

    /// Those before were addresses of what is waited for, most often.
    bool keep_last_loads() {
        std::size_t kept = 0;
        for (auto step = loop.steps.rbegin(); step != loop.steps.rend(); ++step)
            if (step->kind == LoopStep::Kind::load && ++kept > loop_loads_max)
                step->kind = LoopStep::Kind::plain;
        return kept > 0;
    }

    std::uintptr_t begin_, end_;
    ZydisDecoder decoder_;
    Registers read_first_ = 0, written_ = 0;
    std::size_t exits_ = 0;
};

/// Without decoding: most short loops hold what no such loop has.
bool looks_like_one(std::uintptr_t begin, std::uintptr_t end) {
    std::size_t steps = 0;
    while (begin < end) {
        const auto quick = look_quickly(reinterpret_cast<const std::uint8_t*>(begin), end - begin);
        if (quick.length == 0 || quick.is_vector || ++steps > loop_steps_max) return false;
        begin += quick.length;
    }
    return begin == end;
}

}  // namespace

std::uintptr_t WaitLoop::place_of_jump(const BranchTargets& targets) const {
    for (const LoopStep& step : steps) {
        const std::uintptr_t at = step.code.address;
        if (at + jump_bytes > end()) return 0;
        if (!targets.any(at + 1, at + jump_bytes)) return at;
    }
    return 0;
}

std::uint8_t WaitLoop::length_at(std::uintptr_t address) const {
    for (const LoopStep& step : steps)
        if (step.code.address == address) return step.code.length;
    return 0;
}

WaitLoop wait_loop_at(std::uintptr_t begin, std::uintptr_t end) {
    if (end - begin > loop_bytes_max || !looks_like_one(begin, end)) return {};
    Reader reader{begin, end};
    return reader.read() ? std::move(reader.loop) : WaitLoop{};
}

}  // namespace hiroba::omp
