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
#include <type_traits>
#include <utility>

#include "base/sync_place.hpp"
#include "tools/run/debug_lines.hpp"
#include "tools/run/elf_file.hpp"

namespace hiroba::tools {

namespace {

std::string readable(const std::string& name) {
    if (!name.starts_with("_Z")) return name;  // of C: a type's short name might be meant
    int failed = 0;
    const std::unique_ptr<char, void (*)(void*)> plain(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &failed), std::free);
    return failed == 0 && plain ? std::string(plain.get()) : name;
}

struct Found {
    std::string name;  ///< empty: nothing covers the address
    std::uint64_t start = 0;
    std::uint64_t offset = 0;
};

/// The smallest symbol of the wanted kind that covers `address` (as linked).
Found symbol_at(const ElfFile& file, std::uint64_t address, bool ElfSymbol::*kind) {
    Found best;
    std::uint64_t best_bytes = ~std::uint64_t{0};
    file.each_symbol([&](const ElfSymbol& symbol) {
        const bool covers = symbol.is_defined && symbol.*kind &&
                            address - symbol.address < std::max<std::uint64_t>(symbol.bytes, 1);
        if (covers && symbol.bytes < best_bytes) {
            best = {symbol.name, symbol.address, address - symbol.address};
            best_bytes = symbol.bytes;
        }
        return true;
    });
    return best;
}

/// Calls visit(path, file, address as linked) for the file whose segment holds `address`.
template <class Visit>
auto in_file_of(const std::vector<LoadedFile>& files, std::uint64_t address, Visit&& visit)
    -> std::optional<
        std::invoke_result_t<Visit, const std::string&, const ElfFile&, std::uint64_t>> {
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
            if (linked - segment.p_vaddr < segment.p_memsz)
                return visit(loaded.path, *file, linked);
        }
    }
    return std::nullopt;
}

std::string object_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::vector<LoadedFile> loaded_files(pid_t pid) {
    return files_in(fmt::format("/proc/{}/maps", pid));
}

std::vector<LoadedFile> files_in(const std::string& path_of_maps) {
    std::ifstream maps(path_of_maps);
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
    const auto name = [](const std::string& path, const ElfFile& file, std::uint64_t linked) {
        const Found symbol = symbol_at(file, linked, &ElfSymbol::is_data);
        if (symbol.name.empty()) return fmt::format("{}+{:#x}", object_of(path), linked);
        std::string text = readable(symbol.name);
        if (symbol.offset != 0) text += fmt::format("+{}", symbol.offset);
        text += " in " + object_of(path);
        const auto line = line_of_variable(path, symbol.start);
        return line ? text + ", " + *line : text;
    };
    return in_file_of(files, address, name);
}

std::optional<CodeName> find_code(const std::vector<LoadedFile>& files, std::uint64_t address) {
    const auto name = [](const std::string& path, const ElfFile& file, std::uint64_t linked) {
        const Found symbol = symbol_at(file, linked, &ElfSymbol::is_function);
        const auto line = line_of_code(path, linked);
        const std::string object = object_of(path), function = readable(symbol.name);
        std::string text = function.empty()
                               ? fmt::format("{}+{:#x}", object, linked)
                               : fmt::format("{}+{} in {}", function, symbol.offset, object);
        if (line) text = function.empty() ? *line : fmt::format("{} ({})", *line, function);
        return CodeName{object, text, line.has_value(), line.value_or(""), function};
    };
    return in_file_of(files, address, name);
}

std::optional<std::string> name_code(const std::vector<LoadedFile>& files, std::uint64_t address) {
    auto code = find_code(files, address);
    if (!code) return std::nullopt;
    return std::move(code->text);
}

std::vector<DataSymbol> data_symbols(const std::vector<LoadedFile>& files) {
    std::vector<DataSymbol> found;
    for (const LoadedFile& loaded : files) {
        const auto file = ElfFile::open(loaded.path);
        if (!file) continue;
        std::optional<std::uint64_t> bias;
        for (const GElf_Phdr& segment : file->segments())
            if (segment.p_type == PT_LOAD && !bias)
                bias = loaded.base - (segment.p_vaddr - segment.p_offset);
        if (!bias) continue;
        file->each_symbol([&](const ElfSymbol& symbol) {
            if (symbol.is_defined && symbol.is_data && symbol.bytes > 0)
                found.push_back({symbol.address + *bias, symbol.bytes, symbol.address,
                                 readable(symbol.name), loaded.path});
            return true;
        });
    }
    std::ranges::stable_sort(found, {}, &DataSymbol::address);
    const auto same = [](const DataSymbol& a, const DataSymbol& b) {
        return a.address == b.address;
    };
    found.erase(std::unique(found.begin(), found.end(), same), found.end());
    return found;
}

std::string name_place(const std::vector<LoadedFile>& files, const SyncPlace& place) {
    if (place.address == 0) return name_of(place.kind);
    // Not at a synchronization: in the background, and this was the last one before.
    if (place.kind == SyncKind::start)
        return name_code(files, place.address - 1).value_or(fmt::format("{:#x}", place.address));
    // A return address lies behind the call; the function of a region begins at its own.
    const std::uint64_t looked_up = place.address - (is_function(place) ? 0 : 1);
    return fmt::format("{} at {}", name_of(place.kind),
                       name_code(files, looked_up).value_or(fmt::format("{:#x}", place.address)));
}

const std::vector<LoadedFile>& AddressNames::files() {
    if (files_.empty()) files_ = loaded_files(process_);
    return files_;
}

std::string AddressNames::name(std::uint64_t address) {
    auto name = name_address(files(), address);
    if (!name) {
        // Read again: the program may have loaded a library since. A process that has ended
        // shows nothing; then what was known stays.
        auto now = loaded_files(process_);
        if (!now.empty()) files_ = std::move(now);
        name = name_address(files_, address);
    }
    return name.value_or(files_.empty() ? "of a process that has ended" : "in no variable: heap");
}

}  // namespace hiroba::tools
