// SPDX-License-Identifier: BSD-3-Clause
// Role: what libc keeps in variables of its own for a whole process, kept for the whole job: names
// of semaphores, hsearch()'s table. One block of global memory that every node knows.
// Invariant: it is read and written by who holds its lock, whose acquire brings what others wrote.
#pragma once

#include <search.h>

namespace hiroba::abi {

struct NamedSemaphore;

struct KeptObjects {
    NamedSemaphore* semaphores = nullptr;
    hsearch_data table = {};  ///< of hcreate() and hsearch()
};

/// Node 0, before a region of several nodes: where the block is. Makes it the first time.
KeptObjects* publish_kept_objects() noexcept;
/// Other nodes: it is there.
void adopt_kept_objects(KeptObjects* published) noexcept;

/// The job's lock on the block. Thread: of the program, HIROBA_CALL_OF_PROGRAM() only.
class KeptObjectsGuard {
public:
    KeptObjectsGuard() noexcept;
    KeptObjectsGuard(const KeptObjectsGuard&) = delete;
    KeptObjectsGuard& operator=(const KeptObjectsGuard&) = delete;
    ~KeptObjectsGuard();
    KeptObjects* operator->() const noexcept { return objects_; }

private:
    KeptObjects* objects_;
};

}  // namespace hiroba::abi
