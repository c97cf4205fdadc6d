// SPDX-License-Identifier: BSD-3-Clause
// Role: program headers and symbols by libelf.
#include "tools/run/elf_file.hpp"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <span>
#include <utility>

namespace hiroba::tools {

std::optional<ElfFile> ElfFile::open(const std::string& path) {
    if (::elf_version(EV_CURRENT) == EV_NONE) return std::nullopt;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return std::nullopt;
    Elf* const elf = ::elf_begin(fd, ELF_C_READ, nullptr);
    GElf_Ehdr header{};
    if (!elf || ::elf_kind(elf) != ELF_K_ELF || !::gelf_getehdr(elf, &header)) {
        if (elf) ::elf_end(elf);
        ::close(fd);
        return std::nullopt;
    }
    return ElfFile(fd, elf, header);
}

ElfFile::ElfFile(ElfFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      elf_(std::exchange(other.elf_, nullptr)),
      header_(other.header_) {}

ElfFile::~ElfFile() {
    if (elf_) ::elf_end(elf_);
    if (fd_ >= 0) ::close(fd_);
}

std::vector<GElf_Phdr> ElfFile::segments() const {
    std::vector<GElf_Phdr> all;
    std::size_t count = 0;
    if (::elf_getphdrnum(elf_, &count) != 0) return all;
    for (std::size_t i = 0; i < count; ++i) {
        GElf_Phdr segment{};
        if (::gelf_getphdr(elf_, static_cast<int>(i), &segment)) all.push_back(segment);
    }
    return all;
}

bool ElfFile::has_segment(std::uint32_t type) const {
    for (const GElf_Phdr& segment : segments())
        if (segment.p_type == type) return true;
    return false;
}

std::string ElfFile::build_id() const {
    const void* id = nullptr;
    const ssize_t bytes = ::dwelf_elf_gnu_build_id(elf_, &id);
    if (bytes <= 0) return "none";
    const std::span digits(static_cast<const unsigned char*>(id), static_cast<std::size_t>(bytes));
    std::string text;
    for (const unsigned char byte : digits) text += fmt::format("{:02x}", byte);
    return text;
}

bool ElfFile::needs_library(std::string_view prefix) const {
    Elf_Scn* section = nullptr;
    while ((section = ::elf_nextscn(elf_, section)) != nullptr) {
        GElf_Shdr shape{};
        if (!::gelf_getshdr(section, &shape) || shape.sh_type != SHT_DYNAMIC) continue;
        Elf_Data* const data = ::elf_getdata(section, nullptr);
        GElf_Dyn entry{};
        for (int i = 0; data && ::gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; ++i) {
            if (entry.d_tag != DT_NEEDED) continue;
            const char* const name = ::elf_strptr(elf_, shape.sh_link, entry.d_un.d_val);
            if (name && std::string_view(name).starts_with(prefix)) return true;
        }
    }
    return false;
}

std::string ElfFile::section(std::string_view name) const {
    std::size_t names = 0;
    if (::elf_getshdrstrndx(elf_, &names) != 0) return {};
    Elf_Scn* each = nullptr;
    while ((each = ::elf_nextscn(elf_, each)) != nullptr) {
        GElf_Shdr shape{};
        if (!::gelf_getshdr(each, &shape)) continue;
        const char* const its_name = ::elf_strptr(elf_, names, shape.sh_name);
        if (!its_name || name != its_name) continue;
        const Elf_Data* const data = ::elf_getdata(each, nullptr);
        if (!data || !data->d_buf) return {};
        return {static_cast<const char*>(data->d_buf), data->d_size};
    }
    return {};
}

std::vector<NeededVersion> ElfFile::needed_versions() const {
    const std::string needed = section(".gnu.version_r"), names = section(".dynstr");
    const auto name_at = [&](std::size_t at) {
        return at < names.size() ? std::string(names.c_str() + at) : std::string();
    };
    std::vector<NeededVersion> found;
    GElf_Verneed of{};
    for (std::size_t at = 0; at + sizeof of <= needed.size();) {
        std::memcpy(&of, needed.data() + at, sizeof of);
        GElf_Vernaux each{};
        std::size_t inner = at + of.vn_aux;
        for (unsigned i = 0; i < of.vn_cnt && inner + sizeof each <= needed.size(); ++i) {
            std::memcpy(&each, needed.data() + inner, sizeof each);
            if ((each.vna_flags & VER_FLG_WEAK) == 0)
                found.push_back({name_at(of.vn_file), name_at(each.vna_name)});
            inner += each.vna_next;
        }
        if (of.vn_next == 0) break;
        at += of.vn_next;
    }
    return found;
}

std::vector<std::string> ElfFile::defined_versions() const {
    const std::string defined = section(".gnu.version_d"), names = section(".dynstr");
    std::vector<std::string> found;
    GElf_Verdef of{};
    for (std::size_t at = 0; at + sizeof of <= defined.size();) {
        std::memcpy(&of, defined.data() + at, sizeof of);
        GElf_Verdaux first{};  // the name; parents follow
        if (at + of.vd_aux + sizeof first > defined.size()) break;
        std::memcpy(&first, defined.data() + at + of.vd_aux, sizeof first);
        if (first.vda_name < names.size()) found.emplace_back(names.c_str() + first.vda_name);
        if (of.vd_next == 0) break;
        at += of.vd_next;
    }
    return found;
}

void ElfFile::each_symbol(const std::function<bool(const ElfSymbol&)>& visit) const {
    Elf_Scn* section = nullptr;
    while ((section = ::elf_nextscn(elf_, section)) != nullptr) {
        GElf_Shdr shape{};
        if (!::gelf_getshdr(section, &shape)) continue;
        if (shape.sh_type != SHT_SYMTAB && shape.sh_type != SHT_DYNSYM) continue;
        if (!each_in(section, shape, visit)) return;
    }
}

bool ElfFile::each_in(Elf_Scn* section, const GElf_Shdr& shape,
                      const std::function<bool(const ElfSymbol&)>& visit) const {
    Elf_Data* const data = ::elf_getdata(section, nullptr);
    if (!data || shape.sh_entsize == 0) return true;
    const std::size_t count = shape.sh_size / shape.sh_entsize;
    for (std::size_t i = 0; i < count; ++i) {
        GElf_Sym symbol{};
        if (!::gelf_getsym(data, static_cast<int>(i), &symbol)) break;
        const char* const name = ::elf_strptr(elf_, shape.sh_link, symbol.st_name);
        if (!name || *name == '\0') continue;
        const int type = GELF_ST_TYPE(symbol.st_info);
        const bool is_data = type == STT_OBJECT || type == STT_COMMON;
        if (!visit({name, symbol.st_value, symbol.st_size, symbol.st_shndx != SHN_UNDEF, is_data,
                    type == STT_FUNC, GELF_ST_BIND(symbol.st_info) == STB_WEAK}))
            return false;
    }
    return true;
}

}  // namespace hiroba::tools
