// SPDX-License-Identifier: BSD-3-Clause
// Role: the table of code ranges, and what an object is says about its allocations.
// Invariant: the table is sorted and does not change once learn_callers() has returned.
#include "abi/libc/memory/malloc_callers.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "abi/libc/real.hpp"
#include "base/program_call.hpp"
#include "omp/process/system_libraries.hpp"

namespace hiroba::abi {
namespace {

struct CodeRange {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    Caller caller = Caller::program;
};

constexpr std::size_t ranges_max = 512;
constinit CodeRange ranges[ranges_max];
constinit std::size_t range_count = 0;

/// The code of an allocatable array lies in them: their own state is a node's.
constexpr std::string_view language_runtimes[] = {"libgfortran", "libflang", "libFortranRuntime",
                                                  "libFortranDecimal"};

template <std::size_t count>
bool contains(const std::string_view (&names)[count], std::string_view stem) {
    return std::ranges::find(names, stem) != std::end(names);
}

Caller caller_in(std::string_view path, std::uintptr_t bias, std::uintptr_t dynamic) noexcept {
    if (!omp::is_system_library(path, bias, dynamic)) return Caller::program;
    const std::string_view file = path.substr(path.rfind('/') + 1);
    const std::string_view stem = file.substr(0, file.find(".so"));
    if (contains(language_runtimes, stem)) return Caller::language_runtime;
    return omp::has_code_of_program_objects(path) ? Caller::program : Caller::system;
}

int add_object(dl_phdr_info* info, std::size_t, void*) {
    std::uintptr_t dynamic = 0;
    for (int i = 0; i < info->dlpi_phnum; ++i)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    const Caller caller =
        caller_in(info->dlpi_name != nullptr ? info->dlpi_name : "", info->dlpi_addr, dynamic);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = info->dlpi_phdr[i];
        if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
        if (range_count == ranges_max) return 1;  // the loader is asked about the rest
        const std::uintptr_t begin = info->dlpi_addr + header.p_vaddr;
        ranges[range_count++] = {begin, begin + header.p_memsz, caller};
    }
    return 0;
}

Caller ask_loader(const void* address) noexcept {
    dl_find_object found;
    if (_dl_find_object(const_cast<void*>(address), &found) != 0) return Caller::program;
    const link_map& object = *found.dlfo_link_map;
    return caller_in(object.l_name, object.l_addr, reinterpret_cast<std::uintptr_t>(object.l_ld));
}

}  // namespace

void learn_callers() noexcept {
    dl_iterate_phdr(&add_object, nullptr);
    std::sort(ranges, ranges + range_count,
              [](const CodeRange& a, const CodeRange& b) { return a.begin < b.begin; });
}

Caller caller_of(const void* return_address) noexcept {
    if (is_own_code(return_address)) return Caller::system;
    if (is_program_call(return_address)) return Caller::program;
    const auto address = reinterpret_cast<std::uintptr_t>(return_address);
    const CodeRange* const behind =
        std::upper_bound(ranges, ranges + range_count, address,
                         [](std::uintptr_t a, const CodeRange& range) { return a < range.begin; });
    if (behind != ranges && address < (behind - 1)->end) return (behind - 1)->caller;
    return ask_loader(return_address);
}

}  // namespace hiroba::abi
