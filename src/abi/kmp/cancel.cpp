// SPDX-License-Identifier: BSD-3-Clause
// Role: cancellation, as clang's code asks for it.
// Invariant: a thread that is told to leave a loop that is handed out by chunks asks for no further
// chunk, so the loop ends for it here.
#include "abi/kmp/nests.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using namespace hiroba::abi::kmp;
using hiroba::omp::Cancel;

namespace {

/// The construct by clang's number.
Cancel cancel_of(Int kind) noexcept {
    switch (kind) {
        case 1: return Cancel::parallel;
        case 2: return Cancel::loop;
        case 3: return Cancel::sections;
        default: return Cancel::taskgroup;
    }
}

Int leave_if(bool cancelled, Cancel what) noexcept {
    if (cancelled && (what == Cancel::loop || what == Cancel::sections)) leave_dealt_loop();
    return cancelled;
}

}  // namespace

extern "C" {

Int __kmpc_cancel(Location*, Int, Int kind) {
    note_caller();
    const Cancel what = cancel_of(kind);
    return leave_if(runtime().cancel(what), what);
}
Int __kmpc_cancellationpoint(Location*, Int, Int kind) {
    note_caller();
    const Cancel what = cancel_of(kind);
    return leave_if(runtime().cancellation_point(what), what);
}
Int __kmpc_cancel_barrier(Location*, Int) {
    note_caller();
    synchronizes_at(SyncKind::barrier, __builtin_return_address(0));
    return runtime().barrier_cancel();
}
int kmp_get_cancellation_status(int kind) { return runtime().cancellation_point(cancel_of(kind)); }
int kmp_get_cancellation_status_(const int* kind) { return kmp_get_cancellation_status(*kind); }

}  // extern "C"
