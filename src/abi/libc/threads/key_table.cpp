// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/threads/key_table.hpp"

#include <mutex>

#include "abi/world.hpp"
#include "base/latch.hpp"
#include "base/thread_context.hpp"

namespace hiroba::abi {
namespace {

/// Before take-over, when a library's constructor makes keys.
constinit Latch early_latch;

/// Runs `change(row)` while no other thread of the job changes a row beside it.
template <class Change>
bool exclusively(unsigned index, Change change) noexcept {
    KeyRow* const row = reinterpret_cast<KeyRow*>(common_memory()) + index;
    World* const node = world();
    if (node == nullptr || node->memory == nullptr) {
        const std::scoped_lock guard{early_latch};
        return change(*row);
    }
    bool changed = false;
    on_runtime_stack([&] {
        const bool entered = node->memory->enter_atomic(row, sizeof *row);
        changed = change(*row);
        if (entered) node->memory->leave_atomic(row, sizeof *row);
    });
    return changed;
}

bool take(unsigned index, KeyDestructor destructor) noexcept {
    return exclusively(index, [destructor](KeyRow& row) {
        if (is_in_use(row)) return false;
        row = {row.life + 1, destructor};
        return true;
    });
}

}  // namespace

std::optional<unsigned> take_key_row(KeyDestructor destructor) noexcept {
    for (unsigned row = 0; row < program_keys; ++row)
        if (!is_in_use(key_row(row)) && take(row, destructor)) return row;
    // What another node has freed may not be known here.
    for (unsigned row = 0; row < program_keys; ++row)
        if (take(row, destructor)) return row;
    return std::nullopt;
}

bool free_key_row(unsigned index) noexcept {
    return exclusively(index, [](KeyRow& row) {
        if (!is_in_use(row)) return false;
        row = {row.life + 1, nullptr};
        return true;
    });
}

}  // namespace hiroba::abi
