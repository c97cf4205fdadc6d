// SPDX-License-Identifier: BSD-3-Clause
// Role: flockfile() and its kin: what a program does with a stream between them is one unit to all
// threads of the job.
// Invariant: a stream's lock is a recursive mutex of the job, known by the stream's address, which
// is one node's alone or a standard stream's; behind it comes libc's own lock, which keeps out the
// calls of this node's other threads. None waits for libc's lock while it has not the job's.
#include <stdio.h>

#include "abi/libc/files/foreign_streams.hpp"
#include "abi/libc/files/whole_output.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/threads/kept_by_threads.hpp"
#include "abi/world.hpp"

HIROBA_REAL(flockfile);
HIROBA_REAL(ftrylockfile);
HIROBA_REAL(funlockfile);

namespace hiroba::abi {
namespace {

dsm::SyncKey key_of(const FILE* stream) noexcept {
    return reinterpret_cast<std::uintptr_t>(stream);
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;
using hiroba::dsm::MutexType;
using hiroba::dsm::SyncOutcome;

#pragma GCC visibility push(default)
extern "C" {

void flockfile(FILE* stream) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_flockfile(stream);
    note_kept_by_caller(__builtin_return_address(0));
    world()->sync->lock_mutex(key_of(stream), MutexType::recursive, {});
    FILE* const here = near(stream);
    real_flockfile(here);
    stream_locked(here);
}

int ftrylockfile(FILE* stream) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_ftrylockfile(stream);
    note_kept_by_caller(__builtin_return_address(0));
    auto& table = *world()->sync;
    if (table.lock_mutex(key_of(stream), MutexType::recursive, {false}) != SyncOutcome::done)
        return -1;
    FILE* const here = near(stream);
    if (real_ftrylockfile(here) != 0) {
        table.unlock_mutex(key_of(stream), MutexType::recursive);
        return -1;
    }
    stream_locked(here);
    return 0;
}

void funlockfile(FILE* stream) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_funlockfile(stream);
    FILE* const here = near(stream);
    stream_unlocked(here);
    real_funlockfile(here);
    world()->sync->unlock_mutex(key_of(stream), MutexType::recursive);
}

}  // extern "C"
