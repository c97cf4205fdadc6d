// SPDX-License-Identifier: BSD-3-Clause
// Each instruction is looked at quickly, and decoded by Zydis: what is told is the same.
#include "omp/atomic/quick_length.hpp"

#include <Zydis/Zydis.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "omp/atomic/code_scan.hpp"

namespace hiroba::omp {
namespace {

class Comparison {
public:
    Comparison() { ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64); }

    /// @return the instruction's length, 1 where it cannot be decoded
    std::size_t look(std::span<const std::uint8_t> code) {
        const QuickInstruction quick = look_quickly(code.data(), code.size());
        ZydisDecodedInstruction whole;
        ZydisDecoderContext context;
        const bool is_decoded = ZYAN_SUCCESS(
            ZydisDecoderDecodeInstruction(&decoder_, &context, code.data(), code.size(), &whole));
        ++seen;
        told += quick.length != 0;
        if (quick.length != 0 && is_decoded && !are_equal(quick, whole)) ++wrong;
        return is_decoded ? whole.length : 1;
    }

    std::size_t seen = 0, told = 0, wrong = 0;

private:
    static bool are_equal(const QuickInstruction& quick, const ZydisDecodedInstruction& whole) {
        const bool is_memory = whole.raw.modrm.offset != 0 && whole.raw.modrm.mod != 3;
        const bool is_site = (whole.attributes & ZYDIS_ATTRIB_HAS_LOCK) != 0 ||
                             whole.mnemonic == ZYDIS_MNEMONIC_MFENCE ||
                             (whole.mnemonic == ZYDIS_MNEMONIC_XCHG && is_memory);
        const bool is_branch = whole.raw.imm[0].is_relative;
        return quick.length == whole.length && !is_site && quick.is_branch == is_branch &&
               (!is_branch || quick.distance == whole.raw.imm[0].value.s) &&
               quick.is_vector == (whole.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX ||
                                   whole.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX) &&
               (quick.is_vector || whole.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY);
    }

    ZydisDecoder decoder_;
};

TEST(QuickLength, TellsOfTheCodeOfLibcWhatZydisTells) {
    static Comparison comparison;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void*) {
            if (std::strstr(info->dlpi_name, "libc.so") == nullptr) return 0;
            for (const ElfW(Phdr) & each : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
                if (each.p_type != PT_LOAD || (each.p_flags & PF_X) == 0) continue;
                const auto* const code =
                    reinterpret_cast<const std::uint8_t*>(info->dlpi_addr + each.p_vaddr);
                std::span rest{code, each.p_filesz};
                while (!rest.empty()) rest = rest.subspan(comparison.look(rest));
            }
            return 1;
        },
        nullptr);
    EXPECT_GT(comparison.seen, 100'000u);
    EXPECT_GT(comparison.told, comparison.seen * 99 / 100);
    EXPECT_EQ(comparison.wrong, 0u);
}

TEST(QuickLength, TellsOfAnyBytesWhatZydisTells) {
    Comparison comparison;
    std::mt19937_64 random{7};
    for (int i = 0; i < 300'000; ++i) {
        std::uint64_t words[3];
        for (auto& word : words) word = random();
        std::uint8_t bytes[sizeof words];
        std::memcpy(bytes, words, sizeof words);
        comparison.look(bytes);
    }
    EXPECT_GT(comparison.told, comparison.seen / 2);
    EXPECT_EQ(comparison.wrong, 0u);
}

// Each opcode of each map, behind each prefix that programs have, with any operand.
TEST(QuickLength, TellsOfEachOpcodeWhatZydisTells) {
    Comparison comparison;
    std::mt19937_64 random{11};
    const std::vector<std::vector<std::uint8_t>> fronts = {
        {},           {0x0f},       {0x0f, 0x38},    {0x0f, 0x3a},    {0xc5, 0},      {0xc4, 1, 0},
        {0xc4, 2, 0}, {0xc4, 3, 0}, {0x62, 1, 0, 0}, {0x62, 2, 0, 0}, {0x62, 3, 0, 0}};
    const std::uint8_t prefixes[] = {0, 0x66, 0xf2, 0xf3, 0x64, 0x3e};
    for (const auto& front : fronts) {
        for (unsigned opcode = 0; opcode < 256; ++opcode) {
            for (int i = 0; i < 400; ++i) {
                std::uint8_t bytes[24];
                for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
                std::size_t at = 0;
                const bool is_legacy = front.empty() || front[0] == 0x0f;
                if (const std::uint8_t prefix = prefixes[i % 6]; is_legacy && prefix != 0)
                    bytes[at++] = prefix;
                if (is_legacy && (i / 6) % 2 != 0)
                    bytes[at++] = static_cast<std::uint8_t>(0x40 | (random() & 15));
                for (std::size_t j = 0; j < front.size(); ++j) {
                    // The map stays, and what inverts a register is any.
                    const bool is_map = j == 1 && front.size() > 2 && !is_legacy;
                    const auto any = static_cast<std::uint8_t>(is_legacy || j == 0 ? 0
                                                               : is_map            ? random() & 0xe0
                                                                                   : random());
                    bytes[at++] = front[j] | any;
                }
                bytes[at] = static_cast<std::uint8_t>(opcode);
                comparison.look(bytes);
            }
        }
    }
    EXPECT_GT(comparison.told, comparison.seen / 2);
    EXPECT_EQ(comparison.wrong, 0u);
}

// Tables amid code: what decodes there is found by decoding, byte by byte where it fails.
TEST(QuickLength, IsNotAskedWhereSomethingDoesNotDecode) {
    std::vector<std::uint8_t> bytes(std::size_t{1} << 16);
    std::mt19937_64 random{13};
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    std::size_t undecodable = 0;
    for (std::size_t at = 0; at < bytes.size();) {
        ZydisDecodedInstruction instruction;
        ZydisDecoderContext context;
        const bool is_decoded = ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
            &decoder, &context, bytes.data() + at, bytes.size() - at, &instruction));
        undecodable += !is_decoded;
        at += is_decoded ? instruction.length : 1u;
    }
    CodeSection section;
    section.range = {reinterpret_cast<std::uintptr_t>(bytes.data()), bytes.size()};
    EXPECT_GT(undecodable, 1'000u);
    EXPECT_EQ(scan_code({&section, 1}).undecodable_bytes, undecodable);
}

TEST(QuickLength, ReadsNothingBeyondItsRoom) {
    constexpr std::uint8_t call[] = {0xe8, 1, 0, 0, 0};
    EXPECT_EQ(look_quickly(call, 5).length, 5);
    for (std::size_t room = 0; room < 5; ++room) EXPECT_EQ(look_quickly(call, room).length, 0);
}

}  // namespace
}  // namespace hiroba::omp
