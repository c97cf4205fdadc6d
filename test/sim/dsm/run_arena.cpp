// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dsm/run_arena.hpp"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/bytes.hpp"

namespace hiroba::sim_test {
namespace {

constexpr std::size_t arena_bytes = std::size_t{16} << 20;
alignas(64) std::byte arena[arena_bytes];
std::size_t used = 0;
bool inside = false;

void* take(std::size_t bytes, std::size_t alignment) {
    if (!inside) {
        void* const memory = std::aligned_alloc(alignment, round_up(bytes + 1, alignment));
        if (memory == nullptr) throw std::bad_alloc{};
        return memory;
    }
    used = round_up(used, alignment);
    if (bytes > arena_bytes - used) std::abort();
    std::byte* const memory = arena + used;
    used += bytes;
    std::memset(memory, 0, bytes);
    return memory;
}

void give(void* memory) noexcept {
    const auto* const at = static_cast<std::byte*>(memory);
    if (at < arena || at >= arena + arena_bytes) std::free(memory);
}

}  // namespace

RunArena::RunArena() noexcept {
    used = 0;
    inside = true;
}
RunArena::~RunArena() { inside = false; }

OutsideRunArena::OutsideRunArena() noexcept : inside_(inside) { inside = false; }
OutsideRunArena::~OutsideRunArena() { inside = inside_; }

}  // namespace hiroba::sim_test

void* operator new(std::size_t bytes) { return hiroba::sim_test::take(bytes, 16); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return hiroba::sim_test::take(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { hiroba::sim_test::give(memory); }
void operator delete(void* memory, std::size_t) noexcept { hiroba::sim_test::give(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { hiroba::sim_test::give(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    hiroba::sim_test::give(memory);
}
