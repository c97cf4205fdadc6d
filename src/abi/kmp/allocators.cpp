// SPDX-License-Identifier: BSD-3-Clause
// Role: allocate clauses, and the objects of depend clauses, which clang's code allocates itself.
// Invariant: each is omp_alloc and its kin by another name.
#include "abi/gomp/marked_blocks.hpp"
#include "abi/kmp/kmp.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi::kmp;
using Handle = std::uintptr_t;

extern "C" {

void* omp_alloc(std::size_t bytes, Handle allocator);
void* omp_aligned_alloc(std::size_t alignment, std::size_t bytes, Handle allocator);
void* omp_calloc(std::size_t count, std::size_t bytes, Handle allocator);
void* omp_realloc(void* block, std::size_t bytes, Handle allocator, Handle old_allocator);
void omp_free(void* block, Handle allocator);
Handle omp_init_allocator(Handle space, int traits, const void* list);
void omp_destroy_allocator(Handle allocator);
void omp_set_default_allocator(Handle allocator);
Handle omp_get_default_allocator();

// The allocate directive's memory, and a depend object's.
void* __kmpc_alloc(int, std::size_t bytes, Handle allocator) {
    void* const block = omp_alloc(bytes, allocator);
    hiroba::abi::mark_block(block, hiroba::abi::BlockMark::by_clangs_code);
    return block;
}
void* __kmpc_aligned_alloc(int, std::size_t alignment, std::size_t bytes, Handle allocator) {
    return omp_aligned_alloc(alignment, bytes, allocator);
}
void* __kmpc_calloc(int, std::size_t count, std::size_t bytes, Handle allocator) {
    return omp_calloc(count, bytes, allocator);
}
void* __kmpc_realloc(int, void* block, std::size_t bytes, Handle allocator, Handle old_allocator) {
    return omp_realloc(block, bytes, allocator, old_allocator);
}
void __kmpc_free(int, void* block, Handle allocator) { omp_free(block, allocator); }
Handle __kmpc_init_allocator(int, Handle space, int traits, const void* list) {
    return omp_init_allocator(space, traits, list);
}
void __kmpc_destroy_allocator(int, Handle allocator) { omp_destroy_allocator(allocator); }
void __kmpc_set_default_allocator(int, Handle allocator) { omp_set_default_allocator(allocator); }
Handle __kmpc_get_default_allocator(int) { return omp_get_default_allocator(); }

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
