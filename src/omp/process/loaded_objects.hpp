// SPDX-License-Identifier: BSD-3-Clause
// Role: what the dynamic loader has put into this process: the program, its libraries, the
// system's. Which of their bytes become global memory is decided here and nowhere else. Invariant:
// the order is the loader's, so it is the same on nodes that loaded the same objects.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dsm/memory/address_map.hpp"

namespace hiroba::omp {

/// The linker's name for exactly one build of an object; `bytes` is 0 where it wrote none.
struct BuildId {
    std::array<std::uint8_t, 20> value{};
    std::uint8_t bytes = 0;
    bool operator==(const BuildId&) const = default;
};

/// Lower-case hexadecimal digits, or "none".
std::string to_text(const BuildId& id);

/// One executable or shared library.
struct LoadedObject {
    enum class Kind : std::uint8_t {
        program,        ///< the executable
        user_library,   ///< its state belongs to the program: shared
        system_library  ///< its state belongs to the process: private to each node
    };
    std::string path;
    std::uintptr_t bias = 0;  ///< what the loader added to the addresses in the file
    Kind kind = Kind::program;
    BuildId build_id;
    std::vector<dsm::AddressRange> writable;    ///< load segments minus RELRO, whole pages
    std::vector<dsm::AddressRange> executable;  ///< load segments, exact bounds
    std::uintptr_t dynamic = 0;                 ///< its dynamic section; 0: none
    std::uintptr_t end = 0;                     ///< of its highest load segment, whole pages
    std::size_t alignment = page_bytes;         ///< the largest that a load segment wishes for
    bool executable_stack = true;               ///< it keeps code there, or does not say
    std::size_t tls_module = 0;  ///< its number among those with thread-local storage; 0: none

    bool is_global() const { return kind != Kind::system_library; }
};

/// Everything loaded now, the kernel's own object (vdso) excepted. The program comes first.
std::vector<LoadedObject> loaded_objects();

/// The whole pages of a writable segment that the loader does not make read-only after start-up.
/// @param relro  exact bounds of PT_GNU_RELRO; empty when there is none
std::vector<dsm::AddressRange> writable_parts(dsm::AddressRange segment, dsm::AddressRange relro);

}  // namespace hiroba::omp
