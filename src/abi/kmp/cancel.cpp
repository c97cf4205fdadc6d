// SPDX-License-Identifier: BSD-3-Clause
// Role: cancellation, as clang's code asks for it.
// Invariant: as gomp's: nothing can have been cancelled, because a cancel that would take effect is
// refused.
#include "abi/kmp/kmp.hpp"
#include "base/sync_place.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using namespace hiroba::abi::kmp;
using hiroba::synchronizes_at;
using hiroba::SyncKind;

extern "C" {

Int __kmpc_cancel(Location*, Int, Int) {
    if (runtime().environment().cancellation)
        refuse("__kmpc_cancel", "cancellation (OMP_CANCELLATION=true) is");
    return 0;
}
Int __kmpc_cancellationpoint(Location*, Int, Int) { return 0; }
Int __kmpc_cancel_barrier(Location*, Int) {
    synchronizes_at(SyncKind::barrier, __builtin_return_address(0));
    runtime().barrier();
    return 0;
}
int kmp_get_cancellation_status(int) { return 0; }
int kmp_get_cancellation_status_(const int*) { return 0; }

}  // extern "C"
