// SPDX-License-Identifier: BSD-3-Clause
// Role: what libc keeps in variables of its own for a whole process, kept for the whole job: names
// of semaphores, hsearch()'s table, and how far functions have come that go on from call to call.
// One block of global memory that every node knows.
// Invariant: it is read and written by who holds its lock, whose acquire brings what others wrote.
// But calls that go on are ordered by the program, as alone: they need none.
#pragma once

#include <search.h>
#include <wchar.h>

#include <cstddef>
#include <cstdint>

namespace hiroba::abi {

struct NamedSemaphore;

/// What strtok() and conversions without a state of their caller's leave for their next call.
struct CallsSoFar {
    static constexpr std::size_t conversions_max = 16, lists_max = 16;
    char* token = nullptr;
    mbstate_t shift[conversions_max] = {};
    std::uint64_t entries[lists_max] = {};  ///< that getpwent() and its kin have handed out
};

struct KeptObjects {
    NamedSemaphore* semaphores = nullptr;
    hsearch_data table = {};        ///< of hcreate() and hsearch()
    char* expression = nullptr;     ///< of re_comp() and re_exec()
    std::uint64_t expressions = 0;  ///< so many there have been
    CallsSoFar calls;
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
