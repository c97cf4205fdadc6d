// SPDX-License-Identifier: BSD-3-Clause
// Role: /proc/<pid>/maps and symbol tables put together.
#include "tools/run/symbol.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "tools/run/elf_file.hpp"

namespace hiroba::tools {

namespace {

std::string readable(const std::string& name) {
    int failed = 0;
    const std::unique_ptr<char, void (*)(void*)> plain(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &failed), std::free);
    return failed == 0 && plain ? std::string(plain.get()) : name;
}

/// The data symbol at or just below `address` (as linked); empty when none covers it.
std::string symbol_at(const ElfFile& file, std::uint64_t address) {
    std::string best;
    std::uint64_t best_bytes = ~std::uint64_t{0};
    std::uint64_t best_start = 0;
    file.each_symbol([&](const ElfSymbol& symbol) {
        const bool covers = symbol.is_defined && symbol.is_data &&
                            address - symbol.address < std::max<std::uint64_t>(symbol.bytes, 1);
        if (covers && symbol.bytes < best_bytes) {
            best = symbol.name;
            best_bytes = symbol.bytes;
            best_start = symbol.address;
        }
        return true;
    });
    if (best.empty()) return best;
    const std::uint64_t offset = address - best_start;
    return offset == 0 ? readable(best) : fmt::format("{}+{}", readable(best), offset);
}

}  // namespace

std::vector<LoadedFile> loaded_files(pid_t pid) {
    std::ifstream maps(fmt::format("/proc/{}/maps", pid));
    std::vector<LoadedFile> files;
    for (std::string line; std::getline(maps, line);) {
        std::istringstream fields(line);
        std::string range, permissions, offset, device, inode, path;
        fields >> range >> permissions >> offset >> device >> inode;
        std::getline(fields >> std::ws, path);
        if (!path.starts_with('/') || offset.find_first_not_of('0') != std::string::npos) continue;
        const auto known = [&](const LoadedFile& file) { return file.path == path; };
        if (std::ranges::none_of(files, known))
            files.push_back({path, std::strtoull(range.c_str(), nullptr, 16)});
    }
    return files;
}

std::optional<std::string> name_address(const std::vector<LoadedFile>& files,
                                        std::uint64_t address) {
    for (const LoadedFile& loaded : files) {
        if (address < loaded.base) continue;
        const auto file = ElfFile::open(loaded.path);
        if (!file) continue;
        std::optional<std::uint64_t> bias;
        for (const GElf_Phdr& segment : file->segments()) {
            if (segment.p_type != PT_LOAD) continue;
            // The first load segment holds the file's first byte, which lies at `base`.
            if (!bias) bias = loaded.base - (segment.p_vaddr - segment.p_offset);
            const std::uint64_t linked = address - *bias;
            if (linked - segment.p_vaddr >= segment.p_memsz) continue;
            const std::string object = loaded.path.substr(loaded.path.rfind('/') + 1);
            const std::string symbol = symbol_at(*file, linked);
            return symbol.empty() ? fmt::format("{}+{:#x}", object, linked)
                                  : fmt::format("{} in {}", symbol, object);
        }
    }
    return std::nullopt;
}

std::string AddressNames::name(std::uint64_t address) {
    auto name = name_address(files_, address);
    if (!name) {
        // Read again: the program may have loaded a library since. A process that has ended
        // shows nothing; then what was known stays.
        auto now = loaded_files(process_);
        if (!now.empty()) files_ = std::move(now);
        name = name_address(files_, address);
    }
    return name.value_or("in no variable: heap or stack");
}

}  // namespace hiroba::tools
