// SPDX-License-Identifier: BSD-3-Clause
// Role: finds libc's definitions, and this library's own bounds.
#include "abi/libc/real.hpp"

#include <dlfcn.h>

#include "base/fatal.hpp"
#include "base/own_libraries.hpp"
#include "base/program_call.hpp"
#include "omp/process/system_libraries.hpp"

// Set by the linker: bounds of this library's code, and of the section HIROBA_REAL fills.
extern "C" {
[[gnu::visibility("hidden")]] extern const char __ehdr_start;
[[gnu::visibility("hidden")]] extern const char etext;
[[gnu::visibility("hidden")]] extern const hiroba::abi::Real<void()> __start_hiroba_real[];
[[gnu::visibility("hidden")]] extern const hiroba::abi::Real<void()> __stop_hiroba_real[];
}

namespace hiroba::abi {

void* find_real_if_any(const char* name, Definition definition) noexcept {
    void* const of_libc = definition == Definition::of_libc ? omp::find_in_libc(name) : nullptr;
    void* const found = of_libc != nullptr ? of_libc : dlsym(RTLD_NEXT, name);
    // It was our question: the program's next dlerror() is not to answer it.
    if (found == nullptr)
        if (void* const error = dlsym(RTLD_NEXT, "dlerror"); error != nullptr)
            reinterpret_cast<char* (*)()>(error)();
    return found;
}

void* find_real(const char* name, Definition definition) noexcept {
    void* const address = find_real_if_any(name, definition);
    if (address == nullptr) die(exit_environment, "libc has no function %s", name);
    return address;
}

void resolve_real_functions() noexcept {
    // All Real have one layout, whatever their type.
    for (const auto* real = __start_hiroba_real; real != __stop_hiroba_real; ++real)
        real->look_up();
}

bool is_own_code(const void* return_address) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(&__ehdr_start);
    const auto end = reinterpret_cast<std::uintptr_t>(&etext);
    const auto address = reinterpret_cast<std::uintptr_t>(return_address);
    if (address - begin < end - begin) return !is_program_call(return_address);
    return is_own_library_code(address);
}

}  // namespace hiroba::abi
