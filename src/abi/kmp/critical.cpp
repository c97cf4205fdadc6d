// SPDX-License-Identifier: BSD-3-Clause
// Role: critical sections, locks by their internal names, and reductions of regions and loops.
// Invariant: as in gomp/locks.cpp a lock is known by its address. A reduction is one critical
// section after the other: in each, a thread adds what is its own and what others of its node have
// handed over.
#include "abi/kmp/kmp.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using namespace hiroba::abi::kmp;

extern "C" {

void omp_init_lock(void* lock);
void omp_destroy_lock(void* lock);
void omp_init_nest_lock(void* lock);
void omp_destroy_nest_lock(void* lock);

void __kmpc_critical(Location*, Int, void* name) {
    note_caller();
    runtime().withdraw_term();
    synchronizes_at(SyncKind::critical, __builtin_return_address(0));
    runtime().lock(key_of(name));
}
void __kmpc_critical_with_hint(Location*, Int, void* name, Unsigned) {
    note_caller();
    runtime().withdraw_term();
    synchronizes_at(SyncKind::critical, __builtin_return_address(0));
    runtime().lock(key_of(name));
}
void __kmpc_end_critical(Location*, Int, void* name) {
    note_caller();
    synchronizes_at(SyncKind::critical, __builtin_return_address(0));
    runtime().unlock(key_of(name));
}

// 1: the caller adds its values to the variables and ends the reduction. 0: it is over for it.
Int __kmpc_reduce(Location*, Int, Int, std::size_t, void* data, void (*combine)(void*, void*),
                  void* name) {
    note_caller();
    synchronizes_at(SyncKind::critical, __builtin_return_address(0));
    tell_tool(ToolReport::reduction_begins);
    if (runtime().reduce(key_of(name), data, combine)) return 1;
    synchronizes_at(SyncKind::barrier, __builtin_return_address(0));
    tell_tool(ToolReport::reduction_ends);
    runtime().barrier();
    return 0;
}
void __kmpc_end_reduce(Location*, Int, void* name) {
    note_caller();
    synchronizes_at(SyncKind::barrier, __builtin_return_address(0));
    if (runtime().place().team_size > 1) runtime().unlock(key_of(name));
    tell_tool(ToolReport::reduction_ends);
    runtime().barrier();
}
// 2: the caller adds its value by an atomic, which may be left to the region's join.
Int __kmpc_reduce_nowait(Location* location, Int, Int variables, std::size_t, void* data,
                         void (*combine)(void*, void*), void* name) {
    note_caller();
    synchronizes_at(SyncKind::critical, __builtin_return_address(0));
    if (variables == 1 && (location->flags & location_flag::atomic_reduce) != 0 &&
        runtime().announce_term(__builtin_return_address(0), *static_cast<void**>(data)))
        return 2;
    tell_tool(ToolReport::reduction_begins);
    if (runtime().reduce(key_of(name), data, combine)) return 1;
    tell_tool(ToolReport::reduction_ends);
    return 0;
}
void __kmpc_end_reduce_nowait(Location*, Int, void* name) {
    note_caller();
    synchronizes_at(SyncKind::critical, __builtin_return_address(0));
    if (runtime().place().team_size > 1) runtime().unlock(key_of(name));
    tell_tool(ToolReport::reduction_ends);
}

void __kmpc_init_lock(Location*, Int, void* lock) { omp_init_lock(lock); }
void __kmpc_init_lock_with_hint(Location*, Int, void* lock, std::uintptr_t) { omp_init_lock(lock); }
void __kmpc_destroy_lock(Location*, Int, void* lock) { omp_destroy_lock(lock); }
void __kmpc_set_lock(Location*, Int, void* lock) {
    note_caller();
    synchronizes_at(SyncKind::lock, __builtin_return_address(0));
    runtime().lock(key_of(lock));
}
void __kmpc_unset_lock(Location*, Int, void* lock) {
    note_caller();
    synchronizes_at(SyncKind::lock, __builtin_return_address(0));
    runtime().unlock(key_of(lock));
}
int __kmpc_test_lock(Location*, Int, void* lock) {
    note_caller();
    return runtime().try_lock(key_of(lock));
}

void __kmpc_init_nest_lock(Location*, Int, void* lock) { omp_init_nest_lock(lock); }
void __kmpc_init_nest_lock_with_hint(Location*, Int, void* lock, std::uintptr_t) {
    omp_init_nest_lock(lock);
}
void __kmpc_destroy_nest_lock(Location*, Int, void* lock) { omp_destroy_nest_lock(lock); }
void __kmpc_set_nest_lock(Location*, Int, void* lock) {
    note_caller();
    synchronizes_at(SyncKind::lock, __builtin_return_address(0));
    runtime().lock_nested(key_of(lock));
}
void __kmpc_unset_nest_lock(Location*, Int, void* lock) {
    note_caller();
    synchronizes_at(SyncKind::lock, __builtin_return_address(0));
    runtime().unlock_nested(key_of(lock));
}
int __kmpc_test_nest_lock(Location*, Int, void* lock) {
    note_caller();
    return static_cast<int>(runtime().try_lock_nested(key_of(lock)));
}

// Names of LLVM's runtime alone; a hint changes nothing.
void omp_init_lock_with_hint(void* lock, std::uintptr_t) { omp_init_lock(lock); }
void omp_init_nest_lock_with_hint(void* lock, std::uintptr_t) { omp_init_nest_lock(lock); }
void omp_init_lock_with_hint_(void* lock, const std::uintptr_t*) { omp_init_lock(lock); }
void omp_init_nest_lock_with_hint_(void* lock, const std::uintptr_t*) { omp_init_nest_lock(lock); }

}  // extern "C"
