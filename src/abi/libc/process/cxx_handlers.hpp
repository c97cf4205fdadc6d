// SPDX-License-Identifier: BSD-3-Clause
// Role: what a program in C++ sets for its whole process: std::set_terminate() and its kin, the
// default memory resource, std::locale::global(). libstdc++ keeps them in variables of its own,
// which are private to a node.
// Invariant: the program's libstdc++ is asked by its own functions; where none is in the process,
// or it is part of the executable, there is nothing to carry. A process keeps its locale "C".
#pragma once

namespace hiroba::abi {

struct CxxHandlers {
    using Handler = void (*)();
    Handler terminate = nullptr;
    Handler unexpected = nullptr;
    Handler no_memory = nullptr;
    void* resource = nullptr;  ///< std::pmr::get_default_resource()
    void* locale = nullptr;    ///< what a default std::locale refers to
    bool operator==(const CxxHandlers&) const = default;
};

/// This node's.
CxxHandlers cxx_handlers() noexcept;
void set_cxx_handlers(const CxxHandlers& handlers) noexcept;

}  // namespace hiroba::abi
