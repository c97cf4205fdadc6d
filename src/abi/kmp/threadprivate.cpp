// SPDX-License-Identifier: BSD-3-Clause
// Role: threadprivate variables of code that is built with -fno-openmp-use-tls.
// Invariant: the thread that entered main uses the variable itself. Every other thread has a copy
// in global memory, because others may be given its address, made from what the variable held when
// any thread first asked for it. The compiler's cache word, which all nodes see, leads to that.
#include <cstring>

#include "abi/kmp/thread_notes.hpp"
#include "base/thread_context.hpp"
#include "omp/team/told_apart.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using namespace hiroba::abi::kmp;

namespace {

/// A thread's view of memory is no newer than its last acquire, so the look is under the lock.
const void* first_value(const void* variable, std::size_t bytes, void** cache) {
    auto& omp = runtime();
    omp.lock(hiroba::omp::threadprivate_key);
    if (*cache == nullptr) {
        void* const value = omp.allocate_for_task(bytes, alignof(std::max_align_t));
        std::memcpy(value, variable, bytes);
        *cache = value;
    }
    const void* const value = *cache;
    omp.unlock(hiroba::omp::threadprivate_key);
    return value;
}

void* own_copy(void* variable, std::size_t bytes, void** cache) {
    ThreadNotes& own = notes();
    if (const auto found = own.copies.find(variable); found != own.copies.end())
        return found->second;
    hiroba::omp::program_tells_threads_apart.store(true, std::memory_order_relaxed);
    const void* const value = first_value(variable, bytes, cache);
    void* copy = variable;
    if (!runtime().is_initial_thread()) {
        copy = runtime().allocate_for_task(bytes, 64);
        std::memcpy(copy, value, bytes);
    }
    const hiroba::RuntimeScope here;
    own.copies.emplace(variable, copy);
    return copy;
}

}  // namespace

extern "C" {

void* __kmpc_threadprivate_cached(Location*, Int, void* variable, std::size_t bytes,
                                  void*** cache) {
    return own_copy(variable, bytes, reinterpret_cast<void**>(cache));
}

}  // extern "C"
