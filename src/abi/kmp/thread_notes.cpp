// SPDX-License-Identifier: BSD-3-Clause
#include "abi/kmp/thread_notes.hpp"

#include "base/thread_context.hpp"

namespace hiroba::abi::kmp {

ThreadNotes& notes() noexcept {
    ThreadContext& thread = this_thread();
    if (thread.kmp == nullptr) {
        const RuntimeScope here;
        thread.kmp = new ThreadNotes;
    }
    return *static_cast<ThreadNotes*>(thread.kmp);
}

void forget_notes() noexcept {
    ThreadContext& thread = this_thread();
    const RuntimeScope here;
    auto* const own = static_cast<ThreadNotes*>(thread.kmp);
    if (own == nullptr) return;
    for (const auto& copy : own->copies) runtime().free_for_task(copy.second);
    delete own;
    thread.kmp = nullptr;
}

}  // namespace hiroba::abi::kmp
