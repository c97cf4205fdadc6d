// SPDX-License-Identifier: BSD-3-Clause
// Role: tells the system's libraries from the user's, by what they are and not by what they are
// called. Invariant: an answer for a path does not change, and allocates nothing: malloc asks.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace hiroba::omp {

/// True for the libraries whose state stays private to a node: this one and what it is linked with,
/// the loader, libc's parts beside libc.so.6, and the runtimes of languages and instrumentation,
/// wherever they lie. A user's library that merely bears one of their names is none.
/// @param path     as the loader shows it
/// @param bias     what the loader added to the addresses in the file
/// @param dynamic  its dynamic section; 0: none, then `path` alone decides
/// Thread: any; no allocation, a few system calls the first time.
bool is_system_library(std::string_view path, std::uintptr_t bias, std::uintptr_t dynamic) noexcept;

/// Whether `code` lies in such a library. Code that lies in no object does not.
/// Thread: any; as above.
bool is_system_code(const void* code) noexcept;

/// Whether a system library has the code of objects that are the program's, and lie in global
/// memory: strings, locales, exceptions. It allocates for the program, and its atomics count for
/// all nodes.
bool has_code_of_program_objects(std::string_view path) noexcept;

/// Why such a library is the system's, by its name and what proves it, but not by which objects
/// need it; nullptr: it is the user's. The object may as well be a file that was mapped for reading
/// at `bias`.
const char* why_system_library(std::string_view path, std::uintptr_t bias,
                               std::uintptr_t dynamic) noexcept;

/// Whether the object with this dynamic section defines `name` for others.
bool defines_symbol(std::uintptr_t bias, std::uintptr_t dynamic, std::string_view name) noexcept;

/// Where libc defines `name`, a function of one version, whoever else defines it, too; nullptr: it
/// does not. Thread: any; no allocation and no lock: malloc asks.
void* find_in_libc(std::string_view name) noexcept;

/// What the loader has filled in for an object.
struct Relocation {
    std::uint64_t type;  ///< R_X86_64_...
    const char* of;      ///< what it asks others for; empty: something of its own
};
/// Whether an object has a relocation, other than of its own addresses, that `wanted` says is.
bool has_relocation(std::uintptr_t bias, std::uintptr_t dynamic,
                    bool (*wanted)(const Relocation& relocation)) noexcept;

}  // namespace hiroba::omp
