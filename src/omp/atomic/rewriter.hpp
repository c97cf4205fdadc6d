// SPDX-License-Identifier: BSD-3-Clause
// Role: load-time rewriting: sends every locked instruction and fence of the program through a
// trampoline, because no page protection can see an atomic that lands on an accessible page.
// Invariant: a rewritten site leaves the same registers, flags and memory as the instruction it
// replaces; only global memory makes it slower. Text is never writable and executable at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "dsm/dsm.hpp"
#include "dsm/memory/address_map.hpp"
#include "omp/team/join_terms.hpp"

namespace hiroba::omp {

/// The functions that an atomic on global memory calls, and which memory is global.
///
/// The functions run on the thread's runtime stack, with the program's vector state saved and
/// errno preserved, but for those that say otherwise. They must not run rewritten code.
struct AtomicHooks {
    void* context = nullptr;
    /// Enters the critical section around one instruction. False: the address is private after
    /// all, the instruction runs as it was and `leave` is not called.
    bool (*enter)(void* context, void* address, std::size_t bytes) noexcept = nullptr;
    void (*leave)(void* context, void* address, std::size_t bytes) noexcept = nullptr;
    dsm::OwnAtomics own;  ///< where there are some
    void (*flush)(void* context) noexcept = nullptr;
    /// The thread waits by loads for a write of another's there. Null: never told.
    void (*waits)(void* context, void* address) noexcept = nullptr;
    /// Whether the region the thread is in takes the term over. Then the instruction is not carried
    /// out. Null: never asked.
    bool (*leaves_to_join)(const LastAtomic& atomic) noexcept = nullptr;
    /// Guards an operand that crosses a multiple of block_bytes, by its address.
    /// Null: it ends the process.
    void (*enter_crossing)(void* address) noexcept = nullptr;
    void (*leave_crossing)(void* address) noexcept = nullptr;
    bool sequential = false;  ///< HIROBA_ATOMICS=seq_cst: flush before and after each atomic
    std::size_t block_bytes = page_bytes;
    dsm::AddressRange kept_free;  ///< no landing pad lies there
    /// The global memory, any number of ranges, the largest (the main range) first.
    std::vector<dsm::AddressRange> global;
};

/// Hooks on a shared memory whose map is complete (after the last add_image()).
AtomicHooks hooks_on(dsm::SharedMemory& memory, bool sequential);

/// One loaded ELF object.
struct RewriteTarget {
    std::uintptr_t bias = 0;  ///< dlpi_addr
    std::string path;         ///< the file it was loaded from ("/proc/self/exe" for the program)
    /// The ranges to scan; empty: everything the file says is executable.
    std::vector<dsm::AddressRange> executable;
};

/// The work of a rewrite, in numbers of instructions.
struct RewriteSummary {
    std::size_t atomics = 0;
    std::size_t flushes = 0;
    std::size_t waits = 0;       ///< loops
    std::size_t jumps = 0;       ///< of all, by jmp
    std::size_t traps = 0;       ///< of all, by int3 (more than 1 us each time)
    std::size_t left_alone = 0;  ///< thread-local (fs, gs) or of a form that has no trampoline
    std::size_t undecodable_bytes = 0;
};

/// Rewrites one object for good; everything it needs later lives as long as the process.
///
/// Once per object, before any other thread may run its code, and not from code of the object.
/// Fails with `environment` when the text cannot be changed (SELinux execmod) or no room for
/// trampolines lies within 2 GiB; the object is unchanged then.
Result<RewriteSummary> rewrite(const RewriteTarget& target, const AtomicHooks& hooks);

}  // namespace hiroba::omp
