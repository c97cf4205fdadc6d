// SPDX-License-Identifier: BSD-3-Clause
// Role: finds, marks and carries out locked instructions of generated code.
// Invariant: nothing is guessed. A linear sweep would take constants among the code for locked
// instructions, and change them; so only what control flow reaches is marked. Trampolines, as
// static code has them, are out of reach: no address within 2 GiB of global memory is free.
#include "omp/atomic/generated_atomics.hpp"

#include <ucontext.h>

#include <array>
#include <atomic>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/bytes.hpp"
#include "base/thread_context.hpp"
#include "omp/atomic/decoded.hpp"
#include "omp/atomic/fault_trap.hpp"

namespace hiroba::omp {
namespace {

constexpr std::uint8_t lock_prefix = 0xf0, int3 = 0xcc;
constexpr std::uint64_t carry = 1, overflow = 1 << 11;
constexpr std::uint64_t low_flags = 0xd5;  // of lahf: SF, ZF, AF, PF, CF
constexpr std::size_t zeros_of_no_code = 16;
constexpr std::size_t longest = 14;  ///< bytes of an instruction without a prefix

constinit std::atomic<dsm::SharedMemory*> shared{nullptr};
constinit std::atomic<bool> is_sequential{false};
constinit std::atomic<bool (*)(std::uintptr_t) noexcept> is_generated{nullptr};

bool decode(const std::uint8_t* code, std::size_t room, Decoded& decoded) {
    ZydisDecoder decoder;
    return ZYAN_SUCCESS(
               ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) &&
           ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, room, &decoded.instruction,
                                               decoded.operands));
}

/// 0 to 15; none for AH and its like, and where it is no general register.
std::optional<std::size_t> number_of(ZydisRegister name) {
    if (name >= ZYDIS_REGISTER_AH && name <= ZYDIS_REGISTER_BH) return std::nullopt;
    const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name);
    if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64) return std::nullopt;
    return static_cast<std::size_t>(ZydisRegisterGetId(whole));
}

bool is_carried_out(ZydisMnemonic mnemonic) {
    switch (mnemonic) {
        case ZYDIS_MNEMONIC_XADD:
        case ZYDIS_MNEMONIC_CMPXCHG:
        case ZYDIS_MNEMONIC_ADD:
        case ZYDIS_MNEMONIC_SUB:
        case ZYDIS_MNEMONIC_AND:
        case ZYDIS_MNEMONIC_OR:
        case ZYDIS_MNEMONIC_XOR:
        case ZYDIS_MNEMONIC_INC:
        case ZYDIS_MNEMONIC_DEC: return true;
        default: return false;
    }
}

/// Whether the instruction behind a lock prefix is one of those below.
bool is_known(const Decoded& decoded) {
    const ZydisDecodedOperand& memory = decoded.operands[0];
    if (!is_carried_out(decoded.instruction.mnemonic) || memory.type != ZYDIS_OPERAND_TYPE_MEMORY ||
        decoded.instruction.address_width != 64 || memory.mem.segment == ZYDIS_REGISTER_FS ||
        memory.mem.segment == ZYDIS_REGISTER_GS)
        return false;
    if (decoded.instruction.operand_count_visible < 2) return true;
    const ZydisDecodedOperand& source = decoded.operands[1];
    return source.type == ZYDIS_OPERAND_TYPE_IMMEDIATE ||
           (source.type == ZYDIS_OPERAND_TYPE_REGISTER && number_of(source.reg.value));
}

/// What control flow reaches.
class Descent {
public:
    explicit Descent(dsm::AddressRange code) : code_(code) {}

    /// Empty where something is no code.
    std::vector<std::uint8_t*> locks() {
        open_.push_back(code_.address);
        while (!open_.empty()) {
            const std::uintptr_t at = open_.back();
            open_.pop_back();
            if (!follow(at)) return {};
        }
        return locks_;
    }

private:
    bool follow(std::uintptr_t at) {
        while (code_.contains(at) && seen_.insert(at).second) {
            auto* const bytes = reinterpret_cast<std::uint8_t*>(at);
            const std::size_t room = code_.end() - at;
            if (is_empty(bytes, room)) return false;
            Decoded decoded;
            if (!decode(bytes, room, decoded)) return false;
            const ZydisDecodedInstruction& instruction = decoded.instruction;
            if (bytes[0] == lock_prefix && is_known(decoded)) locks_.push_back(bytes);
            at += instruction.length;
            const ZydisDecodedOperand& target = decoded.operands[0];
            if (instruction.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE &&
                target.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && target.imm.is_relative)
                open_.push_back(at + static_cast<std::uintptr_t>(target.imm.value.s));
            if (ends_path(instruction)) return true;
        }
        return true;
    }

    static bool is_empty(const std::uint8_t* bytes, std::size_t room) {
        for (std::size_t i = 0; i < zeros_of_no_code; ++i)
            if (i >= room || bytes[i] != 0) return false;
        return true;
    }

    static bool ends_path(const ZydisDecodedInstruction& instruction) {
        return instruction.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
               instruction.meta.category == ZYDIS_CATEGORY_RET ||
               instruction.mnemonic == ZYDIS_MNEMONIC_UD2 ||
               instruction.mnemonic == ZYDIS_MNEMONIC_HLT;
    }

    dsm::AddressRange code_;
    std::unordered_set<std::uintptr_t> seen_;
    std::vector<std::uintptr_t> open_;
    std::vector<std::uint8_t*> locks_;
};

/// The general registers of a context by the processor's numbers.
greg_t& general(ucontext_t& context, std::size_t number) {
    constexpr std::array order = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};
    return context.uc_mcontext.gregs[order[number]];
}

std::uintptr_t address_of(const ZydisDecodedOperand& memory, ucontext_t& context,
                          std::uintptr_t next) {
    const auto value = [&](ZydisRegister name) -> std::uintptr_t {
        if (name == ZYDIS_REGISTER_RIP) return next;
        const auto number = number_of(name);
        return number ? static_cast<std::uintptr_t>(general(context, *number)) : 0;
    };
    return value(memory.mem.base) + value(memory.mem.index) * memory.mem.scale +
           static_cast<std::uintptr_t>(memory.mem.disp.value);
}

/// What lahf and seto leave in ax.
template <class T>
std::uint64_t flags_of(ZydisMnemonic mnemonic, T a, T b) {
    std::uint64_t ax = 0;
    switch (mnemonic) {
        case ZYDIS_MNEMONIC_XADD:
        case ZYDIS_MNEMONIC_INC:
        case ZYDIS_MNEMONIC_ADD:
            asm("add %2, %1; lahf; seto %%al" : "=&a"(ax), "+r"(a) : "r"(b) : "cc");
            break;
        case ZYDIS_MNEMONIC_AND:
            asm("and %2, %1; lahf; seto %%al" : "=&a"(ax), "+r"(a) : "r"(b) : "cc");
            break;
        case ZYDIS_MNEMONIC_OR:
            asm("or %2, %1; lahf; seto %%al" : "=&a"(ax), "+r"(a) : "r"(b) : "cc");
            break;
        case ZYDIS_MNEMONIC_XOR:
            asm("xor %2, %1; lahf; seto %%al" : "=&a"(ax), "+r"(a) : "r"(b) : "cc");
            break;
        default:  // sub, dec, and the comparison of cmpxchg
            asm("sub %2, %1; lahf; seto %%al" : "=&a"(ax), "+r"(a) : "r"(b) : "cc");
    }
    return ax;
}

/// Returns what was there before.
template <class T>
T exchange(ZydisMnemonic mnemonic, T* at, T source, T accumulator) {
    switch (mnemonic) {
        case ZYDIS_MNEMONIC_XADD:
        case ZYDIS_MNEMONIC_INC:
        case ZYDIS_MNEMONIC_ADD: return __atomic_fetch_add(at, source, __ATOMIC_SEQ_CST);
        case ZYDIS_MNEMONIC_DEC:
        case ZYDIS_MNEMONIC_SUB: return __atomic_fetch_sub(at, source, __ATOMIC_SEQ_CST);
        case ZYDIS_MNEMONIC_AND: return __atomic_fetch_and(at, source, __ATOMIC_SEQ_CST);
        case ZYDIS_MNEMONIC_OR: return __atomic_fetch_or(at, source, __ATOMIC_SEQ_CST);
        case ZYDIS_MNEMONIC_XOR: return __atomic_fetch_xor(at, source, __ATOMIC_SEQ_CST);
        default:
            __atomic_compare_exchange_n(at, &accumulator, source, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST);
            return accumulator;
    }
}

/// As the processor writes a register: 32 bits clear the rest, fewer leave it.
template <class T>
void set(greg_t& whole, T value) {
    if constexpr (sizeof(T) >= 4)
        whole = static_cast<greg_t>(static_cast<std::uint64_t>(value));
    else
        whole = static_cast<greg_t>((static_cast<std::uint64_t>(whole) & ~std::uint64_t{T(~T{0})}) |
                                    value);
}

template <class T>
void carry_out(const Decoded& decoded, std::uintptr_t address, ucontext_t& context) {
    const ZydisMnemonic mnemonic = decoded.instruction.mnemonic;
    const bool steps = mnemonic == ZYDIS_MNEMONIC_INC || mnemonic == ZYDIS_MNEMONIC_DEC;
    const ZydisDecodedOperand& operand = decoded.operands[1];
    greg_t* named = nullptr;
    if (!steps && operand.type == ZYDIS_OPERAND_TYPE_REGISTER)
        named = &general(context, *number_of(operand.reg.value));
    const T source = steps              ? T{1}
                     : named != nullptr ? static_cast<T>(*named)
                                        : static_cast<T>(operand.imm.value.s);
    greg_t& rax = context.uc_mcontext.gregs[REG_RAX];
    const T accumulator = static_cast<T>(rax);
    auto* const at = reinterpret_cast<T*>(address);
    T before{};
    dsm::SharedMemory& memory = *shared.load();
    // On the stack it is what compilers make of a fence; one across pages stays one node's.
    const bool fences = decoded.operands[0].mem.base == ZYDIS_REGISTER_RSP;
    const bool crosses = address / page_bytes != (address + sizeof(T) - 1) / page_bytes;
    on_runtime_stack([&] {
        if (fences || is_sequential.load()) memory.flush();
        const bool entered = !fences && !crosses && memory.enter_atomic(at, sizeof(T));
        before = exchange(mnemonic, at, source, accumulator);
        if (entered) memory.leave_atomic(at, sizeof(T));
        if (is_sequential.load()) memory.flush();
    });
    const bool compares = mnemonic == ZYDIS_MNEMONIC_CMPXCHG;
    const std::uint64_t ax =
        compares ? flags_of(mnemonic, accumulator, before) : flags_of(mnemonic, before, source);
    const std::uint64_t made = (ax >> 8 & low_flags) | ((ax & 1) != 0 ? overflow : 0);
    const std::uint64_t changed = (low_flags | overflow) & ~(steps ? carry : 0);
    auto& flags = context.uc_mcontext.gregs[REG_EFL];
    flags = static_cast<greg_t>((static_cast<std::uint64_t>(flags) & ~changed) | (made & changed));
    if (compares && before != accumulator) set(rax, before);
    if (mnemonic == ZYDIS_MNEMONIC_XADD) set(*named, before);
}

}  // namespace

Result<void> carry_out_generated_atomics(dsm::SharedMemory& memory, bool sequential,
                                         bool (*is_code)(std::uintptr_t) noexcept) {
    shared.store(&memory);
    is_sequential.store(sequential);
    is_generated.store(is_code);
    return add_trap_sites({});
}

std::size_t mark_generated_atomics(dsm::AddressRange code) {
    const std::vector<std::uint8_t*> locks = Descent{code}.locks();
    for (std::uint8_t* const lock : locks) *lock = int3;
    return locks.size();
}

bool carry_out_marked(void* machine) noexcept {
    auto& context = *static_cast<ucontext_t*>(machine);
    greg_t& instruction = context.uc_mcontext.gregs[REG_RIP];
    const auto at = static_cast<std::uintptr_t>(instruction);
    const auto is_code = is_generated.load();
    Decoded decoded;
    if (is_code == nullptr || !is_code(at - 1) ||
        !decode(reinterpret_cast<const std::uint8_t*>(at), longest, decoded) || !is_known(decoded))
        return false;
    const std::uintptr_t next = at + decoded.instruction.length;
    const std::uintptr_t address = address_of(decoded.operands[0], context, next);
    switch (decoded.operands[0].size) {
        case 8: carry_out<std::uint8_t>(decoded, address, context); break;
        case 16: carry_out<std::uint16_t>(decoded, address, context); break;
        case 32: carry_out<std::uint32_t>(decoded, address, context); break;
        default: carry_out<std::uint64_t>(decoded, address, context);
    }
    instruction = static_cast<greg_t>(next);
    return true;
}

}  // namespace hiroba::omp
