// SPDX-License-Identifier: BSD-3-Clause
// Role: which variable of the program an address belongs to.
// Invariant: works from the files a process has mapped, not from the mapping that holds the
// address: the runtime maps its own memory over the program's data.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/thread_context.hpp"

namespace hiroba::tools {

/// One ELF file in a process's memory.
struct LoadedFile {
    std::string path;
    std::uint64_t base = 0;  ///< where its first byte is mapped
};

/// Files that `maps`, such as /proc/PID/maps, has mapped from their first byte.
std::vector<LoadedFile> files_in(const std::string& maps);
/// Files mapped from their first byte, read from /proc/<pid>/maps; empty when the process is gone.
std::vector<LoadedFile> loaded_files(pid_t pid);

/// "count+8 in a.out, main.c:7" (the line where there is debug information), or "a.out+0x4010" when
/// the file has no such symbol; empty when the address lies in none of the files.
std::optional<std::string> name_address(const std::vector<LoadedFile>& files,
                                        std::uint64_t address);

/// Code and how people write it: "main.c:12 (work)", "work+20 in a.out" or "a.out+0x1139".
struct CodeName {
    std::string object;  ///< the file's name, without folders
    std::string text;
    bool has_line = false;
    std::string line{}, function{};  ///< "main.c:12" and "work"; empty: unknown
};
std::optional<CodeName> find_code(const std::vector<LoadedFile>& files, std::uint64_t address);
/// Its text.
std::optional<std::string> name_code(const std::vector<LoadedFile>& files, std::uint64_t address);

/// A variable of the program, where it lies in memory.
struct DataSymbol {
    std::uint64_t address = 0, bytes = 0, linked = 0;  ///< linked: as in the file
    std::string name, path;
};
/// All that have a name, by address.
std::vector<DataSymbol> data_symbols(const std::vector<LoadedFile>& files);

/// "barrier at main.c:12 (work)"; an address that no file holds is given as a number.
std::string name_place(const std::vector<LoadedFile>& files, const SyncPlace& place);

/// Names addresses of one running process, and remembers what it has mapped.
class AddressNames {
public:
    explicit AddressNames(pid_t process) : process_(process) {}
    /// "count+8 in a.out, main.c:3", or that the address lies in no variable.
    std::string name(std::uint64_t address);
    /// As name_code().
    std::optional<std::string> code(std::uint64_t address) { return name_code(files(), address); }
    /// As name_place().
    std::string place(const SyncPlace& place) { return name_place(files(), place); }
    /// What the process has mapped; looked up once, while it lives.
    const std::vector<LoadedFile>& files();

private:
    pid_t process_;
    std::vector<LoadedFile> files_;
};

}  // namespace hiroba::tools
