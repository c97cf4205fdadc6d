// SPDX-License-Identifier: BSD-3-Clause
#include "abi/kmp/thread_notes.hpp"

#include <utility>

#include "base/thread_room.hpp"

namespace hiroba::abi::kmp {

namespace {
struct ThreadPart {
    ThreadNotes* notes = nullptr;
};
constexpr ThreadRoom<ThreadPart, 3> thread_part;
}  // namespace

ThreadNotes& notes() noexcept {
    ThreadNotes*& own = thread_part().notes;
    if (own == nullptr) {
        const RuntimeScope here;
        own = new ThreadNotes;
    }
    return *own;
}

void forget_notes() noexcept {
    const RuntimeScope here;
    ThreadNotes*& own = thread_part().notes;
    if (own == nullptr) return;
    for (const auto& copy : own->copies) runtime().free_for_task(copy.second);
    delete std::exchange(own, nullptr);
}

}  // namespace hiroba::abi::kmp
