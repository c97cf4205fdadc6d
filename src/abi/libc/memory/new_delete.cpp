// SPDX-License-Identifier: BSD-3-Clause
// Role: operator new and delete in all their forms, so that the code that says `new` is the caller
// that counts, not libstdc++, which serves this library too.
// Invariant: what happens when memory is out (new handlers, std::bad_alloc) is done by the
// program's own libstdc++: the exception types in this library are others than the program's.
#include <dlfcn.h>

#include <cstddef>
#include <new>

#include "abi/libc/memory/malloc_place.hpp"
#include "base/fatal.hpp"

#pragma GCC visibility push(default)

using namespace hiroba;

namespace {

/// Asks the program's own definition of the operator: it tries again, calls the new handler and
/// throws what the program can catch.
template <class... Arguments>
void* ask_own_definition(const char* symbol, std::size_t bytes, Arguments... arguments) {
    using Function = void*(std::size_t, Arguments...);
    auto* const own = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, symbol));
    if (own == nullptr) fatal("operator new: no memory for %lu bytes", bytes);
    return own(bytes, arguments...);
}

// Macros, for each operator must read the return address in its own frame.
#define HIROBA_NEW(made, symbol, ...) \
    void* const block = made;         \
    if (block != nullptr) [[likely]]  \
        return block;                 \
    return ask_own_definition(symbol, __VA_ARGS__)
#define HIROBA_PLAIN abi::allocate(bytes, __builtin_return_address(0))
#define HIROBA_ALIGNED \
    abi::allocate_aligned(static_cast<std::size_t>(alignment), bytes, __builtin_return_address(0))

}  // namespace

void* operator new(std::size_t bytes) { HIROBA_NEW(HIROBA_PLAIN, "_Znwm", bytes); }
void* operator new[](std::size_t bytes) { HIROBA_NEW(HIROBA_PLAIN, "_Znam", bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t& tag) noexcept {
    HIROBA_NEW(HIROBA_PLAIN, "_ZnwmRKSt9nothrow_t", bytes, &tag);
}
void* operator new[](std::size_t bytes, const std::nothrow_t& tag) noexcept {
    HIROBA_NEW(HIROBA_PLAIN, "_ZnamRKSt9nothrow_t", bytes, &tag);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    HIROBA_NEW(HIROBA_ALIGNED, "_ZnwmSt11align_val_t", bytes, alignment);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
    HIROBA_NEW(HIROBA_ALIGNED, "_ZnamSt11align_val_t", bytes, alignment);
}
void* operator new(std::size_t bytes, std::align_val_t alignment,
                   const std::nothrow_t& tag) noexcept {
    HIROBA_NEW(HIROBA_ALIGNED, "_ZnwmSt11align_val_tRKSt9nothrow_t", bytes, alignment, &tag);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment,
                     const std::nothrow_t& tag) noexcept {
    HIROBA_NEW(HIROBA_ALIGNED, "_ZnamSt11align_val_tRKSt9nothrow_t", bytes, alignment, &tag);
}

// NOLINTBEGIN: eleven names of one function.
void operator delete(void* block) noexcept { abi::release_block(block); }
void operator delete[](void* block) noexcept { abi::release_block(block); }
void operator delete(void* block, std::size_t) noexcept { abi::release_block(block); }
void operator delete[](void* block, std::size_t) noexcept { abi::release_block(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { abi::release_block(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { abi::release_block(block); }
void operator delete(void* block, std::align_val_t) noexcept { abi::release_block(block); }
void operator delete[](void* block, std::align_val_t) noexcept { abi::release_block(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
    abi::release_block(block);
}
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept {
    abi::release_block(block);
}
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept {
    abi::release_block(block);
}
void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept {
    abi::release_block(block);
}
// NOLINTEND
