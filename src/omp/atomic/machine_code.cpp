// SPDX-License-Identifier: BSD-3-Clause
// Role: x86-64 encodings (Intel SDM volume 2, chapter 2). Invariant: see the header.
#include "omp/atomic/machine_code.hpp"

#include <string.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace hiroba::omp {
namespace {

const std::uint8_t* code_at(const CodeSite& site) {
    return reinterpret_cast<const std::uint8_t*>(site.address);
}

}  // namespace

void MachineCode::bytes(std::initializer_list<std::uint8_t> code) {
    std::memcpy(at_, code.begin(), code.size());
    at_ += code.size();
}

void MachineCode::number(std::uint64_t value, std::size_t count) {
    std::memcpy(at_, &value, count);
    at_ += count;
}

void MachineCode::relative(std::uintptr_t target, std::size_t behind) {
    const auto distance = static_cast<std::int64_t>(target - (address() + 4 + behind));
    if (distance != static_cast<std::int32_t>(distance)) reaches_ = false;
    number(static_cast<std::uint64_t>(distance), 4);
}

void MachineCode::jump(std::uintptr_t target) {
    bytes({0xe9});
    relative(target);
}

void MachineCode::jump_far(std::uintptr_t target) {
    bytes({0xff, 0x25, 0, 0, 0, 0});  // jmp [rip + 0]
    number(target, 8);
}

std::byte* MachineCode::jump_later(std::uint8_t condition) {
    if (condition != 0xe9) bytes({0x0f});
    bytes({condition});
    number(0, 4);
    return at_;
}

void MachineCode::land(std::byte* jump) {
    const auto distance = static_cast<std::int32_t>(at_ - jump);
    std::memcpy(jump - 4, &distance, 4);
}

void MachineCode::load_constant(std::uintptr_t value) {
    bytes({0x48, 0xbe});
    number(value, 8);
}

void MachineCode::compare_constant(const std::uint64_t* constant) {
    bytes({0x48, 0x3b, 0x3d});
    relative(reinterpret_cast<std::uintptr_t>(constant));
}

void MachineCode::add_constant(const std::uint64_t* constant) {
    bytes({0x48, 0x03, 0x3d});
    relative(reinterpret_cast<std::uintptr_t>(constant));
}

void MachineCode::call_constant(const std::uint64_t* constant) {
    bytes({0xff, 0x15});
    relative(reinterpret_cast<std::uintptr_t>(constant));
}

/// Writes modrm, sib and displacement with another register field and, for an operand on the
/// stack, a displacement that makes up for what was pushed. Not for Addressing::instruction.
void MachineCode::operand(const CodeSite& site, std::uint8_t register_field, std::int32_t pushed) {
    const std::uint8_t* code = code_at(site);
    const auto field = static_cast<std::uint8_t>(register_field << 3);
    const std::uint8_t modrm = code[site.modrm_offset];
    if (site.addressing == Addressing::stack) {
        constexpr std::uint8_t long_displacement = 0x80;
        bytes({static_cast<std::uint8_t>(long_displacement | field | (modrm & 7)),
               code[site.modrm_offset + 1]});
        number(static_cast<std::uint32_t>(site.displacement + pushed), 4);
        return;
    }
    bytes({static_cast<std::uint8_t>((modrm & 0xc7) | field)});
    const std::size_t rest = site.operand_end - site.modrm_offset - 1u;
    std::memcpy(at_, code + site.modrm_offset + 1, rest);
    at_ += rest;
}

void MachineCode::load_address(const CodeSite& site, std::int32_t pushed) {
    constexpr std::uint8_t rdi = 7;
    if (site.addressing == Addressing::instruction) {
        bytes({0x48, 0x8d, 0x3d});
        relative(site.address + site.length + static_cast<std::intptr_t>(site.displacement));
        return;
    }
    if (site.short_addresses) bytes({0x67});
    bytes({static_cast<std::uint8_t>(0x48 | (site.rex & 3)), 0x8d});
    operand(site, rdi, pushed);
}

void MachineCode::add_bit_offset(const CodeSite& site, std::uint8_t rax_at, std::uint8_t rdi_at,
                                 std::uint8_t rsi_at) {
    const auto source = static_cast<std::uint8_t>(site.bit_register);
    constexpr std::uint8_t rax = 0, rsi = 6, rdi = 7;
    // mov rsi, source
    if (source == rax || source == rsi || source == rdi) {
        bytes({0x48, 0x8b, 0x74, 0x24, source == rax ? rax_at : source == rsi ? rsi_at : rdi_at});
    } else {
        bytes({static_cast<std::uint8_t>(source >= 8 ? 0x4c : 0x48), 0x89,
               static_cast<std::uint8_t>(0xc6 | (source & 7) << 3)});
    }
    if (site.operand_bytes == 4) bytes({0x48, 0x63, 0xf6});        // movsxd rsi, esi
    if (site.operand_bytes == 2) bytes({0x48, 0x0f, 0xbf, 0xf6});  // movsx rsi, si

    const std::uint8_t log_bytes = site.operand_bytes == 8 ? 3 : site.operand_bytes == 4 ? 2 : 1;
    bytes({0x48, 0xc1, 0xfe, static_cast<std::uint8_t>(log_bytes + 3)});  // sar rsi, n
    bytes({0x48, 0x8d, 0x3c, static_cast<std::uint8_t>(log_bytes << 6 | rsi << 3 | rdi)});  // lea
}

void MachineCode::copy(const CodeSite& site, std::int32_t pushed) {
    const std::uint8_t* code = code_at(site);
    if (site.kind == SiteKind::flush) {
        std::memcpy(at_, code, site.length);
        at_ += site.length;
        return;
    }
    const std::size_t tail = site.length - std::size_t{site.operand_end};
    std::memcpy(at_, code, site.modrm_offset);
    at_ += site.modrm_offset;
    if (site.addressing == Addressing::instruction) {
        bytes({code[site.modrm_offset]});
        relative(site.address + site.length + static_cast<std::intptr_t>(site.displacement), tail);
    } else {
        const std::uint8_t field = (code[site.modrm_offset] >> 3) & 7;
        if (pushed == 0) {
            std::memcpy(at_, code + site.modrm_offset, site.operand_end - site.modrm_offset);
            at_ += site.operand_end - site.modrm_offset;
        } else {
            operand(site, field, pushed);
        }
    }
    std::memcpy(at_, code + site.operand_end, tail);
    at_ += tail;
}

Result<void> make_executable(const char* what, void* memory, std::size_t bytes) {
    if (mprotect(memory, bytes, PROT_READ | PROT_EXEC) == 0) return {};
    return Error{ErrorKind::environment,
                 std::string("cannot make ") + what +
                     " executable (does SELinux forbid execmem?): " + strerror(errno)};
}

}  // namespace hiroba::omp
