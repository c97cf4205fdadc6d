// SPDX-License-Identifier: BSD-3-Clause
// Role: handlers of C++ that a program sets for its whole process: std::set_terminate() and its
// kin. libstdc++ keeps them in variables of its own, which are private to a node.
// Invariant: the program's libstdc++ is asked by its own functions, which take no lock; where none
// is in the process, or it is part of the executable, there is nothing to carry.
#pragma once

namespace hiroba::abi {

struct CxxHandlers {
    using Handler = void (*)();
    Handler terminate = nullptr;
    Handler unexpected = nullptr;
    Handler no_memory = nullptr;
    bool operator==(const CxxHandlers&) const = default;
};

/// This node's.
CxxHandlers cxx_handlers() noexcept;
void set_cxx_handlers(const CxxHandlers& handlers) noexcept;

}  // namespace hiroba::abi
