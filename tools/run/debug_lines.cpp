// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/debug_lines.hpp"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
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

/// Whether it is a header of the compiler or the system, where nobody looks for his own mistakes.
bool is_of_system(const char* file) {
    const std::string_view path{file == nullptr ? "" : file};
    return path.starts_with("/usr/include/") || path.starts_with("/usr/lib/") ||
           path.find("/include/c++/") != path.npos;
}

struct Scopes {
    Dwarf_Die* first = nullptr;
    int count = 0;
    Scopes() = default;
    Scopes(const Scopes&) = delete;
    Scopes& operator=(const Scopes&) = delete;
    ~Scopes() { std::free(first); }
};

/// The innermost call at `address`, of a function that was inlined there, in a file of the
/// program.
std::optional<std::string> call_in_program(Dwarf* file, Dwarf_Die* unit, std::uint64_t address) {
    Scopes lexical, inlined;
    lexical.count = ::dwarf_getscopes(unit, address, &lexical.first);
    if (lexical.count <= 0) return std::nullopt;
    // Those that surround it in the code; the others surround the text of what was inlined.
    Dwarf_Die innermost;
    if (::dwarf_offdie(file, ::dwarf_dieoffset(&lexical.first[0]), &innermost) == nullptr)
        return std::nullopt;
    inlined.count = ::dwarf_getscopes_die(&innermost, &inlined.first);
    Dwarf_Files* sources = nullptr;
    if (::dwarf_getsrcfiles(unit, &sources, nullptr) != 0) return std::nullopt;
    for (int at = 0; at < inlined.count; ++at) {
        Dwarf_Die* const scope = &inlined.first[at];
        if (::dwarf_tag(scope) != DW_TAG_inlined_subroutine) continue;
        Dwarf_Attribute attribute;
        Dwarf_Word source = 0, line = 0;
        if (::dwarf_formudata(::dwarf_attr(scope, DW_AT_call_file, &attribute), &source) != 0 ||
            ::dwarf_formudata(::dwarf_attr(scope, DW_AT_call_line, &attribute), &line) != 0)
            continue;
        const char* const name = ::dwarf_filesrc(sources, source, nullptr, nullptr);
        if (!is_of_system(name)) return place(name, static_cast<int>(line));
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::string> line_of_code(const std::string& path, std::uint64_t address) {
    const DebugFile file(path);
    Dwarf_Die unit;
    if (file.get() == nullptr || !find_unit(file.get(), address, &unit)) return std::nullopt;
    Dwarf_Line* const line = ::dwarf_getsrc_die(&unit, address);
    int number = 0;
    if (line == nullptr || ::dwarf_lineno(line, &number) != 0) return std::nullopt;
    const char* const source = ::dwarf_linesrc(line, nullptr, nullptr);
    if (is_of_system(source))
        if (auto call = call_in_program(file.get(), &unit, address)) return call;
    return place(source, number);
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
