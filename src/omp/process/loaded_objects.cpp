// SPDX-License-Identifier: BSD-3-Clause
// Role: reads the program headers of everything loaded.
// Invariant: state of a library that the runtime itself stands on is never global: a lock of libc
// in shared pages would need the runtime to take it, and the runtime needs libc.
#include "omp/process/loaded_objects.hpp"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <span>

#include "base/bytes.hpp"
#include "omp/process/system_libraries.hpp"

namespace hiroba::omp {
namespace {

using dsm::AddressRange;

/// Finds NT_GNU_BUILD_ID in one note segment.
BuildId find_build_id(std::uintptr_t notes, std::size_t bytes) {
    BuildId id;
    std::size_t at = 0;
    while (at + sizeof(ElfW(Nhdr)) <= bytes) {
        const auto* const note = reinterpret_cast<const ElfW(Nhdr)*>(notes + at);
        const std::size_t name_at = at + sizeof *note;
        const std::size_t value_at = name_at + round_up(note->n_namesz, 4);
        const std::size_t next = value_at + round_up(note->n_descsz, 4);
        if (next > bytes) break;
        const bool gnu = note->n_namesz == 4 &&
                         std::memcmp(reinterpret_cast<const void*>(notes + name_at), "GNU", 4) == 0;
        if (gnu && note->n_type == NT_GNU_BUILD_ID) {
            id.bytes =
                static_cast<std::uint8_t>(std::min<std::size_t>(note->n_descsz, id.value.size()));
            std::memcpy(id.value.data(), reinterpret_cast<const void*>(notes + value_at), id.bytes);
            break;
        }
        at = next;
    }
    return id;
}

std::string program_path() {
    char path[PATH_MAX];
    const ssize_t bytes = readlink("/proc/self/exe", path, sizeof path);
    return bytes > 0 ? std::string(path, static_cast<std::size_t>(bytes)) : std::string("program");
}

AddressRange range_of(const dl_phdr_info& info, const ElfW(Phdr) & header) {
    return {info.dlpi_addr + header.p_vaddr, header.p_memsz};
}

LoadedObject describe(const dl_phdr_info& info, bool program) {
    LoadedObject object;
    object.path = program ? program_path() : std::string(info.dlpi_name);
    object.bias = info.dlpi_addr;
    object.tls_module = info.dlpi_tls_modid;

    for (const auto& header : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
        if (header.p_type == PT_DYNAMIC) object.dynamic = range_of(info, header).address;
        if (header.p_type == PT_GNU_STACK) object.executable_stack = (header.p_flags & PF_X) != 0;
    }
    object.kind = program ? LoadedObject::Kind::program
                  : is_system_library(object.path, object.bias, object.dynamic)
                      ? LoadedObject::Kind::system_library
                      : LoadedObject::Kind::user_library;

    AddressRange relro;
    for (const auto& header : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
        if (header.p_type == PT_GNU_RELRO) relro = range_of(info, header);
    }
    for (const auto& header : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
        const AddressRange range = range_of(info, header);
        if (header.p_type == PT_NOTE && object.build_id.bytes == 0) {
            object.build_id = find_build_id(range.address, range.bytes);
        }
        if (header.p_type != PT_LOAD || range.bytes == 0) continue;
        object.end = std::max<std::uintptr_t>(object.end, round_up(range.end(), page_bytes));
        object.alignment = std::max<std::size_t>(object.alignment, header.p_align);
        if ((header.p_flags & PF_X) != 0) object.executable.push_back(range);
        if ((header.p_flags & PF_W) != 0) {
            for (const AddressRange& part : writable_parts(range, relro)) {
                object.writable.push_back(part);
            }
        }
    }
    return object;
}

int collect_object(dl_phdr_info* info, std::size_t, void* objects_at) {
    auto& objects = *static_cast<std::vector<LoadedObject>*>(objects_at);
    const bool program = objects.empty();
    const std::string_view name = info->dlpi_name != nullptr ? info->dlpi_name : "";
    if (!program && (name.empty() || name.starts_with("linux-vdso"))) return 0;
    objects.push_back(describe(*info, program));
    return 0;
}

}  // namespace

std::string to_text(const BuildId& id) {
    if (id.bytes == 0) return "none";
    static constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t byte : std::span(id.value).first(id.bytes)) {
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

std::vector<LoadedObject> loaded_objects() {
    std::vector<LoadedObject> objects;
    dl_iterate_phdr(&collect_object, &objects);
    return objects;
}

std::vector<AddressRange> writable_parts(AddressRange segment, AddressRange relro) {
    const std::uintptr_t begin = round_down(segment.address, page_bytes);
    const std::uintptr_t end = round_up(segment.end(), page_bytes);
    // The loader protects whole pages only: it rounds both bounds of RELRO down.
    const std::uintptr_t relro_begin =
        std::clamp(round_down(relro.address, page_bytes), begin, end);
    const std::uintptr_t relro_end = std::clamp(round_down(relro.end(), page_bytes), begin, end);

    std::vector<AddressRange> parts;
    if (relro.bytes == 0 || relro_begin >= relro_end) {
        parts.push_back({begin, end - begin});
        return parts;
    }
    if (begin < relro_begin) parts.push_back({begin, relro_begin - begin});
    if (relro_end < end) parts.push_back({relro_end, end - relro_end});
    return parts;
}

}  // namespace hiroba::omp
