// SPDX-License-Identifier: BSD-3-Clause
// Role: see crypto_memory.hpp. Pieces are powers of two, taken from one mapping and kept in a list
// a size when they are given back: the library takes some hundred KiB when it starts, and two
// contexts a peer, which live as long as the node.
#include "net/wire/crypto_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <mutex>

#include "base/latch.hpp"

namespace hiroba::net::wire {
namespace {

constexpr std::size_t arena_bytes = std::size_t{64} << 20;  // untouched pages cost nothing
constexpr std::size_t front_bytes = 16;                     // keeps pieces aligned
constexpr unsigned smallest = 6, sizes = 20;                // 64 bytes to 32 MiB

struct Piece {
    Piece* next;
};

struct Arena {
    Latch latch;
    std::byte* start = nullptr;
    std::size_t used = 0;
    std::uint64_t allocations = 0;
    std::array<Piece*, sizes> given_back{};
};
constinit Arena arena;

unsigned size_of(std::size_t bytes) noexcept {
    return std::max<unsigned>(static_cast<unsigned>(std::bit_width(bytes + front_bytes - 1)),
                              smallest) -
           smallest;
}

std::uint64_t size_at(const void* memory) noexcept {
    std::uint64_t size;
    std::memcpy(&size, static_cast<const std::byte*>(memory) - front_bytes, sizeof size);
    return size;
}

/// Under the latch.
std::byte* fresh(std::size_t bytes) noexcept {
    if (arena.start == nullptr) {
        void* const memory = ::mmap(nullptr, arena_bytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) return nullptr;
        ::madvise(memory, arena_bytes, MADV_DONTDUMP);  // keys
        arena.start = static_cast<std::byte*>(memory);
    }
    if (bytes > arena_bytes - arena.used) return nullptr;
    std::byte* const piece = arena.start + arena.used;
    arena.used += bytes;
    return piece;
}

}  // namespace

void* allocate_for_crypto(std::size_t bytes) noexcept {
    if (bytes > arena_bytes / 2 - front_bytes) return nullptr;
    const std::uint64_t size = size_of(bytes);
    const std::scoped_lock lock{arena.latch};
    ++arena.allocations;
    std::byte* start = nullptr;
    if (Piece*& first = arena.given_back[size]; first != nullptr) {
        start = reinterpret_cast<std::byte*>(first);
        first = first->next;
    } else {
        start = fresh(std::size_t{1} << (size + smallest));
        if (start == nullptr) return nullptr;
    }
    std::memcpy(start, &size, sizeof size);
    return start + front_bytes;
}

void free_for_crypto(void* memory) noexcept {
    if (memory == nullptr) return;
    const std::uint64_t size = size_at(memory);
    auto* const piece = reinterpret_cast<Piece*>(static_cast<std::byte*>(memory) - front_bytes);
    const std::scoped_lock lock{arena.latch};
    piece->next = arena.given_back[size];
    arena.given_back[size] = piece;
}

void* reallocate_for_crypto(void* memory, std::size_t bytes) noexcept {
    if (memory == nullptr) return allocate_for_crypto(bytes);
    const std::size_t held = (std::size_t{1} << (size_at(memory) + smallest)) - front_bytes;
    if (bytes <= held) return memory;
    void* const larger = allocate_for_crypto(bytes);
    if (larger == nullptr) return nullptr;
    std::memcpy(larger, memory, held);
    free_for_crypto(memory);
    return larger;
}

std::uint64_t crypto_allocations() noexcept {
    const std::scoped_lock lock{arena.latch};
    return arena.allocations;
}

}  // namespace hiroba::net::wire
