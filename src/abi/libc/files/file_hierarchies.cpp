// SPDX-License-Identifier: BSD-3-Clause
// Role: fts_read() and its kin. libc's walk lies in its own heap and has the kernel write there: it
// is its node's. On another node the job ends with a line, where it would end in a fault.
// Invariant: nothing is changed on the node that has the walk.
#include <fts.h>

#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"
#include "base/fatal.hpp"

HIROBA_REAL(fts_read);
HIROBA_REAL(fts_children);
HIROBA_REAL(fts_set);
HIROBA_REAL(fts_close);

using namespace hiroba;

namespace {

FTS* require_here(FTS* walk, const char* call) noexcept {
    if (!abi::spans_nodes()) return walk;
    if (const auto owner = abi::foreign_private_heap(walk)) {
        die(exit_environment,
            "%s of a walk that node %u has opened: fts_open() it where it is read, or run on one "
            "node (-n 1)",
            call, owner->value);
    }
    return walk;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

FTSENT* fts_read(FTS* walk) { return real_fts_read(require_here(walk, "fts_read")); }
FTSENT* fts_children(FTS* walk, int options) noexcept {
    return real_fts_children(require_here(walk, "fts_children"), options);
}
int fts_set(FTS* walk, FTSENT* entry, int options) noexcept {
    return real_fts_set(require_here(walk, "fts_set"), entry, options);
}
int fts_close(FTS* walk) { return real_fts_close(require_here(walk, "fts_close")); }

// On this machine's ABI both names mean one structure.
[[gnu::alias("fts_read")]] FTSENT64* fts64_read(FTS64*);
[[gnu::alias("fts_children")]] FTSENT64* fts64_children(FTS64*, int) noexcept;
[[gnu::alias("fts_set")]] int fts64_set(FTS64*, FTSENT64*, int) noexcept;
[[gnu::alias("fts_close")]] int fts64_close(FTS64*);

}  // extern "C"
