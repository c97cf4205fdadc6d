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

/// What a letter says, for a sweep that looks up one byte.
struct Kind {
    std::uint8_t behind = 0;  ///< bytes, without what modrm needs; a word counts as four
    bool has_modrm = false;
    bool has_word = false;  ///< two bytes of it are left out with 16 bits
    bool is_branch = false;
    bool is_rare = false;  ///< more is to be known: look at the letter
    char letter = '.';
};

constexpr Kind kind_of(char letter) {
    switch (letter) {
        case 'n': return {.letter = letter};
        case '1': return {.behind = 1, .letter = letter};
        case '2': return {.behind = 2, .letter = letter};
        case '4': return {.behind = 4, .has_word = true, .letter = letter};
        case 'm': return {.has_modrm = true, .letter = letter};
        case 'i': return {.behind = 1, .has_modrm = true, .letter = letter};
        case 'z': return {.behind = 4, .has_modrm = true, .has_word = true, .letter = letter};
        case 'b': return {.behind = 1, .is_branch = true, .letter = letter};
        case 'B': return {.behind = 4, .is_branch = true, .letter = letter};
        default: return {.is_rare = true, .letter = letter};
    }
}

struct Kinds {
    Kind of[256];
    constexpr explicit Kinds(const char* letters) {
        for (unsigned i = 0; i < 256; ++i) of[i] = kind_of(letters[i]);
    }
};
constexpr Kinds one_byte_kinds{one_byte}, two_byte_kinds{two_bytes}, vector_kinds{vector_map};
constexpr Kind modrm_alone = kind_of('m'), modrm_and_byte = kind_of('i');

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

constexpr std::size_t length_max = 15, bytes_read = 24;

/// Bytes of modrm, sib and displacement.
std::size_t operand_bytes(const std::uint8_t* code) noexcept {
    const std::size_t bytes = operands.of[code[0]];
    if (!(bytes & Operands::has_sib)) return bytes;
    const bool has_word = code[0] < 0x40 && (code[1] & 7) == 5;
    return (bytes ^ Operands::has_sib) + 1 + (has_word ? 4 : 0);
}

/// What follows the opcode where the letter has to be looked at; more than any length: decode it.
std::size_t rare_bytes_behind(char letter, std::size_t word, bool has_w,
                              const std::uint8_t* code) noexcept {
    constexpr std::size_t decode = length_max + 1;
    const bool is_register = code[0] >= 0xc0;
    const unsigned number = code[0] >> 3 & 7;
    switch (letter) {
        case 'w': return has_w ? 8 : word;
        case 'x': return is_register ? operand_bytes(code) : decode;
        case 'g': return operand_bytes(code) + (number < 2 ? 1 : 0);
        case 'G': return operand_bytes(code) + (number < 2 ? word : 0);
        case '0': return number == 0 ? operand_bytes(code) + 1 : decode;
        case 'Z': return number == 0 ? operand_bytes(code) + word : decode;
        default: return decode;
    }
}

/// With a VEX or EVEX prefix in front, which nothing else is in front of.
QuickInstruction look_at_vector(const std::uint8_t* code) noexcept {
    const bool is_short = code[0] == 0xc5, is_vex = code[0] != 0x62;
    const std::size_t opcode = is_short ? 2 : is_vex ? 3 : 4;
    const unsigned map = is_short ? 1 : code[1] & (is_vex ? 0x1f : 7);
    if (map == 0 || map > 3) return {};
    constexpr std::uint8_t is_evex = 4;
    if (!is_vex && (code[2] & is_evex) == 0) return {};
    const Kind kind = map == 1   ? vector_kinds.of[code[opcode]]
                      : map == 2 ? modrm_alone
                                 : modrm_and_byte;
    if (kind.is_rare) return {};
    std::size_t at = opcode + 1 + kind.behind;
    if (kind.has_modrm) at += operand_bytes(code + opcode + 1);
    QuickInstruction told;
    told.is_vector = true;
    told.length = static_cast<std::uint8_t>(at <= length_max ? at : 0);
    return told;
}

bool is_prefix(std::uint8_t byte) noexcept {
    return byte == 0x66 || byte == 0xf2 || byte == 0xf3 || byte == 0x64 || byte == 0x65 ||
           byte == 0x2e || byte == 0x3e;
}

/// @param code  bytes_read of them
QuickInstruction look(const std::uint8_t* code) noexcept {
    bool is_16_bits = false, has_w = false;
    std::size_t at = 0;
    for (; is_prefix(code[at]); ++at) {
        is_16_bits |= code[at] == 0x66;
        if (at == 8) return {};
    }
    if ((code[at] & 0xf0) == 0x40) has_w = (code[at++] & 8) != 0;
    const Kind* kinds = one_byte_kinds.of;
    if (code[at] == 0x0f) {
        kinds = two_byte_kinds.of;
        ++at;
    }
    const Kind kind = kinds[code[at]];
    if (kinds == two_byte_kinds.of && (code[at] == 0x38 || code[at] == 0x3a)) ++at;
    ++at;

    QuickInstruction told;
    const bool short_word = is_16_bits && !has_w;
    if (kind.is_branch) {
        if (short_word) return {};
        told.is_branch = true;
        if (kind.behind == 1)
            told.distance = static_cast<std::int8_t>(code[at]);
        else
            std::memcpy(&told.distance, code + at, sizeof told.distance);
    }
    std::size_t length = at + kind.behind - (kind.has_word && short_word ? 2 : 0);
    if (kind.has_modrm) length += operand_bytes(code + at);
    if (kind.is_rare)
        length = at + rare_bytes_behind(kind.letter, short_word ? 2 : 4, has_w, code + at);
    if (length > length_max) return {};
    told.length = static_cast<std::uint8_t>(length);
    return told;
}

QuickInstruction look_at_any(const std::uint8_t* code) noexcept {
    const bool is_vector = code[0] == 0xc5 || code[0] == 0xc4 || code[0] == 0x62;
    return is_vector ? look_at_vector(code) : look(code);
}

}  // namespace

QuickInstruction look_quickly(const std::uint8_t* code, std::size_t room) noexcept {
    if (room >= bytes_read) return look_at_any(code);
    std::uint8_t padded[bytes_read] = {};
    std::memcpy(padded, code, room);
    const QuickInstruction told = look_at_any(padded);
    return told.length <= room ? told : QuickInstruction{};
}

}  // namespace hiroba::omp
