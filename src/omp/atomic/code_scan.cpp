// SPDX-License-Identifier: BSD-3-Clause
// Role: the linear sweep. Compilers keep data out of code sections, so decoding from the start of
// each section meets every instruction; where it fails, it steps one byte and finds its feet.
#include "omp/atomic/code_scan.hpp"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <utility>

#include "base/fatal.hpp"
#include "omp/atomic/quick_length.hpp"

namespace hiroba::omp {
namespace {

struct Decoded {
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

bool is_locked(const ZydisDecodedInstruction& instruction) {
    if (instruction.attributes & ZYDIS_ATTRIB_HAS_LOCK) return true;
    // xchg with memory locks the bus without the prefix; mod 3 is a register.
    return instruction.mnemonic == ZYDIS_MNEMONIC_XCHG && instruction.raw.modrm.offset != 0 &&
           instruction.raw.modrm.mod != 3;
}

const ZydisDecodedOperand* memory_operand(const Decoded& decoded) {
    for (int i = 0; i < decoded.instruction.operand_count_visible; ++i) {
        if (decoded.operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY) return &decoded.operands[i];
    }
    return nullptr;
}

bool names_stack_pointer(const Decoded& decoded) {
    for (int i = 0; i < decoded.instruction.operand_count_visible; ++i) {
        if (decoded.operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
                                             decoded.operands[i].reg.value) == ZYDIS_REGISTER_RSP) {
            return true;
        }
    }
    return false;
}

/// The fence idioms of compilers: or/add of zero to the word on top of the stack, and mfence.
bool is_fence(const Decoded& decoded, const ZydisDecodedOperand* memory) {
    const ZydisDecodedInstruction& instruction = decoded.instruction;
    if (instruction.mnemonic == ZYDIS_MNEMONIC_MFENCE) return true;
    if (instruction.mnemonic != ZYDIS_MNEMONIC_OR && instruction.mnemonic != ZYDIS_MNEMONIC_ADD) {
        return false;
    }
    return memory != nullptr && memory->mem.base == ZYDIS_REGISTER_RSP &&
           memory->mem.index == ZYDIS_REGISTER_NONE &&
           decoded.operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
           decoded.operands[1].imm.value.u == 0;
}

std::int8_t bit_register_of(const Decoded& decoded) {
    switch (decoded.instruction.mnemonic) {
        case ZYDIS_MNEMONIC_BTS:
        case ZYDIS_MNEMONIC_BTR:
        case ZYDIS_MNEMONIC_BTC:
            if (decoded.operands[1].type != ZYDIS_OPERAND_TYPE_REGISTER) return -1;
            return static_cast<std::int8_t>(ZydisRegisterGetId(decoded.operands[1].reg.value));
        default: return -1;
    }
}

/// Fills in the encoding; false when the form has no trampoline.
bool describe(const Decoded& decoded, CodeSite& site) {
    const ZydisDecodedInstruction& instruction = decoded.instruction;
    const ZydisDecodedOperand* memory = memory_operand(decoded);
    site.length = instruction.length;
    if (is_fence(decoded, memory)) {
        site.kind = SiteKind::flush;
        return true;
    }
    if (memory == nullptr || names_stack_pointer(decoded)) return false;
    if (memory->mem.segment == ZYDIS_REGISTER_FS || memory->mem.segment == ZYDIS_REGISTER_GS) {
        return false;
    }
    site.short_addresses = instruction.address_width == 32;
    if (memory->mem.base == ZYDIS_REGISTER_RSP) {
        site.addressing = Addressing::stack;
    } else if (memory->mem.base == ZYDIS_REGISTER_RIP) {
        site.addressing = Addressing::instruction;
    }
    if (memory->mem.base == ZYDIS_REGISTER_ESP || memory->mem.base == ZYDIS_REGISTER_EIP) {
        return false;
    }
    const auto& raw = instruction.raw;
    site.operand_bytes = static_cast<std::uint8_t>(memory->size / 8);
    site.modrm_offset = raw.modrm.offset;
    site.displacement_offset = raw.disp.size != 0 ? raw.disp.offset : 0;
    site.displacement = static_cast<std::int32_t>(raw.disp.value);
    site.operand_end = static_cast<std::uint8_t>(
        raw.disp.size != 0 ? raw.disp.offset + raw.disp.size / 8
                           : (raw.sib.offset != 0 ? raw.sib.offset : raw.modrm.offset) + 1);
    site.rex =
        static_cast<std::uint8_t>(raw.rex.W << 3 | raw.rex.R << 2 | raw.rex.X << 1 | raw.rex.B);
    site.bit_register = bit_register_of(decoded);
    return true;
}

class Sweep {
public:
    Sweep() {
        const bool ready = ZYAN_SUCCESS(
            ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64));
        HIROBA_INVARIANT(ready, "the Zydis library refuses 64-bit mode");
    }

    void section(dsm::AddressRange range) {
        sections_.push_back(range);
        before_.clear();
        std::uintptr_t at = range.address;
        while (at < range.end()) {
            const auto* const bytes = reinterpret_cast<const std::uint8_t*>(at);
            if (const auto quick = look_quickly(bytes, range.end() - at); quick.length != 0) {
                if (quick.is_branch) {
                    targets_.push_back(at + quick.length +
                                       static_cast<std::uintptr_t>(std::int64_t{quick.distance}));
                }
                note(at);
                at += quick.length;
                continue;
            }
            Decoded decoded;
            ZydisDecoderContext context;
            const auto* code = reinterpret_cast<const void*>(at);
            if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
                    &decoder_, &context, code, range.end() - at, &decoded.instruction))) {
                ++scan_.undecodable_bytes;
                scan_.wide_vectors = true;
                before_.clear();
                ++at;
                continue;
            }
            instruction(at, context, decoded);
            note(at);
            at += decoded.instruction.length;
        }
    }

    CodeScan finish() {
        std::sort(targets_.begin(), targets_.end());
        std::sort(scan_.sites.begin(), scan_.sites.end(),
                  [](const CodeSite& a, const CodeSite& b) { return a.address < b.address; });
        for (std::size_t i = 0; i < scan_.sites.size(); ++i) {
            CodeSite& site = scan_.sites[i];
            const auto next = std::upper_bound(targets_.begin(), targets_.end(), site.address);
            const bool entered = next != targets_.end() && *next < site.address + site.length;
            site.by_trap = site.length < jump_bytes || entered;
            site.may_borrow = site.by_trap && !entered && behind_stays(i);
            forget_entered(site);
        }
        return std::move(scan_);
    }

private:
    /// Remembers one of the last instructions.
    void note(std::uintptr_t at) {
        if (before_.size() == before_most) before_.erase(before_.begin());
        before_.push_back(at);
    }

    /// Drops what was read from the instructions in front of a site if a jump enters between them.
    void forget_entered(CodeSite& site) const {
        const auto next = std::upper_bound(targets_.begin(), targets_.end(), site.last.begin);
        if (next != targets_.end() && *next <= site.address) site.last = {};
    }

    /// Whether the bytes that a jump at site `i` would end in are code that no site rewrites.
    bool behind_stays(std::size_t i) const {
        const std::uintptr_t end = scan_.sites[i].address + jump_bytes;
        if (i + 1 < scan_.sites.size() && scan_.sites[i + 1].address < end) return false;
        return std::any_of(sections_.begin(), sections_.end(), [&](dsm::AddressRange range) {
            return range.contains(scan_.sites[i].address) && end <= range.end();
        });
    }

    void instruction(std::uintptr_t at, ZydisDecoderContext& context, Decoded& decoded) {
        const ZydisDecodedInstruction& instruction = decoded.instruction;
        scan_.wide_vectors |= instruction.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY;
        if (instruction.raw.imm[0].is_relative) {
            targets_.push_back(at + instruction.length +
                               static_cast<std::uintptr_t>(instruction.raw.imm[0].value.s));
        }
        if (!is_locked(instruction) && instruction.mnemonic != ZYDIS_MNEMONIC_MFENCE) return;

        CodeSite site;
        site.address = at;
        if (ZYAN_SUCCESS(ZydisDecoderDecodeOperands(&decoder_, &context, &instruction,
                                                    decoded.operands, instruction.operand_count)) &&
            describe(decoded, site)) {
            if (site.kind == SiteKind::atomic)
                site.last = last_operation_at(at, before_, sections_.back().address,
                                              sections_.back().end());
            scan_.sites.push_back(site);
        } else {
            ++scan_.left_alone;
        }
    }

    static constexpr std::size_t before_most = 8;

    ZydisDecoder decoder_;
    CodeScan scan_;
    std::vector<std::uintptr_t> before_;  ///< addresses of the last instructions
    std::vector<dsm::AddressRange> sections_;
    std::vector<std::uintptr_t> targets_;  ///< of direct branches
};

}  // namespace

CodeScan scan_code(std::span<const CodeSection> sections) {
    Sweep sweep;
    for (const CodeSection& section : sections) sweep.section(section.range);
    return sweep.finish();
}

}  // namespace hiroba::omp
