// SPDX-License-Identifier: BSD-3-Clause
// Role: what the runtime knows of one thread, in memory private to the node.
// Invariant: only the owning thread writes its context. The one thread-local word that leads here
// is written once per thread, because TLS of the program's threads lies in global memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace hiroba {

struct TraceRing;

struct ThreadContext {
    std::byte* runtime_stack_top = nullptr;  ///< private stack on which releases and acquires run
    bool on_runtime_stack = false;
    std::uintptr_t program_stack = 0;  ///< while on the runtime stack: in use from here up
    bool in_runtime = false;           ///< this thread executes our code, not the program's
    std::uint32_t global_thread = 0;   ///< number over the whole job: node * threads + local number
    void* omp = nullptr;               ///< the OpenMP layer's state of this thread
    std::uint64_t queue_nodes_used = 0;  ///< bit set over this thread's lock queue nodes (dsm/sync)
    TraceRing* trace = nullptr;          ///< this thread's last trace records (base/trace.hpp)
    std::uintptr_t fault_address = 0;    ///< the fault being resolved, 0: none (dsm/memory)
};

/// The calling thread's context; made on first use (mmap, private). Async-signal-safe.
ThreadContext& this_thread() noexcept;

/// As above, but nullptr where this_thread() would have to make one.
ThreadContext* this_thread_if_known() noexcept;

using RuntimeCall = void (*)(void*);

/// Calls `function(argument)` on the thread's private runtime stack (256 KiB), or directly when
/// already there. Needed around everything that may make the program's own stack inaccessible or
/// compares it while it would be changing (design rule: release and acquire run on a stack of
/// ours).
///
/// @param program_stack  below it the program's stack holds nothing but frames of ours
void call_on_runtime_stack(RuntimeCall function, void* argument,
                           std::uintptr_t program_stack) noexcept;

/// As above for any callable. Inlined, so that the frame it sees is the caller's.
template <class Callable>
[[gnu::always_inline]] inline void on_runtime_stack(Callable&& callable) noexcept {
    using Plain = std::remove_reference_t<Callable>;
    constexpr std::size_t linkage_bytes = 16;  // saved frame pointer and return address
    call_on_runtime_stack(
        [](void* argument) { (*static_cast<Plain*>(argument))(); },
        const_cast<std::remove_const_t<Plain>*>(&callable),
        reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) + linkage_bytes);
}

/// Where the stack in [begin, end) is in use from, if its thread stands on its runtime stack; else
/// `begin`. The answer lasts as long as that thread stands still.
std::uintptr_t stack_in_use_from(std::uintptr_t begin, std::uintptr_t end) noexcept;

}  // namespace hiroba
