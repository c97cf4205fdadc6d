// SPDX-License-Identifier: BSD-3-Clause
// Role: regions, sections, single, barriers and mutual exclusion.
// Invariant: an entry converts and calls.
#include "abi/gomp/loop_entry.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using hiroba::omp::Cancel;
using hiroba::omp::OutlinedFunction;
using hiroba::omp::Schedule;

namespace {

unsigned next_section() noexcept {
    unsigned long long first = 0, end = 0;
    return next_chunk(&first, &end) ? static_cast<unsigned>(first) : 0;
}

/// One of gcc's four bits.
Cancel cancel_of(int which) noexcept {
    switch (which) {
        case 1: return Cancel::parallel;
        case 2: return Cancel::loop;
        case 4: return Cancel::sections;
        default: return Cancel::taskgroup;
    }
}

std::uint64_t key_of(void** critical_name) noexcept {
    return reinterpret_cast<std::uintptr_t>(critical_name);
}

}  // namespace

extern "C" {

void GOMP_parallel(OutlinedFunction function, void* data, unsigned threads, unsigned flags) {
    note_caller();
    read_flags(flags);
    runtime().parallel(function, data, threads);
}
unsigned GOMP_parallel_reductions(OutlinedFunction function, void* data, unsigned threads,
                                  unsigned flags) {
    note_caller();
    read_flags(flags);
    // The first of the shared variables is the descriptor.
    return runtime().parallel_reductions(function, data, threads,
                                         *static_cast<std::uintptr_t**>(data));
}
void GOMP_scope_start(std::uintptr_t* reductions) {
    note_caller();
    runtime().start_shared_reductions(reductions);
}
void GOMP_workshare_task_reduction_unregister(bool cancelled) {
    note_caller();
    synchronizes_at(SyncKind::barrier, __builtin_return_address(0));
    runtime().end_shared_reductions(cancelled);
}
void GOMP_barrier() {
    note_caller();
    synchronizes_at(SyncKind::barrier, __builtin_return_address(0));
    runtime().barrier();
}

void GOMP_parallel_sections(OutlinedFunction function, void* data, unsigned threads, unsigned count,
                            unsigned flags) {
    note_caller();
    read_flags(flags);
    runtime().parallel_loop(function, data, threads, sections_loop(count), count);
}
unsigned GOMP_sections_start(unsigned count) {
    note_caller();
    runtime().loop_start(sections_loop(count));
    return next_section();
}
unsigned GOMP_sections2_start(unsigned count, std::uintptr_t* reductions, void** memory) {
    note_caller();
    start_extras(reductions, memory);
    return GOMP_sections_start(count);
}
unsigned GOMP_sections_next() {
    note_caller();
    return next_section();
}
void GOMP_sections_end() {
    note_caller();
    synchronizes_at(SyncKind::loop, __builtin_return_address(0));
    runtime().loop_end(true);
}
void GOMP_sections_end_nowait() {
    note_caller();
    runtime().loop_end(false);
}
bool GOMP_sections_end_cancel() {
    note_caller();
    synchronizes_at(SyncKind::loop, __builtin_return_address(0));
    return runtime().loop_end_cancel();
}

bool GOMP_single_start() {
    note_caller();
    return runtime().single_start();
}
void* GOMP_single_copy_start() {
    note_caller();
    synchronizes_at(SyncKind::single, __builtin_return_address(0));
    return runtime().single_copy_start();
}
void GOMP_single_copy_end(void* data) {
    note_caller();
    runtime().single_copy_end(data);
}

void GOMP_critical_start() {
    note_caller();
    synchronizes_at(SyncKind::critical, __builtin_return_address(0));
    runtime().lock(hiroba::omp::critical_key);
}
void GOMP_critical_end() {
    note_caller();
    synchronizes_at(SyncKind::critical, __builtin_return_address(0));
    runtime().unlock(hiroba::omp::critical_key);
}
void GOMP_critical_name_start(void** name) {
    note_caller();
    synchronizes_at(SyncKind::critical, __builtin_return_address(0));
    runtime().lock(key_of(name));
}
void GOMP_critical_name_end(void** name) {
    note_caller();
    synchronizes_at(SyncKind::critical, __builtin_return_address(0));
    runtime().unlock(key_of(name));
}
void GOMP_atomic_start() {
    note_caller();
    synchronizes_at(SyncKind::critical, __builtin_return_address(0));
    runtime().lock(hiroba::omp::atomic_key);
}
void GOMP_atomic_end() {
    note_caller();
    synchronizes_at(SyncKind::critical, __builtin_return_address(0));
    runtime().unlock(hiroba::omp::atomic_key);
}

// `cancels` is the construct's if clause.
bool GOMP_cancel(int which, bool cancels) {
    note_caller();
    const Cancel what = cancel_of(which);
    return cancels ? runtime().cancel(what) : runtime().cancellation_point(what);
}
bool GOMP_cancellation_point(int which) {
    note_caller();
    return runtime().cancellation_point(cancel_of(which));
}
bool GOMP_barrier_cancel() {
    note_caller();
    synchronizes_at(SyncKind::barrier, __builtin_return_address(0));
    return runtime().barrier_cancel();
}

}  // extern "C"
