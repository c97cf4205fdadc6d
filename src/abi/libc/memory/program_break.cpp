// SPDX-License-Identifier: BSD-3-Clause
// Role: brk() and sbrk() for the program.
// Invariant: its break lies in global memory, in room that is taken when it is first asked for.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "abi/libc/memory/early_mappings.hpp"
#include "abi/libc/memory/memory_calls.hpp"
#include "abi/libc/real.hpp"
#include "abi/world.hpp"
#include "base/bytes.hpp"
#include "base/latch.hpp"

HIROBA_REAL_OF_LIBC(brk);
HIROBA_REAL_OF_LIBC(sbrk);
HIROBA_REAL_OF_LIBC(mprotect);

namespace hiroba::abi {
namespace {

void* fail(int error) noexcept {
    errno = error;
    return MAP_FAILED;
}

/// The program's break: room in the heap arena of the node that moves it. One that is moved before
/// the take-over has its room among the early mappings, and keeps it on node 0.
class ProgramBreak {
public:
    void* move_by(std::intptr_t by) noexcept {
        const std::scoped_lock guard{latch_};
        if (!open()) return fail(ENOMEM);
        return set(now_ + by);
    }
    bool move_to(void* end) noexcept {
        const std::scoped_lock guard{latch_};
        if (!open()) return false;
        return set(static_cast<std::byte*>(end)) != MAP_FAILED;
    }

private:
    static constexpr std::size_t room_bytes = std::size_t{1} << 30;

    bool open() noexcept {
        const World* const node = world();
        const bool of_others =
            node != nullptr && early_mappings().owns(begin_) && node->job.self.value != 0;
        if (begin_ != nullptr && !of_others) return true;
        bool zeroed = true;
        void* room = nullptr;
        if (node != nullptr) {
            room = node->heap->allocate(room_bytes, page_bytes, &zeroed);
        } else {
            room =
                early_mappings().map(nullptr, room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS);
            if (room == MAP_FAILED) room = nullptr;
        }
        begin_ = now_ = highest_ = accessible_ = static_cast<std::byte*>(room);
        if (!zeroed && begin_ != nullptr) highest_ = begin_ + room_bytes;
        return begin_ != nullptr;
    }
    /// Before the take-over, piece by piece, so that what limits a process's data holds.
    bool make_accessible(std::byte* end) noexcept {
        if (!early_mappings().owns(begin_) || early_mappings().is_given_over() ||
            end <= accessible_)
            return true;
        const std::size_t bytes = round_up(static_cast<std::size_t>(end - accessible_), page_bytes);
        if (real_mprotect(accessible_, bytes, PROT_READ | PROT_WRITE) != 0) return false;
        accessible_ += bytes;
        return true;
    }
    void* set(std::byte* end) noexcept {
        if (end < begin_ || end > begin_ + room_bytes) return fail(ENOMEM);
        if (!make_accessible(end)) return fail(ENOMEM);
        std::byte* const before = now_;
        // Memory above a break that comes back is zero.
        if (end > before && before < highest_) {
            std::memset(before, 0, static_cast<std::size_t>(std::min(end, highest_) - before));
        }
        now_ = end;
        highest_ = std::max(highest_, end);
        return before;
    }

    Latch latch_;
    std::byte* begin_ = nullptr;
    std::byte* now_ = nullptr;
    std::byte* highest_ = nullptr;
    std::byte* accessible_ = nullptr;  ///< of an early one: the end of what has been
};
constinit ProgramBreak program_break;

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;

#define HIROBA_CALLER __builtin_return_address(0)

#pragma GCC visibility push(default)
extern "C" {

int brk(void* end) noexcept {
    if (!serves(HIROBA_CALLER) && !serves_early(HIROBA_CALLER)) return real_brk(end);
    if (program_break.move_to(end)) return 0;
    errno = ENOMEM;
    return -1;
}
void* sbrk(intptr_t by) noexcept {
    if (!serves(HIROBA_CALLER) && !serves_early(HIROBA_CALLER)) return real_sbrk(by);
    return program_break.move_by(by);
}

}  // extern "C"
