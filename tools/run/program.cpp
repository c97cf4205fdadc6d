// SPDX-License-Identifier: BSD-3-Clause
// Role: the search along PATH, and the look into the ELF file.
#include "tools/run/program.hpp"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <sstream>
#include <string_view>

#include "tools/run/elf_file.hpp"

namespace hiroba::tools {

namespace {

bool is_program(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           ::access(path.c_str(), X_OK) == 0;
}

Error cannot_run(const std::string& name) {
    struct stat status {};
    if (::stat(name.c_str(), &status) != 0)
        return {errno == ENOENT ? ErrorKind::usage : ErrorKind::environment,
                fmt::format("cannot run {}: {}. Check the path of the program", name,
                            std::strerror(errno))};
    if (!S_ISREG(status.st_mode))
        return {ErrorKind::usage, fmt::format("cannot run {}: it is no regular file (mode {:o}). "
                                              "Name a program",
                                              name, status.st_mode)};
    return {ErrorKind::environment,
            fmt::format("cannot run {}: it may not be executed (mode {:o}, user {}). Set the "
                        "permission with chmod +x",
                        name, status.st_mode & 07777, ::geteuid())};
}

Error refused(const std::string& path, const std::string& why) {
    return {ErrorKind::environment, fmt::format("cannot take over {}: {}", path, why)};
}

constexpr const char* newer =
    "which this hiroba has not: it knows gcc up to 16 and clang up to 19. Build the program by one "
    "of these";

/// Whether libhiroba.so takes the place of that library.
bool stands_in_for(std::string_view library) {
    return library.starts_with("libgomp.so") || library.starts_with("libomp.so") ||
           library.starts_with("libiomp5.so");
}

/// What a file that is no ELF file begins with, for the error line.
std::string kind_of_file(const std::string& path) {
    std::array<char, 128> start{};
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : ::read(fd, start.data(), start.size());
    const int error = errno;
    if (fd >= 0) ::close(fd);
    if (got < 0) return fmt::format("it cannot be read: {}", std::strerror(error));
    const std::string_view text(start.data(), static_cast<std::size_t>(got));
    if (text.starts_with("#!"))
        return fmt::format(
            "it is a script for {}. Start the compiled program itself with "
            "`hiroba run`, for example from within the script",
            text.substr(2, text.find('\n') - 2));
    return "it is no ELF program. Name a program built for x86-64 Linux";
}

/// Why the symbols of `file` forbid a take-over, or empty.
std::string symbols_forbid(const ElfFile& file) {
    std::string why;
    file.each_symbol([&](const ElfSymbol& symbol) {
        const std::string_view name = symbol.name;
        const bool is_runtime = name == "GOMP_parallel" || name == "__kmpc_fork_call";
        if (is_runtime && symbol.is_defined && symbol.address != 0)
            why = fmt::format(
                "an OpenMP runtime is linked into it statically (it defines {}). "
                "Link it dynamically: leave out -static-libgomp and libgomp.a",
                name);
        else if (name == "__asan_init" || name == "__tsan_init" || name == "__msan_init")
            why = fmt::format(
                "it is built with a sanitizer ({}), which owns the address space. "
                "Build it without -fsanitize",
                name);
        else if (name.starts_with("__safestack_"))
            why = fmt::format(
                "its threads have a second stack each ({}), which no other node sees. "
                "Build it without -fsanitize=safe-stack",
                name);
        return why.empty();
    });
    return why;
}

/// Bits by which a file is executed as another user or group.
struct IdentityBits {
    bool are_there = false;        ///< and the kernel obeys them
    bool change_identity = false;  ///< this user's is another
    unsigned mode = 0;
};
IdentityBits identity_bits_of(const std::string& path) {
    struct stat status {};
    struct statvfs system {};
    IdentityBits bits;
    if (::stat(path.c_str(), &status) != 0 || ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        return bits;
    if (::statvfs(path.c_str(), &system) == 0 && (system.f_flag & ST_NOSUID) != 0) return bits;
    const bool user = (status.st_mode & S_ISUID) != 0;
    const bool group = (status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0;
    bits.are_there = user || group;
    bits.change_identity =
        (user && status.st_uid != ::geteuid()) || (group && status.st_gid != ::getegid());
    bits.mode = status.st_mode & 07777;
    return bits;
}

}  // namespace

Result<std::string> find_program(const std::string& name) {
    if (name.empty()) return Error{ErrorKind::usage, "the name of the program is empty"};
    if (name.find('/') != std::string::npos) {
        if (is_program(name)) return name;
        return cannot_run(name);
    }
    const char* const variable = ::getenv("PATH");
    const std::string path = variable ? variable : "/bin:/usr/bin";
    std::string found_but_closed;
    std::istringstream folders(path + ":");
    for (std::string folder; std::getline(folders, folder, ':');) {
        const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
        if (is_program(candidate)) return candidate;
        if (found_but_closed.empty() && ::access(candidate.c_str(), F_OK) == 0)
            found_but_closed = candidate;
    }
    if (!found_but_closed.empty()) return cannot_run(found_but_closed);
    return Error{
        ErrorKind::usage,
        fmt::format("no program {} in PATH={}. Give its path, as in ./{}", name, path, name)};
}

Result<void> check_can_take_over(const std::string& path) {
    const auto file = ElfFile::open(path);
    if (!file) return refused(path, kind_of_file(path));
    const GElf_Ehdr& header = file->header();
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64)
        return refused(path, fmt::format("it is built for another processor (ELF class {}, machine "
                                         "{}; wanted 2 and 62). Build it for x86-64",
                                         header.e_ident[EI_CLASS], header.e_machine));
    if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
        return refused(path, fmt::format("it is no program (ELF type {}). Link it", header.e_type));
    if (!file->has_segment(PT_INTERP))
        return refused(path,
                       "it is statically linked (no PT_INTERP), so it would run as separate "
                       "copies. Link it dynamically: leave out -static");
    if (const std::string why = symbols_forbid(*file); !why.empty()) return refused(path, why);
    if (const IdentityBits bits = identity_bits_of(path); bits.change_identity)
        return refused(path,
                       fmt::format("it is setuid or setgid (mode {:o}), so the loader ignores "
                                   "LD_PRELOAD. Run a copy without these bits",
                                   bits.mode));
    return {};
}

Result<void> check_can_be_fixed(const std::string& path) {
    if (const IdentityBits bits = identity_bits_of(path); bits.are_there)
        return refused(path, fmt::format("it is setuid or setgid (mode {:o}), so the kernel loads "
                                         "it at other addresses on each node. Run a copy without "
                                         "these bits",
                                         bits.mode));
    return {};
}

Result<void> check_names(const std::string& path, const std::string& library) {
    const auto file = ElfFile::open(path), runtime = ElfFile::open(library);
    if (!file || !runtime) return {};
    std::set<std::string, std::less<>> offered;
    runtime->each_symbol([&](const ElfSymbol& symbol) {
        if (symbol.is_defined) offered.emplace(symbol.name);
        return true;
    });
    std::string lacks;
    file->each_symbol([&](const ElfSymbol& symbol) {
        constexpr std::string_view runtimes_own[] = {"GOMP_", "GOACC_", "__kmpc_"};
        const std::string_view name = symbol.name;
        const std::string_view plain = name.substr(0, name.find('@'));
        if (!symbol.is_defined && !symbol.is_weak && !offered.contains(plain) &&
            std::ranges::any_of(runtimes_own, [&](auto own) { return plain.starts_with(own); }))
            lacks = plain;
        return lacks.empty();
    });
    if (!lacks.empty()) return refused(path, fmt::format("it asks for {}, {}", lacks, newer));
    return {};
}

Result<void> check_versions(const std::string& path, const std::string& library) {
    const auto file = ElfFile::open(path), runtime = ElfFile::open(library);
    if (!file || !runtime) return {};
    const std::vector<std::string> known = runtime->defined_versions();
    for (const NeededVersion& each : file->needed_versions())
        if (stands_in_for(each.library) && std::ranges::find(known, each.node) == known.end())
            return refused(path,
                           fmt::format("it asks for {} of {}, {}", each.node, each.library, newer));
    return {};
}

std::vector<std::string> all_refused_entry_points(const std::string& library) {
    std::vector<std::string> refused;
    const auto runtime = ElfFile::open(library);
    // Names that end in zeros, with zeros between them.
    const std::string names = runtime ? runtime->section("hiroba_refused") : "";
    for (std::size_t at = 0; at < names.size();) {
        const std::string name = names.c_str() + at;
        if (!name.empty()) refused.push_back(name);
        at += name.size() + 1;
    }
    return refused;
}

std::vector<std::string> refused_entry_points(const std::string& path, const std::string& library) {
    std::vector<std::string> found;
    const auto program = ElfFile::open(path);
    if (!program) return found;
    const auto all = all_refused_entry_points(library);
    std::set<std::string, std::less<>> refused(all.begin(), all.end());
    program->each_symbol([&](const ElfSymbol& symbol) {
        const std::string_view name = symbol.name;
        const std::string plain(name.substr(0, name.find('@')));
        if (!symbol.is_defined && refused.erase(plain) > 0) found.push_back(plain);
        return true;
    });
    return found;
}

bool calls_openmp(const std::string& path) {
    bool calls = false;
    if (const auto file = ElfFile::open(path))
        file->each_symbol([&](const ElfSymbol& symbol) {
            const std::string_view name = symbol.name;
            calls = !symbol.is_defined && (name.starts_with("GOMP_") || name.starts_with("omp_") ||
                                           name.starts_with("__kmpc_"));
            return !calls;
        });
    return calls;
}

std::string spmd_library_of(const std::string& path) {
    const auto file = ElfFile::open(path);
    for (const char* const library :
         {"libacp.so", "libhiroba_net.so", "libhiroba_gas.so", "libhiroba_dsm.so"})
        if (file && file->needs_library(library)) return library;
    return {};
}

bool calls_mpi(const std::string& path) {
    const auto file = ElfFile::open(path);
    return file && file->needs_library("libmpi");
}

bool is_acp_program(const std::string& path) {
    const auto file = ElfFile::open(path);
    return file && file->needs_library("libacp.so");
}

}  // namespace hiroba::tools
