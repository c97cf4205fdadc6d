// SPDX-License-Identifier: BSD-3-Clause
// Role: one ELF file, opened for its program headers and its symbols (libelf).
// Invariant: an object of this class holds an open, valid ELF file; file and descriptor close
// with it.
#pragma once

#include <gelf.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hiroba::tools {

struct ElfSymbol {
    const char* name;  ///< lives as long as the file
    std::uint64_t address;
    std::uint64_t bytes;
    bool is_defined;
    bool is_data;      ///< a variable of the image: not code, not thread-local
    bool is_function;  ///< code
    bool is_weak;
};

/// Names of a library under a version node, without which the loader refuses the file.
struct NeededVersion {
    std::string library, node;
};

class ElfFile {
public:
    /// Empty when `path` is no readable ELF file.
    static std::optional<ElfFile> open(const std::string& path);
    ElfFile(ElfFile&& other) noexcept;
    ElfFile& operator=(ElfFile&&) = delete;
    ~ElfFile();

    const GElf_Ehdr& header() const { return header_; }
    std::vector<GElf_Phdr> segments() const;
    bool has_segment(std::uint32_t type) const;
    /// The build id as hexadecimal digits; "none" when the linker wrote none.
    std::string build_id() const;
    /// True when it is linked with a library whose name starts with `prefix`.
    bool needs_library(std::string_view prefix) const;
    /// The bytes of a section; empty when there is none of that name.
    std::string section(std::string_view name) const;
    std::vector<NeededVersion> needed_versions() const;
    std::vector<std::string> defined_versions() const;
    /// Calls `visit` for each symbol of .symtab and .dynsym until it returns false.
    void each_symbol(const std::function<bool(const ElfSymbol&)>& visit) const;

private:
    ElfFile(int fd, Elf* elf, const GElf_Ehdr& header) : fd_(fd), elf_(elf), header_(header) {}
    bool each_in(Elf_Scn* section, const GElf_Shdr& shape,
                 const std::function<bool(const ElfSymbol&)>& visit) const;
    int fd_;
    Elf* elf_;
    GElf_Ehdr header_;
};

}  // namespace hiroba::tools
