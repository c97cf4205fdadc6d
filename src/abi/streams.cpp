// SPDX-License-Identifier: BSD-3-Clause
// Role: prepares and flushes streams of three languages. libstdc++ and libgfortran are those of the
// program, found by name; our own libstdc++ is hidden and has no streams.
// Invariant: on several nodes std::cout and its kind go through stdio, whatever the program asks
// sync_with_stdio() for: a buffer of their own would hold what other nodes have to see written, or
// what they have to read. The stream objects may lie in global memory (g++ copies std::cout into
// the executable); their buffers lie in libstdc++, one set per node at equal addresses, and are
// constructed on all of them here.
#include "abi/streams.hpp"

#include <dlfcn.h>
#include <stdio_ext.h>

#include <atomic>

#include "abi/libc/files/fortran_units.hpp"
#include "abi/libc/files/whole_output.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"

// libc exports them and declares them nowhere: the list of its streams.
extern "C" {
extern FILE* _IO_list_all;
void _IO_list_lock() noexcept;
void _IO_list_unlock() noexcept;
}

HIROBA_REAL(__fpending);

extern "C" bool hiroba_sync_with_stdio(bool) __asm__("_ZNSt8ios_base15sync_with_stdioEb");

namespace hiroba::abi {
namespace {

/// libgfortran's subroutine FLUSH; a null unit means all.
using FlushFortran = void(int* unit);
constinit FlushFortran* flush_fortran = nullptr;

template <class T>
T* find_in_program(const char* name) noexcept {
    return reinterpret_cast<T*>(dlsym(RTLD_DEFAULT, name));
}

[[gnu::section("hiroba_real"), gnu::used]] constinit Real real_sync_with_stdio(
    &hiroba_sync_with_stdio, "_ZNSt8ios_base15sync_with_stdioEb", Definition::next);

/// Constructs std::cout and its kind: g++ leaves it to the program's initializers, which run on
/// node 0 alone.
void construct_cxx_streams() noexcept {
    alignas(16) static constinit char initializer[16] = {};
    if (auto* const construct = find_in_program<void(void*)>("_ZNSt8ios_base4InitC1Ev")) {
        construct(initializer);
    }
}

/// libgfortran waits for every unit, those too that this thread has locked, or another one that
/// reads what may never come: then unit 6 alone is flushed, which all nodes share.
void flush_units() noexcept {
    const UnitsHere here = units_of_this_thread();
    int output = 6;
    if (here.locked == 0 && !is_read_under_way()) {
        flush_fortran(nullptr);
    } else if (here.locked_output == 0) {
        flush_fortran(&output);
    }
}

}  // namespace

void prepare_streams(std::uint32_t nodes) noexcept {
    if (nodes == 1) return;
    prepare_whole_output();
    flush_fortran = reinterpret_cast<FlushFortran*>(find_real_if_any("_gfortran_flush_i4"));
    construct_cxx_streams();
}

void flush_streams() noexcept {
    if (flush_fortran != nullptr) flush_units();
    flush_output();
}

void flush_stdio_at_end() noexcept {
    _IO_list_lock();
    for (FILE* stream = _IO_list_all; stream != nullptr; stream = stream->_chain)
        if (real___fpending(stream) > 0) write_out_at_end(stream);
    _IO_list_unlock();
}

void flush_output() noexcept { write_out_standard_output(); }

}  // namespace hiroba::abi

#pragma GCC visibility push(default)

/// std::ios_base::sync_with_stdio() of libstdc++: on several nodes only what it returns changes.
bool hiroba_sync_with_stdio(bool synchronized) {
    using namespace hiroba::abi;
    if (!is_one_of_several()) return real_sync_with_stdio(synchronized);
    static constinit std::atomic<bool> now{true};
    return now.exchange(synchronized);
}
#pragma GCC visibility pop
