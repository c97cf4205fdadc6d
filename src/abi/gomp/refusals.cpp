// SPDX-License-Identifier: BSD-3-Clause
// Role: entry points of constructs that are not built: each ends the program with one line.
// Invariant: nothing here ever returns a wrong answer; compilers' start-up registration of device
// code is accepted, since a program that never offloads runs well without it.
#include "abi/gomp/refusals.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/fatal.hpp"

#pragma GCC visibility push(default)

namespace {

int shown_length(const char* message, std::size_t length) {
    if (message == nullptr) return 0;
    return static_cast<int>(length == SIZE_MAX ? std::strlen(message) : length);
}

}  // namespace

extern "C" {

// Made by gcc before 4.9 only.
HIROBA_REFUSED(GOMP_parallel_start, "code of gcc before 4.9 is")
HIROBA_REFUSED(GOMP_parallel_end, "code of gcc before 4.9 is")
HIROBA_REFUSED(GOMP_parallel_loop_static_start, "code of gcc before 4.9 is")
HIROBA_REFUSED(GOMP_parallel_loop_dynamic_start, "code of gcc before 4.9 is")
HIROBA_REFUSED(GOMP_parallel_loop_guided_start, "code of gcc before 4.9 is")
HIROBA_REFUSED(GOMP_parallel_loop_runtime_start, "code of gcc before 4.9 is")
HIROBA_REFUSED(GOMP_parallel_sections_start, "code of gcc before 4.9 is")

void GOMP_offload_register(const void*, int, const void*) {}
void GOMP_offload_unregister(const void*, int, const void*) {}
void GOMP_offload_register_ver(unsigned, const void*, int, const void*) {}
void GOMP_offload_unregister_ver(unsigned, const void*, int, const void*) {}

// `#pragma omp error at(execution)`; a length of SIZE_MAX means a terminated string.
void GOMP_warning(const char* message, std::size_t length) {
    hiroba::say("warning: %.*s", shown_length(message, length), message);
}
void GOMP_error(const char* message, std::size_t length) {
    hiroba::die(1, "error: %.*s", shown_length(message, length), message);
}

}  // extern "C"
