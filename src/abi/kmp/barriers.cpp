// SPDX-License-Identifier: BSD-3-Clause
// Role: barriers and flushes.
// Invariant: each of these is one call of the runtime.
#include "abi/kmp/kmp.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using namespace hiroba::abi::kmp;

extern "C" {

void __kmpc_barrier(Location* at, Int) {
    note_caller();
    if (at != nullptr && (at->flags & location_flag::barrier_implicit) != 0)
        tell_tool(ToolReport::barrier_is_implicit);
    synchronizes_at(SyncKind::barrier, __builtin_return_address(0));
    runtime().barrier();
}

// A barrier whose master goes on alone, and opens it for the others when it ends it.
Int __kmpc_barrier_master(Location*, Int) {
    note_caller();
    synchronizes_at(SyncKind::barrier, __builtin_return_address(0));
    runtime().barrier();
    if (runtime().place().thread == 0) return 1;
    runtime().barrier();
    return 0;
}
void __kmpc_end_barrier_master(Location*, Int) {
    note_caller();
    synchronizes_at(SyncKind::barrier, __builtin_return_address(0));
    runtime().barrier();
}
Int __kmpc_barrier_master_nowait(Location*, Int) {
    note_caller();
    synchronizes_at(SyncKind::barrier, __builtin_return_address(0));
    runtime().barrier();
    return runtime().place().thread == 0;
}

void __kmpc_flush(Location*) {
    note_caller();
    synchronizes_at(SyncKind::flush, __builtin_return_address(0));
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    runtime().flush();
}

}  // extern "C"
