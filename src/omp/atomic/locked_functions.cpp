// SPDX-License-Identifier: BSD-3-Clause
#include "omp/atomic/locked_functions.hpp"

#include <elf.h>
#include <link.h>
#include <string.h>

#include <algorithm>
#include <cstddef>
#include <span>

namespace hiroba::omp {
namespace {

struct Parts {
    std::uintptr_t bias;
    bool is_found = false;
    std::uintptr_t table = 0;
    std::vector<dsm::AddressRange> code;
};

int note_parts(dl_phdr_info* info, std::size_t, void* into) {
    auto& parts = *static_cast<Parts*>(into);
    if (info->dlpi_addr != parts.bias) return 0;
    parts.is_found = true;
    for (const ElfW(Phdr) & each : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
        const std::uintptr_t begin = parts.bias + each.p_vaddr;
        if (each.p_type == PT_GNU_EH_FRAME) parts.table = begin;
        if (each.p_type == PT_LOAD && (each.p_flags & PF_X) != 0)
            parts.code.push_back({begin, each.p_filesz});
    }
    return 1;
}

/// The head of .eh_frame_hdr as linkers write it (LSB, "Exception Frames"); rows follow: where a
/// function begins, from the head on, and its description.
struct Head {
    std::uint8_t version, pointer_encoding, count_encoding, row_encoding;
    std::int32_t descriptions;
    std::uint32_t rows;
};
struct Row {
    std::int32_t begin, description;
};
constexpr std::uint8_t four_bytes = 0x03, signed_from_head = 0x3b;

/// Whether what follows a lock prefix may be an instruction that has one.
bool may_be_locked(const std::uint8_t* code, const std::uint8_t* end) noexcept {
    constexpr std::uint8_t one_byte[] = {0x00, 0x01, 0x08, 0x09, 0x10, 0x11, 0x18, 0x19,
                                         0x20, 0x21, 0x28, 0x29, 0x30, 0x31, 0x80, 0x81,
                                         0x83, 0x86, 0x87, 0xf6, 0xf7, 0xfe, 0xff};
    constexpr std::uint8_t two_bytes[] = {0xab, 0xb0, 0xb1, 0xb3, 0xba, 0xbb, 0xc0, 0xc1, 0xc7};
    const auto is_prefix = [](std::uint8_t byte) {
        return (byte & 0xf0) == 0x40 || (byte >= 0x64 && byte <= 0x67) || byte == 0xf2 ||
               byte == 0xf3 || byte == 0x2e || byte == 0x3e;
    };
    // A locked instruction works on memory.
    const auto has_memory = [](std::uint8_t modrm) { return modrm < 0xc0; };
    while (code < end && is_prefix(*code)) ++code;
    if (code + 2 >= end) return false;
    if (*code == 0x0f)
        return std::ranges::find(two_bytes, code[1]) != std::end(two_bytes) && has_memory(code[2]);
    return std::ranges::find(one_byte, *code) != std::end(one_byte) && has_memory(code[1]);
}

/// Adds the function around `address`, unless it is the last one found.
void add_function(std::vector<dsm::AddressRange>& found, std::span<const Row> rows,
                  std::uintptr_t head, const dsm::AddressRange& code, std::uintptr_t address) {
    if (!found.empty() && found.back().contains(address)) return;
    const auto behind =
        std::ranges::upper_bound(rows, static_cast<std::int64_t>(address - head), {},
                                 [](const Row& row) { return std::int64_t{row.begin}; });
    const auto begin_of = [head](const Row& row) {
        return head + static_cast<std::uintptr_t>(std::int64_t{row.begin});
    };
    std::uintptr_t begin = code.address, end = code.end();
    if (behind != rows.begin()) begin = std::max(begin, begin_of(*(behind - 1)));
    if (behind != rows.end()) end = std::min(end, begin_of(*behind));
    found.push_back({begin, end - begin});
}

}  // namespace

std::optional<std::vector<dsm::AddressRange>> locked_functions(std::uintptr_t bias) {
    Parts parts{.bias = bias, .code = {}};
    dl_iterate_phdr(&note_parts, &parts);
    if (!parts.is_found || parts.table == 0) return std::nullopt;
    const auto& head = *reinterpret_cast<const Head*>(parts.table);
    if (head.version != 1 || head.count_encoding != four_bytes ||
        head.row_encoding != signed_from_head)
        return std::nullopt;
    const std::span rows{reinterpret_cast<const Row*>(&head + 1), head.rows};

    constexpr int lock = 0xf0;
    std::vector<dsm::AddressRange> found;
    for (const dsm::AddressRange& code : parts.code) {
        const auto* at = reinterpret_cast<const std::uint8_t*>(code.address);
        const auto* const end = at + code.bytes;
        while ((at = static_cast<const std::uint8_t*>(
                    memchr(at, lock, static_cast<std::size_t>(end - at)))) != nullptr) {
            if (may_be_locked(++at, end))
                add_function(found, rows, parts.table, code, reinterpret_cast<std::uintptr_t>(at));
        }
    }
    return found;
}

}  // namespace hiroba::omp
