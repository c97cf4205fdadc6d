// SPDX-License-Identifier: BSD-3-Clause
// Role: the linear sweep. Compilers keep data out of code sections, so decoding from the start of
// each section meets every instruction; where it fails, it steps one byte and finds its feet.
// Assembler code may have tables among it. There look_quickly() tells lengths of what is no
// instruction. So the sweep goes back where anything does not decode, and decodes each instruction
// from well before that place to well behind it.
#include "omp/atomic/code_scan.hpp"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/fatal.hpp"
#include "omp/atomic/branch_targets.hpp"
#include "omp/atomic/decoded.hpp"
#include "omp/atomic/quick_length.hpp"
#include "omp/atomic/wait_loops.hpp"

namespace hiroba::omp {
namespace {

bool is_locked(const ZydisDecodedInstruction& instruction) {
    if (instruction.attributes & ZYDIS_ATTRIB_HAS_LOCK) return true;
    // xchg with memory locks the bus without the prefix; mod 3 is a register.
    return instruction.mnemonic == ZYDIS_MNEMONIC_XCHG && instruction.raw.modrm.offset != 0 &&
           instruction.raw.modrm.mod != 3;
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
    const ZydisDecodedOperand* memory = memory_operand(decoded);
    site.length = decoded.instruction.length;
    if (is_fence(decoded, memory)) {
        site.kind = SiteKind::flush;
        return true;
    }
    if (memory == nullptr || names_stack_pointer(decoded) ||
        !describe_operand(decoded, memory, site))
        return false;
    site.bit_register = bit_register_of(decoded);
    return true;
}

class Sweep {
public:
    explicit Sweep(dsm::AddressRange code) : targets_(code) {
        const bool ready = ZYAN_SUCCESS(
            ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64));
        HIROBA_INVARIANT(ready, "the Zydis library refuses 64-bit mode");
    }

    void section(dsm::AddressRange range) {
        sections_.push_back(range);
        before_count_ = 0;
        Mark marks[2] = {mark(range.address), mark(range.address)};
        std::uintptr_t at = range.address, decoded_to = at;
        while (at < range.end()) {
            if (at - marks[1].address >= near_data) {
                marks[0] = marks[1];
                marks[1] = mark(at);
            }
            const bool looks_quickly = at >= decoded_to;
            const auto* const bytes = reinterpret_cast<const std::uint8_t*>(at);
            const std::size_t room = range.end() - at;
            const bool may_be_data = !looks_quickly && !decodes(bytes, room);
            const auto quick = may_be_data ? QuickInstruction{} : look_quickly(bytes, room);
            if (quick.length != 0) {
                scan_.wide_vectors |= quick.is_vector;
                if (quick.is_branch) branch(at, quick);
                if (jumps_by_table(bytes, quick.length)) tables_.push_back(at);
                note(at);
                at += quick.length;
                continue;
            }
            Decoded decoded;
            ZydisDecoderContext context;
            const auto* code = reinterpret_cast<const void*>(at);
            if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
                    &decoder_, &context, code, range.end() - at, &decoded.instruction))) {
                decoded_to = at + near_data;
                before_count_ = 0;
                if (looks_quickly) {
                    at = go_back_to(marks[0]);
                    marks[1] = marks[0];
                    continue;
                }
                ++scan_.undecodable_bytes;
                scan_.wide_vectors = true;
                ++at;
                continue;
            }
            instruction(at, context, decoded);
            note(at);
            at += decoded.instruction.length;
        }
    }

    bool decodes(const std::uint8_t* code, std::size_t room) const {
        ZydisDecodedInstruction instruction;
        ZydisDecoderContext context;
        return ZYAN_SUCCESS(
            ZydisDecoderDecodeInstruction(&decoder_, &context, code, room, &instruction));
    }

    CodeScan finish() {
        std::sort(tables_.begin(), tables_.end());
        add_loops();
        std::sort(scan_.sites.begin(), scan_.sites.end(),
                  [](const CodeSite& a, const CodeSite& b) { return a.address < b.address; });
        for (std::size_t i = 0; i < scan_.sites.size(); ++i) {
            CodeSite& site = scan_.sites[i];
            const bool entered = site.kind != SiteKind::wait &&
                                 targets_.any(site.address + 1, site.address + site.length);
            site.by_trap = site.length < jump_bytes || entered;
            site.may_borrow = site.by_trap && !entered && behind_stays(i);
            forget_entered(site);
        }
        return std::move(scan_);
    }

private:
    /// Tables among code are shorter.
    static constexpr std::size_t near_data = std::size_t{32} << 10;

    /// What had been found when the sweep was at an instruction.
    struct Mark {
        std::uintptr_t address;
        std::size_t sites, loops, tables, left_alone;
    };
    Mark mark(std::uintptr_t at) const {
        return {at, scan_.sites.size(), scan_.loops.size(), tables_.size(), scan_.left_alone};
    }
    /// Forgets what was found since; but for targets of branches, which only make a site a trap.
    std::uintptr_t go_back_to(const Mark& mark) {
        scan_.sites.resize(mark.sites);
        scan_.loops.resize(mark.loops);
        tables_.resize(mark.tables);
        scan_.left_alone = mark.left_alone;
        return mark.address;
    }

    void branch(std::uintptr_t at, const QuickInstruction& quick) {
        const std::uintptr_t end = at + quick.length;
        const std::uintptr_t target =
            end + static_cast<std::uintptr_t>(std::int64_t{quick.distance});
        targets_.add(target);
        if (target >= at || target < sections_.back().address) return;
        if (WaitLoop loop = wait_loop_at(target, end); !loop.steps.empty())
            scan_.loops.push_back(std::move(loop));
    }

    /// A jump to an address that is loaded or reckoned, not one through a slot (as stubs have).
    static bool jumps_by_table(const std::uint8_t* code, std::size_t length) {
        std::size_t at = 0;
        while (at + 1 < length && (code[at] == 0x3e || (code[at] & 0xf0) == 0x40)) ++at;
        constexpr std::uint8_t number = 4, relative = 0x05;
        return at + 1 < length && code[at] == 0xff && (code[at + 1] >> 3 & 7) == number &&
               (code[at + 1] & 0xc7) != relative;
    }

    /// Whether such a jump lies where it may be of the same function.
    bool has_table_near(std::uintptr_t address) const {
        constexpr std::uintptr_t function_bytes = std::uintptr_t{1} << 16;
        const auto next = std::lower_bound(tables_.begin(), tables_.end(),
                                           address > function_bytes ? address - function_bytes : 0);
        return next != tables_.end() && *next < address + function_bytes;
    }

    /// The places of the jumps to copies of the loops.
    void add_loops() {
        std::uintptr_t taken_to = 0;
        for (const WaitLoop& loop : scan_.loops) {
            CodeSite site;
            site.kind = SiteKind::wait;
            site.address = loop.place_of_jump(targets_);
            if (site.address == 0 || loop.begin() < taken_to) continue;
            taken_to = loop.end();
            // What lies behind the jump may be entered; by a table, what it would cover as well.
            site.length = has_table_near(site.address) ? loop.length_at(site.address) : jump_bytes;
            site.loop = &loop;
            scan_.sites.push_back(site);
        }
    }

    /// Remembers one of the last instructions.
    void note(std::uintptr_t at) { before_[before_count_++ % before_most] = at; }

    /// What note() remembers, ascending.
    std::span<const std::uintptr_t> before() {
        if (before_count_ > before_most) {
            std::rotate(before_.begin(), before_.begin() + before_count_ % before_most,
                        before_.end());
            before_count_ = before_most;
        }
        return {before_.data(), before_count_};
    }

    /// Drops what was read from the instructions in front of a site if a jump enters between them.
    void forget_entered(CodeSite& site) const {
        if (site.last && targets_.any(site.last.begin + 1, site.address + 1)) site.last = {};
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
            targets_.add(at + instruction.length +
                         static_cast<std::uintptr_t>(instruction.raw.imm[0].value.s));
        }
        if (!is_locked(instruction) && instruction.mnemonic != ZYDIS_MNEMONIC_MFENCE) return;

        CodeSite site;
        site.address = at;
        if (ZYAN_SUCCESS(ZydisDecoderDecodeOperands(&decoder_, &context, &instruction,
                                                    decoded.operands, instruction.operand_count)) &&
            describe(decoded, site)) {
            if (site.kind == SiteKind::atomic)
                site.last = last_operation_at(at, before(), sections_.back().address,
                                              sections_.back().end());
            scan_.sites.push_back(site);
        } else {
            ++scan_.left_alone;
        }
    }

    static constexpr std::size_t before_most = 8;

    ZydisDecoder decoder_;
    CodeScan scan_;
    /// Addresses of the last instructions; the newest is the one at `before_count_ - 1`, modulo.
    std::array<std::uintptr_t, before_most> before_{};
    std::size_t before_count_ = 0;
    std::vector<dsm::AddressRange> sections_;
    BranchTargets targets_;
    std::vector<std::uintptr_t> tables_;  ///< jumps whose targets are not known
};

}  // namespace

const ZydisDecodedOperand* memory_operand(const Decoded& decoded) {
    for (int i = 0; i < decoded.instruction.operand_count_visible; ++i) {
        if (decoded.operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY) return &decoded.operands[i];
    }
    return nullptr;
}

bool describe_operand(const Decoded& decoded, const ZydisDecodedOperand* memory, CodeSite& site) {
    const ZydisDecodedInstruction& instruction = decoded.instruction;
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
    return raw.modrm.offset != 0;
}

CodeScan::CodeScan() = default;
CodeScan::CodeScan(CodeScan&&) noexcept = default;
CodeScan& CodeScan::operator=(CodeScan&&) noexcept = default;
CodeScan::~CodeScan() = default;

CodeScan scan_code(std::span<const CodeSection> sections) {
    dsm::AddressRange code{};
    if (!sections.empty()) {
        std::uintptr_t begin = UINTPTR_MAX, end = 0;
        for (const CodeSection& section : sections) {
            begin = std::min(begin, section.range.address);
            end = std::max(end, section.range.end());
        }
        code = {begin, end - begin};
    }
    Sweep sweep{code};
    for (const CodeSection& section : sections) sweep.section(section.range);
    return sweep.finish();
}

}  // namespace hiroba::omp
