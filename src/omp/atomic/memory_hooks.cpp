// SPDX-License-Identifier: BSD-3-Clause
// Role: joins rewritten code to the shared memory. Invariant: nothing is decided here.
#include "dsm/dsm.hpp"
#include "omp/atomic/rewriter.hpp"

namespace hiroba::omp {

AtomicHooks hooks_on(dsm::SharedMemory& memory, bool sequential) {
    AtomicHooks hooks;
    hooks.context = &memory;
    hooks.enter = [](void* context, void* address, std::size_t bytes) noexcept {
        return static_cast<dsm::SharedMemory*>(context)->enter_atomic(address, bytes);
    };
    hooks.leave = [](void* context, void* address, std::size_t bytes) noexcept {
        static_cast<dsm::SharedMemory*>(context)->leave_atomic(address, bytes);
    };
    memory.let_atomics_go_by();
    hooks.own = memory.own_atomics();
    hooks.flush = [](void* context) noexcept { static_cast<dsm::SharedMemory*>(context)->flush(); };
    hooks.waits = [](void* context, void* address) noexcept {
        static_cast<dsm::SharedMemory*>(context)->await_write(address);
    };
    hooks.leaves_to_join = &leave_to_join;
    hooks.sequential = sequential;
    hooks.block_bytes = memory.map().shape().block_bytes;
    hooks.global.push_back(memory.map().main_range());
    for (std::size_t i = 0; i < memory.map().images(); ++i) {
        hooks.global.push_back(memory.map().image(i));
    }
    return hooks;
}

}  // namespace hiroba::omp
