// SPDX-License-Identifier: BSD-3-Clause
// Role: what a trampoline calls when its operand may be global: save everything, call the hooks.
// Invariant: the program's vector, x87 and general registers, its errno and its flags come back
// unchanged; the hooks run on the thread's runtime stack, but for AtomicHooks::own. Between them
// the thread counts as being in the runtime, so that no signal handler of the program runs inside a
// critical section.
#pragma once

#include <cstdint>
#include <vector>

#include "omp/atomic/code_scan.hpp"
#include "omp/atomic/rewriter.hpp"

namespace hiroba::omp {

struct RewrittenObject;
struct HookFrame;  ///< registers at a site (slow_path.cpp)

/// One rewritten instruction, as the slow path sees it.
struct SiteRecord {
    RewrittenObject* object = nullptr;
    std::uintptr_t address = 0;
    std::uint8_t operand_bytes = 0;
    SiteKind kind = SiteKind::atomic;
    LastOperation last;
};

/// One rewritten object, at a fixed place for as long as the process lives.
struct RewrittenObject {
    AtomicHooks hooks;
    std::vector<SiteRecord> sites;    ///< never grows after trampolines refer to it
    RewrittenObject* next = nullptr;  ///< older object; keep_object()
};

/// Which vector registers may hold something at an object's sites. Every vector register is lost by
/// a call (psABI, section 3.2.1), so only what the object's own code can name is live in it.
enum class VectorUse : std::uint8_t {
    xmm,  ///< no instruction of the object has a VEX or EVEX prefix: xmm0 to xmm15
    all,  ///< whatever the processor has
};

enum class Entered : std::uint8_t {
    no,  ///< the address is private after all
    yes,
    elsewhere,  ///< the instruction will be carried out later, and is to be passed over
};

/// Addresses that trampolines call with rdi = operand address, rsi = SiteRecord*, and on the stack,
/// above the return address, 8 bytes of theirs and vector_room_bytes() of room. Both keep every
/// register but rax; `before` returns in al an Entered. If the critical section was entered, the
/// program's vectors lie in the room, or have stayed where they are; they are in the registers
/// again behind `after`, which is given the same room.
struct SlowPathEntries {
    std::uintptr_t before;
    std::uintptr_t after;
};

/// Finds out once how this CPU saves its vector state. Before the first trampoline runs.
/// With VectorUse::xmm hooks may use every vector register too, but not x87 or MMX.
SlowPathEntries slow_path_entries(VectorUse vectors) noexcept;

/// Bytes of room for the vectors, a multiple of 16.
std::int32_t vector_room_bytes() noexcept;

/// Keeps `object`, which only code refers to, where a search for lost memory finds it. Any thread.
void keep_object(RewrittenObject& object) noexcept;

}  // namespace hiroba::omp
