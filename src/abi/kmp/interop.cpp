// SPDX-License-Identifier: BSD-3-Clause
// Role: interop objects, of which there are none, and what OpenMP 5.1 and later add for device
// memory where the only device is the host; names of memory spaces as variables. Invariant: a
// property of no object is none, with the code that says so. A copy that may be deferred is not: it
// waits for what its task would wait for.
#include <cerrno>
#include <cstring>

#include "abi/gomp/depend_objects.hpp"
#include "abi/kmp/kmp.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;

namespace {

constexpr int host = 0;
constexpr int code_empty = -1;  ///< omp_irc_empty
constexpr const char* no_text = nullptr;

template <class T>
T none(int* code) noexcept {
    if (code != nullptr) *code = code_empty;
    return T{};
}

}  // namespace

extern "C" {

int omp_get_num_interop_properties(const void*) { return 0; }
std::intptr_t omp_get_interop_int(const void*, int, int* code) { return none<std::intptr_t>(code); }
void* omp_get_interop_ptr(const void*, int, int* code) { return none<void*>(code); }
const char* omp_get_interop_str(const void*, int, int* code) { return none<const char*>(code); }
const char* omp_get_interop_name(const void*, int) { return no_text; }
const char* omp_get_interop_type_desc(const void*, int) { return no_text; }
const char* omp_get_interop_rc_desc(const void*, int) { return no_text; }
int omp_get_num_interop_properties_(const void*) { return 0; }
std::intptr_t omp_get_interop_int_(const void*, const int*, int* code) {
    return none<std::intptr_t>(code);
}
void* omp_get_interop_ptr_(const void*, const int*, int* code) { return none<void*>(code); }
const char* omp_get_interop_str_(const void*, const int*, int* code) {
    return none<const char*>(code);
}
const char* omp_get_interop_name_(const void*, const int*) { return no_text; }
const char* omp_get_interop_type_desc_(const void*, const int*) { return no_text; }
const char* omp_get_interop_rc_desc_(const void*, const int*) { return no_text; }

void* omp_target_memset(void* at, int value, std::size_t bytes, int device) {
    return device == host && at != nullptr ? std::memset(at, value, bytes) : at;
}
void* omp_target_memset_async(void* at, int value, std::size_t bytes, int device, int count,
                              void** objects) {
    wait_for_objects(count, objects);
    return omp_target_memset(at, value, bytes, device);
}

// As omp.h of compilers without enumerations of that size declares them.
#define HIROBA_HANDLE(name, value) extern const std::uintptr_t name = value;
HIROBA_HANDLE(omp_null_allocator, 0)
HIROBA_HANDLE(omp_default_mem_alloc, 1)
HIROBA_HANDLE(omp_large_cap_mem_alloc, 2)
HIROBA_HANDLE(omp_const_mem_alloc, 3)
HIROBA_HANDLE(omp_high_bw_mem_alloc, 4)
HIROBA_HANDLE(omp_low_lat_mem_alloc, 5)
HIROBA_HANDLE(omp_cgroup_mem_alloc, 6)
HIROBA_HANDLE(omp_pteam_mem_alloc, 7)
HIROBA_HANDLE(omp_thread_mem_alloc, 8)
HIROBA_HANDLE(omp_default_mem_space, 0)
HIROBA_HANDLE(omp_large_cap_mem_space, 1)
HIROBA_HANDLE(omp_const_mem_space, 2)
HIROBA_HANDLE(omp_high_bw_mem_space, 3)
HIROBA_HANDLE(omp_low_lat_mem_space, 4)

}  // extern "C"
