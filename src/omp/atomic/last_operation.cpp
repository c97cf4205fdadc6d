// SPDX-License-Identifier: BSD-3-Clause
// Role: see the header. Of the instructions before a cmpxchg the dataflow is followed: the expected
// value must be what the operation was made on, and the new value its result. Then a success is
// variable := variable op term, whatever the loop around it does when it fails.
// Invariant: see the header.
#include "omp/atomic/last_operation.hpp"

#include <Zydis/Zydis.h>

#include <array>
#include <optional>
#include <utility>

namespace hiroba::omp {
namespace {

struct Instruction {
    ZydisDecodedInstruction decoded;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    std::uintptr_t address = 0;

    std::uintptr_t end() const { return address + decoded.length; }
    const ZydisDecodedOperand& operand(unsigned i) const { return operands[i]; }
};

std::optional<Instruction> decode(std::uintptr_t address, std::uintptr_t end) {
    ZydisDecoder decoder;
    Instruction result;
    result.address = address;
    if (address >= end ||
        !ZYAN_SUCCESS(
            ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
        !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, reinterpret_cast<const void*>(address),
                                             end - address, &result.decoded, result.operands)))
        return std::nullopt;
    return result;
}

/// Number of a general register that is named by its low bytes; -1: something else.
int general_register(const ZydisDecodedOperand& operand) {
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) return -1;
    const ZydisRegister name = operand.reg.value;
    switch (ZydisRegisterGetClass(name)) {
        case ZYDIS_REGCLASS_GPR8:
            if (name >= ZYDIS_REGISTER_AH && name <= ZYDIS_REGISTER_BH) return -1;
            break;
        case ZYDIS_REGCLASS_GPR16:
        case ZYDIS_REGCLASS_GPR32:
        case ZYDIS_REGCLASS_GPR64: break;
        default: return -1;
    }
    return ZydisRegisterGetId(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name));
}

/// Number of an XMM register below 16; -1: something else.
int vector_register(const ZydisDecodedOperand& operand) {
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER ||
        ZydisRegisterGetClass(operand.reg.value) != ZYDIS_REGCLASS_XMM)
        return -1;
    const int number{
        ZydisRegisterGetId(operand.reg.value)};  // NOLINT(bugprone-signed-char-misuse): -1 is none
    return number < 16 ? number : -1;
}

bool is_plain_memory(const ZydisDecodedOperand& operand) {
    return operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.segment != ZYDIS_REGISTER_FS &&
           operand.mem.segment != ZYDIS_REGISTER_GS && operand.mem.index == ZYDIS_REGISTER_NONE;
}

/// Fills in base and displacement; false for bases that no struct of shared variables has.
bool set_variable(const ZydisDecodedOperand& operand, LastOperation& last) {
    if (!is_plain_memory(operand) ||
        ZydisRegisterGetClass(operand.mem.base) != ZYDIS_REGCLASS_GPR64 ||
        operand.mem.base == ZYDIS_REGISTER_RSP)
        return false;
    last.base_register = static_cast<std::uint8_t>(ZydisRegisterGetId(operand.mem.base));
    last.displacement = static_cast<std::int32_t>(operand.mem.disp.value);
    return true;
}

/// lea d(%rbp), %rsp
bool goes_to_frame(const Instruction& at, std::int32_t& above) {
    const ZydisDecodedOperand& from = at.operand(1);
    if (at.operand(0).reg.value != ZYDIS_REGISTER_RSP || !is_plain_memory(from) ||
        from.mem.base != ZYDIS_REGISTER_RBP)
        return false;
    above = static_cast<std::int32_t>(from.mem.disp.value);
    return true;
}

/// Whether nothing but the way back to the caller follows at `address`.
bool returns(std::uintptr_t address, std::uintptr_t begin, std::uintptr_t end,
             LastOperation& last) {
    constexpr int instructions_max = 16;
    bool tests = last.by_exchange;
    std::int32_t above = 0;
    for (int i = 0; i < instructions_max; ++i) {
        const auto next = decode(address, end);
        if (!next) return false;
        address = next->end();
        switch (next->decoded.mnemonic) {
            case ZYDIS_MNEMONIC_CMP:  // of what is equal where the exchange succeeds
                if (!tests || general_register(next->operand(0)) < 0 ||
                    general_register(next->operand(1)) < 0)
                    return false;
                // -O1 compares the old value with what was expected, instead of using the flag.
                if (general_register(next->operand(0)) != 0 &&
                    general_register(next->operand(1)) != 0)
                    return false;
                break;
            case ZYDIS_MNEMONIC_JNZ:
                if (!tests) return false;
                tests = false;
                break;
            case ZYDIS_MNEMONIC_POP:
                if (tests || general_register(next->operand(0)) < 0) return false;
                above += 8;
                break;
            case ZYDIS_MNEMONIC_ADD:
                if (tests || next->operand(0).type != ZYDIS_OPERAND_TYPE_REGISTER ||
                    next->operand(0).reg.value != ZYDIS_REGISTER_RSP ||
                    next->operand(1).type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
                    return false;
                above += static_cast<std::int32_t>(next->operand(1).imm.value.s);
                break;
            case ZYDIS_MNEMONIC_LEA:
                if (tests || !goes_to_frame(*next, above)) return false;
                last.has_frame = true;
                break;
            case ZYDIS_MNEMONIC_LEAVE:
                if (tests) return false;
                last.has_frame = true;
                above = 8;
                break;
            case ZYDIS_MNEMONIC_JMP:
                if (tests || !next->decoded.raw.imm[0].is_relative) return false;
                address += static_cast<std::uintptr_t>(next->decoded.raw.imm[0].value.s);
                if (address >= end || address < begin) return false;
                break;
            case ZYDIS_MNEMONIC_VZEROUPPER:
            case ZYDIS_MNEMONIC_NOP: break;
            case ZYDIS_MNEMONIC_RET: last.return_address_at = above; return !tests;
            default: return false;
        }
    }
    return false;
}

/// lock add and its kin, whose term is a register or a constant.
bool describe_integer(const Instruction& at, LastOperation& last) {
    TermOperator operation = TermOperator::add;
    switch (at.decoded.mnemonic) {
        case ZYDIS_MNEMONIC_ADD: break;
        case ZYDIS_MNEMONIC_SUB: last.negated = true; break;
        case ZYDIS_MNEMONIC_AND: operation = TermOperator::and_; break;
        case ZYDIS_MNEMONIC_OR: operation = TermOperator::or_; break;
        case ZYDIS_MNEMONIC_XOR: operation = TermOperator::xor_; break;
        case ZYDIS_MNEMONIC_INC:
        case ZYDIS_MNEMONIC_DEC: last.value = 1; break;
        default: return false;
    }
    last.negated |= at.decoded.mnemonic == ZYDIS_MNEMONIC_DEC;
    if (at.decoded.operand_count_visible == 2) {
        const int source = general_register(at.operand(1));
        if (source >= 0) {
            last.place = TermPlace::general_register;
            last.term_register = static_cast<std::uint8_t>(source);
        } else if (at.operand(1).type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
            last.value = at.operand(1).imm.value.s;
        } else {
            return false;
        }
    }
    last.arithmetic = {operation, false, static_cast<std::uint8_t>(at.operand(0).size / 8)};
    return true;
}

/// An operation of two floating numbers; `none`: another instruction.
TermArithmetic floating_operation(ZydisMnemonic mnemonic) {
    using enum TermOperator;
    switch (mnemonic) {
        case ZYDIS_MNEMONIC_ADDSD:
        case ZYDIS_MNEMONIC_VADDSD: return {add, true, 8};
        case ZYDIS_MNEMONIC_MULSD:
        case ZYDIS_MNEMONIC_VMULSD: return {multiply, true, 8};
        case ZYDIS_MNEMONIC_MINSD:
        case ZYDIS_MNEMONIC_VMINSD: return {least, true, 8};
        case ZYDIS_MNEMONIC_MAXSD:
        case ZYDIS_MNEMONIC_VMAXSD: return {greatest, true, 8};
        case ZYDIS_MNEMONIC_ADDSS:
        case ZYDIS_MNEMONIC_VADDSS: return {add, true, 4};
        case ZYDIS_MNEMONIC_MULSS:
        case ZYDIS_MNEMONIC_VMULSS: return {multiply, true, 4};
        case ZYDIS_MNEMONIC_MINSS:
        case ZYDIS_MNEMONIC_VMINSS: return {least, true, 4};
        case ZYDIS_MNEMONIC_MAXSS:
        case ZYDIS_MNEMONIC_VMAXSS: return {greatest, true, 4};
        default: return {};
    }
}

/// Follows the old value through the four instructions before a cmpxchg.
class Dataflow {
public:
    /// @param old  the general register that holds the old value before the first of them
    explicit Dataflow(int old) { general_[index(old)] = Content::old; }

    bool step(const Instruction& at, LastOperation& last) {
        switch (at.decoded.mnemonic) {
            case ZYDIS_MNEMONIC_MOV:
            case ZYDIS_MNEMONIC_MOVQ:
            case ZYDIS_MNEMONIC_VMOVQ:
            case ZYDIS_MNEMONIC_MOVD:
            case ZYDIS_MNEMONIC_VMOVD: return move(at);
            default: return operate(at, last);
        }
    }

    /// Whether cmpxchg now expects the old value, and `source` and the term are as they should be.
    bool ends_with(int source, const LastOperation& last) const {
        const bool keeps_term = last.place != TermPlace::vector_register ||
                                vector_[last.term_register] == Content::unknown;
        return last && keeps_term && general_[0] == Content::old && source >= 0 &&
               general_[index(source)] == Content::result;
    }

private:
    enum class Content : std::uint8_t { unknown, old, result };
    static std::size_t index(int number) { return static_cast<std::size_t>(number); }

    Content* place(const ZydisDecodedOperand& operand) {
        if (const int number = general_register(operand); number >= 0)
            return &general_[index(number)];
        if (const int number = vector_register(operand); number >= 0)
            return &vector_[index(number)];
        return nullptr;
    }

    /// Between registers alone; 32 or 64 bits, which `last` need not know: the widths of the
    /// operation and of the exchange are compared.
    bool move(const Instruction& at) {
        if (at.decoded.operand_count_visible != 2 || at.operand(0).size < 32) return false;
        Content* const to = place(at.operand(0));
        const Content* const from = place(at.operand(1));
        if (to == nullptr || from == nullptr || *from == Content::unknown) return false;
        *to = *from;
        return true;
    }

    bool operate(const Instruction& at, LastOperation& last) {
        const TermArithmetic arithmetic = floating_operation(at.decoded.mnemonic);
        if (arithmetic.operation == TermOperator::none || last) return false;
        // Two operands: the first is an operand, too.
        const bool two = at.decoded.operand_count_visible == 2;
        if (!two && at.decoded.operand_count_visible != 3) return false;
        const ZydisDecodedOperand* left = &at.operand(two ? 0 : 1);
        const ZydisDecodedOperand* right = &at.operand(two ? 1 : 2);
        const bool reversed = !two && !holds_old(*left);
        if (reversed) std::swap(left, right);
        if (!holds_old(*left) || !set_term(at, *right, last)) return false;
        last.arithmetic = arithmetic;
        last.arithmetic.reversed = reversed;
        vector_[index(vector_register(at.operand(0)))] = Content::result;
        return true;
    }

    bool holds_old(const ZydisDecodedOperand& operand) const {
        const int number = vector_register(operand);
        return number >= 0 && vector_[index(number)] == Content::old;
    }

    bool set_term(const Instruction& at, const ZydisDecodedOperand& operand, LastOperation& last) {
        if (const int number = vector_register(operand); number >= 0) {
            last.place = TermPlace::vector_register;
            last.term_register = static_cast<std::uint8_t>(number);
            return vector_[index(number)] == Content::unknown;
        }
        if (!is_plain_memory(operand)) return false;
        last.value = operand.mem.disp.value;
        last.place = TermPlace::stack;
        if (operand.mem.base == ZYDIS_REGISTER_RSP) return true;
        last.place = TermPlace::memory;
        last.value += static_cast<std::int64_t>(at.end());
        return operand.mem.base == ZYDIS_REGISTER_RIP;
    }

    std::array<Content, 16> general_{}, vector_{};
};

/// The general register that the expected value is loaded from: itself, if nothing says otherwise;
/// -1: none.
int old_value_register(std::span<const Instruction> window) {
    for (const Instruction& at : window)
        if (at.decoded.mnemonic == ZYDIS_MNEMONIC_MOV && general_register(at.operand(0)) == 0)
            return general_register(at.operand(1));
    return 0;
}

/// Whether the instructions lead to the exchange as they should; then they fill in the operation.
bool follow(std::span<const Instruction> window, const Instruction& exchange, LastOperation& last) {
    const int old = old_value_register(window);
    if (old < 0) return false;
    LastOperation found = last;
    Dataflow flow{old};
    for (const Instruction& at : window)
        if (!flow.step(at, found)) return false;
    if (!flow.ends_with(general_register(exchange.operand(1)), found) ||
        found.arithmetic.bytes * 8 != exchange.operand(0).size)
        return false;
    last = found;
    return true;
}

bool describe_exchange(const Instruction& at, std::span<const std::uintptr_t> before,
                       LastOperation& last) {
    constexpr std::size_t longest = 4, shortest = 3;
    if (before.size() < longest) return false;
    std::array<Instruction, longest> instructions;
    for (std::size_t i = 0; i < longest; ++i) {
        const auto one = decode(before[before.size() - longest + i], at.address);
        if (!one) return false;
        instructions[i] = *one;
    }
    // The shorter way has the old value in rax from the start.
    const std::span<const Instruction> window{instructions};
    const std::size_t used = follow(window, at, last)              ? longest
                             : follow(window.subspan(1), at, last) ? shortest
                                                                   : 0;
    if (used == 0) return false;
    last.by_exchange = true;
    last.begin = window[longest - used].address;
    // The variable's address may have been put into a register of its own before the loop.
    for (std::size_t i = before.size() - used; i-- > 0;) {
        const auto one = decode(before[i], at.address);
        if (!one || one->decoded.mnemonic != ZYDIS_MNEMONIC_LEA ||
            general_register(one->operand(0)) != last.base_register)
            continue;
        const std::int32_t behind = last.displacement;
        if (!set_variable(one->operand(1), last)) return false;
        last.displacement += behind;
        break;
    }
    return true;
}

}  // namespace

LastOperation last_operation_at(std::uintptr_t address, std::span<const std::uintptr_t> before,
                                std::uintptr_t begin, std::uintptr_t end) {
    const auto at = decode(address, end);
    LastOperation last;
    if (!at || !(at->decoded.attributes & ZYDIS_ATTRIB_HAS_LOCK) ||
        !set_variable(at->operand(0), last))
        return {};
    last.begin = address;
    const bool described = at->decoded.mnemonic == ZYDIS_MNEMONIC_CMPXCHG
                               ? describe_exchange(*at, before, last)
                               : describe_integer(*at, last);
    return described && returns(at->end(), begin, end, last) ? last : LastOperation{};
}

}  // namespace hiroba::omp
