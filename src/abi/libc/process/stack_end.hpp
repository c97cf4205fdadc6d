// SPDX-License-Identifier: BSD-3-Clause
// Role: what `__libc_stack_end` says, by which a program (R, conservative collectors) knows where
// its stack ends. main's lies in global memory and not where the kernel has put one.
// Invariant: the loader makes the stack executable at which its own variable points: while it opens
// a library, that is the kernel's.
#pragma once

#include <cstdint>

namespace hiroba::abi {

/// Before the program's bytes become global: libc's variable, or the program's copy of it.
void show_stack_end(std::uintptr_t end) noexcept;

/// While one exists, the loader finds the kernel's stack.
class StackOfLoader {
public:
    StackOfLoader() noexcept;
    ~StackOfLoader();
    StackOfLoader(const StackOfLoader&) = delete;
    StackOfLoader& operator=(const StackOfLoader&) = delete;
};

}  // namespace hiroba::abi
