// SPDX-License-Identifier: BSD-3-Clause
#include "omp/atomic/code_calls.hpp"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <map>
#include <unordered_map>

namespace hiroba::omp {
namespace {

/// A stub may begin with endbr64, and calls lead to that.
constexpr std::uintptr_t endbr_bytes = 4;

struct Branches {
    std::map<std::uintptr_t, std::uintptr_t> direct;   ///< where: where to
    std::map<std::uintptr_t, std::uintptr_t> by_slot;  ///< calls: through which slot
    std::map<std::uintptr_t, std::uintptr_t> jumps_by_slot;
};

bool is_branch(ZydisMnemonic mnemonic) {
    return mnemonic == ZYDIS_MNEMONIC_CALL || mnemonic == ZYDIS_MNEMONIC_JMP;
}

/// The slot of `call/jmp [rip + displacement]`; 0: no such thing.
std::uintptr_t slot_of(const ZydisDecodedInstruction& instruction, std::uintptr_t at) {
    constexpr std::uint8_t relative_to_instruction = 5;
    if (instruction.raw.modrm.offset == 0 || instruction.raw.modrm.mod != 0 ||
        instruction.raw.modrm.rm != relative_to_instruction)
        return 0;
    return at + instruction.length + static_cast<std::uintptr_t>(instruction.raw.disp.value);
}

void collect(const ZydisDecoder& decoder, dsm::AddressRange range, Branches& found) {
    for (std::uintptr_t at = range.address; at < range.end();) {
        ZydisDecodedInstruction instruction;
        ZydisDecoderContext context;
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, &context,
                                                        reinterpret_cast<const void*>(at),
                                                        range.end() - at, &instruction))) {
            ++at;
            continue;
        }
        if (is_branch(instruction.mnemonic)) {
            const bool calls = instruction.mnemonic == ZYDIS_MNEMONIC_CALL;
            if (instruction.raw.imm[0].is_relative)
                found.direct[at] = at + instruction.length +
                                   static_cast<std::uintptr_t>(instruction.raw.imm[0].value.s);
            else if (const std::uintptr_t slot = slot_of(instruction, at); slot != 0)
                (calls ? found.by_slot : found.jumps_by_slot)[at] = slot;
        }
        at += instruction.length;
    }
}

}  // namespace

std::vector<CallSite> find_calls(std::span<const CodeSection> sections,
                                 std::span<const std::uintptr_t> slots) {
    std::vector<CallSite> calls;
    ZydisDecoder decoder;
    if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
        return calls;
    Branches found;
    for (const CodeSection& section : sections) collect(decoder, section.range, found);

    const auto is_wanted = [slots](std::uintptr_t slot) {
        return std::ranges::find(slots, slot) != slots.end();
    };
    std::unordered_map<std::uintptr_t, std::uintptr_t> stubs;
    for (const auto& [at, slot] : found.jumps_by_slot)
        if (is_wanted(slot)) stubs[at] = stubs[at - endbr_bytes] = slot;
    std::unordered_map<std::uintptr_t, bool> entered;
    for (const auto& [at, target] : found.direct) {
        const auto stub = stubs.find(target);
        if (stub == stubs.end()) continue;
        entered[target] = true;
        calls.push_back({at, stub->second});
    }
    for (const auto& [at, slot] : found.by_slot)
        if (is_wanted(slot)) calls.push_back({at, slot});
    // A jump that no call enters is itself a call, at the end of a function.
    for (const auto& [at, slot] : found.jumps_by_slot)
        if (is_wanted(slot) && !entered[at] && !entered[at - endbr_bytes])
            calls.push_back({at, slot});
    std::ranges::sort(calls, {}, &CallSite::address);
    return calls;
}

}  // namespace hiroba::omp
