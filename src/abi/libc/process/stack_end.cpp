// SPDX-License-Identifier: BSD-3-Clause
// Role: writes the variable. Invariant: see the header; the loader has made its page read-only.
#include "abi/libc/process/stack_end.hpp"

#include <dlfcn.h>
#include <sys/mman.h>

#include "abi/libc/real.hpp"
#include "base/bytes.hpp"
#include "base/fatal.hpp"
#include "dsm/memory/kernel_calls.hpp"

/// The program's copy where it has one, which the loader does not look at.
extern "C" void* __libc_stack_end;

namespace hiroba::abi {
namespace {

/// The variable points at the topmost words of the stack, not past them: R takes the mapping in
/// which it lies for the stack's.
constexpr std::uintptr_t below_end = 64;

constinit void* of_kernel = nullptr;
constinit void* of_main = nullptr;
constinit bool is_loaders = false;

void write(void* end) noexcept {
    const std::uintptr_t page =
        round_down(reinterpret_cast<std::uintptr_t>(&__libc_stack_end), page_bytes);
    if (dsm::kernel_call(SYS_mprotect, page, page_bytes, PROT_READ | PROT_WRITE) != 0)
        fatal("cannot write __libc_stack_end at %p", static_cast<void*>(&__libc_stack_end));
    __libc_stack_end = end;
    if (is_loaders) dsm::kernel_call(SYS_mprotect, page, page_bytes, PROT_READ);
}

}  // namespace

void show_stack_end(std::uintptr_t end) noexcept {
    of_kernel = __libc_stack_end;
    of_main = reinterpret_cast<void*>(end - below_end);
    is_loaders = dlsym(RTLD_NEXT, "__libc_stack_end") == &__libc_stack_end;
    write(of_main);
}

StackOfLoader::StackOfLoader() noexcept {
    if (is_loaders && of_kernel != nullptr) write(of_kernel);
}

StackOfLoader::~StackOfLoader() {
    if (is_loaders && of_kernel != nullptr) write(of_main);
}

}  // namespace hiroba::abi
