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
// x  modrm of a register           y  modrm of memory
// g  modrm, with a byte where its number is 0 or 1 (test)     G  the same with a word
// 0  modrm and one byte, number 0  Z  modrm and a word, number 0
// h  modrm, number 0 or 1          H  modrm, number 0, 1, 2, 4 or 6
constexpr char one_byte[] =
    "mmmm14..mmmm14.."  // 00
    "mmmm14..mmmm14.."
    "mmmm14..mmmm14.."
    "mmmm14..mmmm14.."
    "................"  // 40: REX
    "nnnnnnnnnnnnnnnn"
    "...m....4z1innnn"  // 60
    "bbbbbbbbbbbbbbbb"
    "iz.immxxmmmm.y.."  // 80
    "nnnnnnnnnn.nnnnn"
    "....nnnn14nnnnnn"  // a0
    "11111111wwwwwwww"
    "ii2n..0Z.n2nn1.n"  // c0
    "mmmm...ny.y.y.yy"
    "bbbb1111BB.bnnnn"  // e0
    "....nngGnnnnnnhH";
constexpr char two_bytes[] =
    ".....n.....n...."  // 00
    "........y....mmm"
    "........mm.....m"  // 20
    ".n.............."
    "mmmmmmmmmmmmmmmm"  // 40
    ".m..mmmmmm..mmmm"
    "..............mm"  // 60
    "i.............mm"
    "BBBBBBBBBBBBBBBB"  // 80
    "mmmmmmmmmmmmmmmm"
    "..nmim.....mim.m"  // a0
    "mm.m..mm...mmmmm"
    "mmi...i.nnnnnnnn"  // c0
    "....m..........m"
    "...............m"  // e0
    "..............m.";

struct Prefixes {
    bool is_16_bits = false, has_w = false, repeats = false;
};

/// Whether a two-byte opcode has a meaning with 0xf2 or 0xf3 in front: those of scalar numbers.
bool may_repeat(std::uint8_t opcode) noexcept {
    return opcode == 0x51 || (opcode >= 0x58 && opcode <= 0x5f && opcode != 0x5b);
}

/// Bytes of modrm, sib and displacement; 0: beyond the room.
std::size_t operand_bytes(const std::uint8_t* code, std::size_t room) noexcept {
    if (room == 0) return 0;
    const unsigned mode = code[0] >> 6, register_or_memory = code[0] & 7;
    std::size_t bytes = 1;
    bool has_word = mode == 2 || (mode == 0 && register_or_memory == 5);
    if (mode != 3 && register_or_memory == 4) {
        if (room < 2) return 0;
        ++bytes;
        has_word |= mode == 0 && (code[1] & 7) == 5;
    }
    bytes += has_word ? 4 : mode == 1 ? 1 : 0;
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
        case 'y': return is_register ? decode : operand;
        case 'g': return operand + (number < 2 ? 1 : 0);
        case 'G': return operand + (number < 2 ? word : 0);
        case '0': return number == 0 ? operand + 1 : decode;
        case 'Z': return number == 0 ? operand + word : decode;
        case 'h': return number < 2 ? operand : decode;
        case 'H': return number < 3 || number == 4 || number == 6 ? operand : decode;
        default: return decode;
    }
}

}  // namespace

QuickInstruction look_quickly(const std::uint8_t* code, std::size_t room) noexcept {
    Prefixes prefixes;
    std::size_t at = 0;
    for (; at < room; ++at) {
        if (code[at] == 0x66)
            prefixes.is_16_bits = true;
        else if (code[at] == 0xf2 || code[at] == 0xf3)
            prefixes.repeats = true;
        else if (code[at] != 0x64 && code[at] != 0x65 && code[at] != 0x2e && code[at] != 0x3e)
            break;
    }
    if (at < room && (code[at] & 0xf0) == 0x40) prefixes.has_w = (code[at++] & 8) != 0;
    if (at + 1 >= room || at > 8) return {};
    const bool is_two_bytes = code[at] == 0x0f;
    if (is_two_bytes) ++at;
    if (is_two_bytes && prefixes.repeats && !may_repeat(code[at])) return {};
    const char* const kinds = is_two_bytes ? two_bytes : one_byte;
    const char kind = kinds[code[at++]];

    QuickInstruction told;
    std::size_t behind = 0;
    if (kind == 'b' || kind == 'B') {
        if (prefixes.is_16_bits || prefixes.has_w) return {};
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
    constexpr std::size_t length_max = 15;
    if (behind > room || at + behind > room || at + behind > length_max) return {};
    told.length = static_cast<std::uint8_t>(at + behind);
    return told;
}

}  // namespace hiroba::omp
