// SPDX-License-Identifier: BSD-3-Clause
// Role: where a thread says on which page it carries out an atomic without asking anybody: a few
// words that its rewritten code reaches by the gs register, in memory private to the node.
// Invariant: only the owning thread writes its window. Who lets nobody in any more looks behind
// membarrier(2) at the windows of all threads (dsm/block/atomic_passes.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hiroba {

/// Trampolines know the offsets (omp/atomic/trampoline.cpp).
struct alignas(64) AtomicWindow {
    /// This window: gs may lead elsewhere, where the program has set it.
    const AtomicWindow* self = nullptr;
    /// Number of the page of an atomic under way; 0: none; preparing: it puts registers aside.
    std::atomic<std::uint64_t> page{0};
    std::int32_t left = 0;    ///< so many atomics may go by unnoted; below 0: none
    std::uint32_t given = 0;  ///< of so many
    /// What the trampoline puts aside meanwhile.
    std::uint64_t flags = 0, rax = 0, rdi = 0, address = 0;
    std::uint64_t given_tick = 0;  ///< when they were given

    static constexpr std::uint64_t preparing = ~std::uint64_t{0} << 31;

    /// How many have gone by since they were given. Thread: any; a hint for others.
    std::uint32_t made() const noexcept {
        const std::int32_t rest = left;
        return given - static_cast<std::uint32_t>(rest > 0 ? rest : 0);
    }
    /// No more go by. @return how many have
    std::uint32_t settle() noexcept {
        const std::uint32_t count = made();
        left = 0;
        given = 0;
        return count;
    }
};
static_assert(sizeof(AtomicWindow) == 64);

/// The calling thread's, once it has a context (base/thread_context.hpp); written once.
extern constinit thread_local AtomicWindow* own_atomic_window
    [[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]];

/// Visits those of all threads of the process, also of some that have ended: they have no atomic
/// under way.
void each_atomic_window(void (*visit)(AtomicWindow& window, void* context), void* context) noexcept;

/// The calling thread's next atomic is noted.
inline void note_next_atomic() noexcept {
    if (AtomicWindow* const window = own_atomic_window; window != nullptr && window->left > 0) {
        window->given -= static_cast<std::uint32_t>(window->left);
        window->left = 0;
    }
}

}  // namespace hiroba
