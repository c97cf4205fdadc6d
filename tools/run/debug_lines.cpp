// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/debug_lines.hpp"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <string_view>

namespace hiroba::tools {

namespace {

/// One file's debug information, open as long as this lives.
class DebugFile {
public:
    explicit DebugFile(const std::string& path)
        : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)),
          dwarf_(fd_ < 0 ? nullptr : ::dwarf_begin(fd_, DWARF_C_READ)) {}
    DebugFile(const DebugFile&) = delete;
    DebugFile& operator=(const DebugFile&) = delete;
    ~DebugFile() {
        if (dwarf_ != nullptr) ::dwarf_end(dwarf_);
        if (fd_ >= 0) ::close(fd_);
    }
    Dwarf* get() const { return dwarf_; }

private:
    int fd_;
    Dwarf* dwarf_;
};

std::optional<std::string> place(const char* file, int line) {
    if (file == nullptr || line <= 0) return std::nullopt;
    const std::string_view path{file};
    return fmt::format("{}:{}", path.substr(path.rfind('/') + 1), line);
}

/// Whether `die` is a variable that lies at `address` for good.
bool lies_at(Dwarf_Die* die, std::uint64_t address) {
    if (::dwarf_tag(die) != DW_TAG_variable) return false;
    Dwarf_Attribute attribute;
    Dwarf_Op* operations = nullptr;
    std::size_t count = 0;
    return ::dwarf_attr(die, DW_AT_location, &attribute) != nullptr &&
           ::dwarf_getlocation(&attribute, &operations, &count) == 0 && count == 1 &&
           operations[0].atom == DW_OP_addr && operations[0].number == address;
}

/// Static variables of functions lie inside them, so the whole tree is searched.
std::optional<std::string> search(Dwarf_Die* parent, std::uint64_t address) {
    Dwarf_Die die;
    if (::dwarf_child(parent, &die) != 0) return std::nullopt;
    do {
        if (lies_at(&die, address)) {
            // A definition may leave name and line to its declaration.
            Dwarf_Attribute attribute;
            Dwarf_Word line = 0;
            const char* const file = ::dwarf_decl_file(&die);
            if (::dwarf_attr_integrate(&die, DW_AT_decl_line, &attribute) != nullptr &&
                ::dwarf_formudata(&attribute, &line) == 0)
                return place(file, static_cast<int>(line));
        }
        if (auto found = search(&die, address)) return found;
    } while (::dwarf_siblingof(&die, &die) == 0);
    return std::nullopt;
}

/// The unit that holds the code at `address`. clang leaves out the index that leads there at once.
bool find_unit(Dwarf* file, std::uint64_t address, Dwarf_Die* found) {
    if (::dwarf_addrdie(file, address, found) != nullptr) return true;
    Dwarf_CU* unit = nullptr;
    while (::dwarf_get_units(file, unit, &unit, nullptr, nullptr, found, nullptr) == 0)
        if (::dwarf_haspc(found, address) == 1) return true;
    return false;
}

}  // namespace

std::optional<std::string> line_of_code(const std::string& path, std::uint64_t address) {
    const DebugFile file(path);
    Dwarf_Die unit;
    if (file.get() == nullptr || !find_unit(file.get(), address, &unit)) return std::nullopt;
    Dwarf_Line* const line = ::dwarf_getsrc_die(&unit, address);
    int number = 0;
    if (line == nullptr || ::dwarf_lineno(line, &number) != 0) return std::nullopt;
    return place(::dwarf_linesrc(line, nullptr, nullptr), number);
}

std::optional<std::string> line_of_variable(const std::string& path, std::uint64_t address) {
    const DebugFile file(path);
    if (file.get() == nullptr) return std::nullopt;
    Dwarf_CU* unit = nullptr;
    Dwarf_Die die;
    while (::dwarf_get_units(file.get(), unit, &unit, nullptr, nullptr, &die, nullptr) == 0) {
        if (auto found = search(&die, address)) return found;
    }
    return std::nullopt;
}

}  // namespace hiroba::tools
