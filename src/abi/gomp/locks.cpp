// SPDX-License-Identifier: BSD-3-Clause
// Role: omp_*_lock and omp_*_nest_lock, for C and Fortran.
// Invariant: a lock is known by its address. Its first 4 bytes, zeroed when it is made, are the
// lock itself on one node and are not looked at on several. Fortran passes the variable that is the
// lock, so both agree, except that its nestable lock is an 8-byte variable that stands for one:
// only its address is used.
#include <cstdint>

#include "abi/gomp/runtime.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;

namespace {

std::uint64_t key_of(void* lock) noexcept { return reinterpret_cast<std::uintptr_t>(lock); }

void initialize(void* lock) noexcept { *static_cast<std::uint32_t*>(lock) = 0; }

}  // namespace

extern "C" {

void omp_init_lock(void* lock) {
    note_caller();
    initialize(lock);
    tell_tool(ToolReport::lock_made, key_of(lock));
}
void omp_destroy_lock(void* lock) {
    note_caller();
    tell_tool(ToolReport::lock_gone, key_of(lock));
    runtime().forget_lock(key_of(lock));
}
void omp_set_lock(void* lock) {
    note_caller();
    synchronizes_at(SyncKind::lock, __builtin_return_address(0));
    runtime().lock(key_of(lock));
}
void omp_unset_lock(void* lock) {
    note_caller();
    synchronizes_at(SyncKind::lock, __builtin_return_address(0));
    runtime().unlock(key_of(lock));
}
int omp_test_lock(void* lock) {
    note_caller();
    return runtime().try_lock(key_of(lock));
}

void omp_init_nest_lock(void* lock) {
    note_caller();
    initialize(lock);
    tell_tool(ToolReport::nested_lock_made, key_of(lock));
}
void omp_destroy_nest_lock(void* lock) {
    note_caller();
    tell_tool(ToolReport::nested_lock_gone, key_of(lock));
    runtime().forget_lock(key_of(lock));
}
void omp_set_nest_lock(void* lock) {
    note_caller();
    synchronizes_at(SyncKind::lock, __builtin_return_address(0));
    runtime().lock_nested(key_of(lock));
}
void omp_unset_nest_lock(void* lock) {
    note_caller();
    synchronizes_at(SyncKind::lock, __builtin_return_address(0));
    runtime().unlock_nested(key_of(lock));
}
int omp_test_nest_lock(void* lock) {
    note_caller();
    return static_cast<int>(runtime().try_lock_nested(key_of(lock)));
}

void omp_init_lock_(void* lock) { omp_init_lock(lock); }
void omp_destroy_lock_(void* lock) { omp_destroy_lock(lock); }
void omp_set_lock_(void* lock) { omp_set_lock(lock); }
void omp_unset_lock_(void* lock) { omp_unset_lock(lock); }
int omp_test_lock_(void* lock) { return omp_test_lock(lock); }

void omp_init_nest_lock_(void* lock) { omp_init_nest_lock(lock); }
void omp_destroy_nest_lock_(void* lock) { omp_destroy_nest_lock(lock); }
void omp_set_nest_lock_(void* lock) { omp_set_nest_lock(lock); }
void omp_unset_nest_lock_(void* lock) { omp_unset_nest_lock(lock); }
int omp_test_nest_lock_(void* lock) { return omp_test_nest_lock(lock); }

}  // extern "C"
