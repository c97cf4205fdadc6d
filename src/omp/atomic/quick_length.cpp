// SPDX-License-Identifier: BSD-3-Clause
// How: one letter for each opcode says what follows it (Intel's manual, volume 2, appendix A).
#include "omp/atomic/quick_length.hpp"

#include <cstring>

namespace hiroba::omp {
namespace {

// .  decode it                     n  nothing follows
// m  modrm                         i  modrm and one byte
// z  modrm and a word              1  one byte        2  two bytes
// 4  a word                        w  a word, eight bytes with REX.W
// b  branch, one byte              B  branch, four bytes
// x  modrm of a register
// g  modrm, with a byte where its number is 0 or 1 (test)     G  the same with a word
// 0  modrm and one byte, number 0  Z  modrm and a word, number 0
constexpr char one_byte[] =
    "mmmm14..mmmm14.."  // 00
    "mmmm14..mmmm14.."
    "mmmm14..mmmm14.."
    "mmmm14..mmmm14.."
    "................"  // 40: REX
    "nnnnnnnnnnnnnnnn"
    "...m....4z1innnn"  // 60
    "bbbbbbbbbbbbbbbb"
    "iz.immxxmmmmmmm."  // 80
    "nnnnnnnnnn.nnnnn"
    "....nnnn14nnnnnn"  // a0
    "11111111wwwwwwww"
    "ii2n..0Z.n2nn1.n"  // c0
    "mmmm...nmmmmmmmm"
    "bbbb1111BB.bnnnn"  // e0
    "....nngGnnnnnnmm";
constexpr char two_bytes[] =
    ".....n.....n...."  // 00
    "mmmmmmmmmmmmmmmm"
    "........mmmmmmmm"  // 20
    ".n......m.i....."  // 38 and 3a: an opcode more
    "mmmmmmmmmmmmmmmm"  // 40
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"  // 60
    "iiiimmmn....mmmm"
    "BBBBBBBBBBBBBBBB"  // 80
    "mmmmmmmmmmmmmmmm"
    "..nmim.....mim.m"  // a0
    "mm.m..mmm.immmmm"
    "mmimiii.nnnnnnnn"  // c0
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"  // e0
    "mmmmmmmmmmmmmmm.";
// Map 1 of the vector extensions. Nothing follows modrm in map 2, one byte does in map 3.
constexpr char vector_map[] =
    "................"  // 00
    "mmmmmmmm........"
    "........mmmmmmmm"  // 20
    "................"
    ".mm.mmmm..mm...."  // 40: of masks
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"  // 60
    "iiiimmmnmmmmmmmm"
    "................"  // 80
    "mmmm....mm......"
    "..............m."  // a0
    "................"
    "..i.iii........."  // c0
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"  // e0
    "mmmmmmmmmmmmmmm.";

struct Prefixes {
    bool is_16_bits = false, has_w = false;
};

/// Bytes of modrm and displacement by modrm's value, and whether sib lies between them.
struct Operands {
    static constexpr std::uint8_t has_sib = 0x80;
    std::uint8_t of[256] = {};
    constexpr Operands() {
        for (unsigned modrm = 0; modrm < 256; ++modrm) {
            const unsigned mode = modrm >> 6, register_or_memory = modrm & 7;
            const bool has_word = mode == 2 || (mode == 0 && register_or_memory == 5);
            of[modrm] = static_cast<std::uint8_t>(1 + (has_word ? 4 : mode == 1 ? 1 : 0));
            if (mode != 3 && register_or_memory == 4) of[modrm] |= has_sib;
        }
    }
};
constexpr Operands operands;

/// Bytes of modrm, sib and displacement; 0: beyond the room.
std::size_t operand_bytes(const std::uint8_t* code, std::size_t room) noexcept {
    if (room == 0) return 0;
    std::size_t bytes = operands.of[code[0]];
    if (bytes & Operands::has_sib) {
        if (room < 2) return 0;
        bytes = (bytes ^ Operands::has_sib) + 1;
        if (code[0] < 0x40 && (code[1] & 7) == 5) bytes += 4;
    }
    return bytes <= room ? bytes : 0;
}

/// What follows the opcode, without a displacement of a branch; more than any room: decode it.
std::size_t bytes_behind(char kind, const Prefixes& prefixes, const std::uint8_t* code,
                         std::size_t room) noexcept {
    constexpr std::size_t decode = SIZE_MAX;
    const std::size_t word = prefixes.is_16_bits && !prefixes.has_w ? 2 : 4;
    switch (kind) {
        case 'n': return 0;
        case '1': return 1;
        case '2': return 2;
        case '4': return word;
        case 'w': return prefixes.has_w ? 8 : word;
        case '.': return decode;
        default: break;
    }
    const std::size_t operand = operand_bytes(code, room);
    if (operand == 0) return decode;
    const bool is_register = code[0] >= 0xc0;
    const unsigned number = code[0] >> 3 & 7;
    switch (kind) {
        case 'm': return operand;
        case 'i': return operand + 1;
        case 'z': return operand + word;
        case 'x': return is_register ? operand : decode;
        case 'g': return operand + (number < 2 ? 1 : 0);
        case 'G': return operand + (number < 2 ? word : 0);
        case '0': return number == 0 ? operand + 1 : decode;
        case 'Z': return number == 0 ? operand + word : decode;
        default: return decode;
    }
}

/// With a VEX or EVEX prefix in front, which nothing else is in front of.
QuickInstruction look_at_vector(const std::uint8_t* code, std::size_t room) noexcept {
    const bool is_short = code[0] == 0xc5, is_vex = code[0] != 0x62;
    const std::size_t opcode = is_short ? 2 : is_vex ? 3 : 4;
    if (opcode >= room) return {};
    const unsigned map = is_short ? 1 : code[1] & (is_vex ? 0x1f : 7);
    if (map == 0 || map > 3) return {};
    constexpr std::uint8_t is_evex = 4;
    if (!is_vex && (code[2] & is_evex) == 0) return {};
    const char kind = map == 1 ? vector_map[code[opcode]] : map == 2 ? 'm' : 'i';
    const std::size_t at = opcode + 1;
    const std::size_t behind = bytes_behind(kind, {}, code + at, room - at);
    if (behind > room || at + behind > room) return {};
    QuickInstruction told;
    told.is_vector = true;
    told.length = static_cast<std::uint8_t>(at + behind);
    return told;
}

}  // namespace

QuickInstruction look_quickly(const std::uint8_t* code, std::size_t room) noexcept {
    constexpr std::size_t length_max = 15;
    Prefixes prefixes;
    std::size_t at = 0;
    if (room != 0 && (code[0] == 0xc5 || code[0] == 0xc4 || code[0] == 0x62))
        return look_at_vector(code, room);
    for (; at < room; ++at) {
        if (code[at] == 0x66)
            prefixes.is_16_bits = true;
        else if (code[at] != 0xf2 && code[at] != 0xf3 && code[at] != 0x64 && code[at] != 0x65 &&
                 code[at] != 0x2e && code[at] != 0x3e)
            break;
    }
    if (at < room && (code[at] & 0xf0) == 0x40) prefixes.has_w = (code[at++] & 8) != 0;
    if (at + 1 >= room || at > 8) return {};
    const bool is_two_bytes = code[at] == 0x0f;
    if (is_two_bytes) ++at;
    const bool has_map = is_two_bytes && (code[at] == 0x38 || code[at] == 0x3a);
    const char* const kinds = is_two_bytes ? two_bytes : one_byte;
    const char kind = kinds[code[at++]];
    if (has_map && at++ >= room) return {};

    QuickInstruction told;
    std::size_t behind = 0;
    if (kind == 'b' || kind == 'B') {
        if (prefixes.is_16_bits && !prefixes.has_w) return {};
        told.is_branch = true;
        behind = kind == 'b' ? 1 : 4;
        if (at + behind > room) return {};
        if (kind == 'b') {
            told.distance = static_cast<std::int8_t>(code[at]);
        } else {
            std::memcpy(&told.distance, code + at, sizeof told.distance);
        }
    } else {
        behind = bytes_behind(kind, prefixes, code + at, room - at);
    }
    if (behind > room || at + behind > room || at + behind > length_max) return {};
    told.length = static_cast<std::uint8_t>(at + behind);
    return told;
}

}  // namespace hiroba::omp
