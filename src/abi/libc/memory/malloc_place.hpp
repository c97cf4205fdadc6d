// SPDX-License-Identifier: BSD-3-Clause
// Role: where each allocation goes: libc's own heap, the early arena, or the global heap.
// Invariant: decided once in a process's life, at its first allocation, whether it is one of
// several nodes; in a process that is alone each call is one load more than libc's. What is freed
// or resized is known by its address, so memory may be handed on freely between the callers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/ids.hpp"
#include "dsm/memory/address_map.hpp"

namespace hiroba::abi {

/// libc's own allocator, wherever malloc and its other names lead.
void* libc_malloc(std::size_t bytes) noexcept;
void* libc_calloc(std::size_t count, std::size_t bytes_each) noexcept;
void* libc_realloc(void* block, std::size_t bytes) noexcept;
void* libc_memalign(std::size_t alignment, std::size_t bytes) noexcept;
void libc_free(void* block) noexcept;

enum class Spread : std::uint8_t {
    unknown,  ///< also while it is being found out: libc's heap serves
    alone,    ///< one node or no job
    several,
};

namespace detail {
extern constinit std::atomic<Spread> spread;
bool decide_spread() noexcept;
}  // namespace detail

/// True when this process is one of several nodes: only then is anything below needed.
inline bool is_spread() noexcept {
    // Relaxed: what the decision fixed was fixed when the process had one thread.
    const Spread spread = detail::spread.load(std::memory_order_relaxed);
    if (spread == Spread::alone) [[likely]]
        return false;
    return spread == Spread::several || detail::decide_spread();
}

/// As is_spread(), also while the loader runs and libc has no environment yet: a malloc of the
/// program's own may be called then, and maps its memory.
bool is_one_of_several() noexcept;

/// True when an allocation asked for at `return_address` belongs to the program. is_spread() only.
bool is_for_program(const void* return_address) noexcept;

/// While one lives, what libc allocates for this thread is the program's. For functions that make
/// plain data and nothing that libc keeps or the kernel writes. is_spread() and for the program
/// only: else it does nothing.
class ProgramMemory {
public:
    explicit ProgramMemory(const void* return_address) noexcept;
    ProgramMemory(const ProgramMemory&) = delete;
    ProgramMemory& operator=(const ProgramMemory&) = delete;
    ~ProgramMemory();

private:
    bool before_;
};

/// Where memory was handed out before take-over; whole pages, maybe none.
dsm::AddressRange early_allocations() noexcept;

/// Global memory at the same address in every process of the job, from its first call on, zero at
/// first: for what all nodes keep together of libc's. is_spread() only.
inline constexpr std::size_t common_bytes = std::size_t{16} << 10;
std::byte* common_memory() noexcept;

/// A page of such memory for each node, which that node alone writes.
std::byte* page_of_node(NodeId node) noexcept;

/// The node in whose libc heap `address` lies, when that is not this one: the heaps of the nodes
/// lie one behind the other. Async-signal-safe.
std::optional<NodeId> foreign_private_heap(const void* address) noexcept;

/// mallopt(M_PERTURB): new blocks of the program are filled with what this is not; 0: they are not.
int perturb_byte() noexcept;
void set_perturb_byte(int byte) noexcept;

/// Memory of the program: the global heap, before take-over the early arena. On failure nullptr,
/// errno = ENOMEM, and for the first time one line. `alignment` a power of two.
void* allocate_for_program(std::size_t bytes, std::size_t alignment, bool zeroed) noexcept;

/// Likewise for address space of which the program means to use a part: it is not held against what
/// the node may use. For whole pages of zeros; given back by give_back_reserved().
/// @param accessible  from the start, so that any page may come to be written
void* reserve_for_program(std::size_t bytes, bool accessible) noexcept;
void give_back_reserved(void* block) noexcept;
/// A reserved block was made longer or shorter in place.
void reserved_block_changed(std::size_t before, std::size_t after) noexcept;

/// Records `block`, if that is asked for, by who has asked for it. Returns it.
void* note_allocation(void* block, std::size_t bytes, const void* return_address) noexcept;

/// True when allocate_for_program() made `block`. is_spread() only.
bool is_program_memory(const void* block) noexcept;

/// The next three: a block for which is_program_memory().
void give_back(void* block) noexcept;
std::size_t program_block_bytes(const void* block) noexcept;
/// As realloc() with `bytes` > 0: nullptr leaves the block as it is.
void* resize_for_program(void* block, std::size_t bytes) noexcept;

/// What malloc, free and memalign of a caller at `return_address` do.
void* allocate(std::size_t bytes, const void* return_address) noexcept;
void* allocate_aligned(std::size_t alignment, std::size_t bytes,
                       const void* return_address) noexcept;
void release_block(void* block) noexcept;

}  // namespace hiroba::abi
