// SPDX-License-Identifier: BSD-3-Clause
// Role: finds out whether this process is one of several nodes, and serves the program's memory.
// Invariant: nothing here allocates from what it serves. State is constinit: the first allocation
// comes before any constructor of this library.
#include "abi/libc/memory/malloc_place.hpp"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include "abi/libc/memory/malloc_callers.hpp"
#include "abi/libc/memory/malloc_early.hpp"
#include "abi/libc/memory/memory_limit.hpp"
#include "abi/libc/process/later_libraries.hpp"
#include "abi/libc/process/resource_limits.hpp"
#include "abi/space_shape.hpp"
#include "abi/world.hpp"
#include "base/bytes.hpp"
#include "base/fatal.hpp"
#include "base/record.hpp"
#include "base/thread_context.hpp"

/// libc's own name: `sbrk` is the program's (mappings.cpp).
extern "C" void* __sbrk(std::intptr_t) noexcept;
/// The loader's: where the kernel has put the number of arguments, them, and the environment.
extern "C" void* __libc_stack_end;

namespace hiroba::abi {

namespace detail {
constinit std::atomic<Spread> spread{Spread::unknown};
}

namespace {

constinit EarlyArena early;
constinit std::byte* common = nullptr;      ///< the first block of `early`
constinit std::byte* node_pages = nullptr;  ///< the second
constinit dsm::AddressRange heap_arenas;
constinit std::atomic<dsm::Heap*> heap_seen{nullptr};
constinit std::atomic<bool> deciding{false};

/// How far apart the nodes' private heaps start. A node-private pointer that reaches another node
/// by mistake then points into nothing for heaps up to this size.
constexpr std::size_t private_heap_step_bytes = std::size_t{64} << 20;

constinit std::uintptr_t private_heaps = 0;  ///< where node 0's starts; 0: they were not moved
constinit std::uint32_t private_heap_count = 0;
constinit std::uint32_t own_private_heap = 0;

constexpr std::size_t block_bytes_max = std::size_t{1} << 20;

constinit std::atomic<std::size_t> reserved_bytes{0};  ///< of this node's arena

/// The process's own environment, also before libc knows it.
char** environment() noexcept {
    if (environ != nullptr) return environ;
    const auto* const count = static_cast<const std::uint64_t*>(__libc_stack_end);
    return const_cast<char**>(reinterpret_cast<const char* const*>(count + 1 + *count + 1));
}

/// A variable of the environment as a number; `otherwise` when it is missing or no number.
std::uint32_t number_in_environment(std::string_view name, std::uint32_t otherwise) noexcept {
    for (char** entry = environment(); *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        if (!text.starts_with(name) || text.substr(name.size(), 1) != "=") continue;
        std::uint32_t value = 0;
        const char* const end = text.data() + text.size();
        const auto parsed = std::from_chars(text.data() + name.size() + 1, end, value);
        return parsed.ec == std::errc{} && parsed.ptr == end ? value : otherwise;
    }
    return otherwise;
}

/// Moves the start of libc's heap; where that is refused, the check it gives is lost and no more.
void move_private_heap(std::uint32_t rank) noexcept {
    // One arena: further ones would be mapped at addresses that are equal on all nodes.
    mallopt(M_ARENA_MAX, 1);
    const auto now = reinterpret_cast<std::uintptr_t>(__sbrk(0));
    const std::uintptr_t begin = round_up(now, page_bytes);
    const std::size_t gap = rank * private_heap_step_bytes;
    private_heaps = begin;
    own_private_heap = rank;
    if (gap == 0 || __sbrk(static_cast<std::intptr_t>(begin + gap - now)) == nullptr) return;
    if (reinterpret_cast<std::uintptr_t>(__sbrk(0)) < begin + gap) return;
    mprotect(reinterpret_cast<void*>(begin), gap, PROT_NONE);
}

void before_fork() noexcept {
    if (dsm::Heap* const heap = heap_seen.load(std::memory_order_acquire)) heap->before_fork();
}
void after_fork() noexcept {
    if (dsm::Heap* const heap = heap_seen.load(std::memory_order_acquire)) heap->after_fork();
}

/// The global heap, once there is one.
dsm::Heap* global_heap() noexcept {
    // Acquire: pairs with the release below.
    dsm::Heap* heap = heap_seen.load(std::memory_order_acquire);
    if (heap != nullptr) [[likely]]
        return heap;
    World* const node = world();
    if (node == nullptr || !node->heap) return nullptr;
    const dsm::AddressRange made = node->map->early_arena();
    HIROBA_INVARIANT(made.address == early.range().address && made.bytes == early.range().bytes,
                     "early allocations went to 0x%lx, the early arena is at 0x%lx",
                     early.range().address, made.address);
    heap = node->heap.get();
    heap_seen.store(heap, std::memory_order_release);
    return heap;
}

/// Whether a ProgramMemory lives: libc allocates for the program.
constinit thread_local bool serves_thread = false;

constinit std::atomic<int> perturb{0};

void say_refused(std::size_t bytes, dsm::Heap* heap) noexcept {
    static constinit std::atomic<bool> said{false};
    if (said.exchange(true, std::memory_order_relaxed)) return;
    if (heap != nullptr) {
        say("malloc of %lu bytes refused: arena of node %u has %lu left; set HIROBA_HEAP", bytes,
            world()->job.self.value, heap->bytes_free());
    } else {
        say("malloc of %lu bytes refused: %lu of %lu bytes left for what libraries allocate before "
            "the program starts",
            bytes, early.bytes_free(), early.range().bytes);
    }
}

bool is_looked_at(std::size_t bytes) noexcept {
    constexpr std::size_t by_own_limit_min = std::size_t{64} << 10;
    return bytes >= limited_bytes_min ||
           (bytes >= by_own_limit_min && own_memory_limit() != UINT64_MAX);
}

/// A large block that can never be filled is refused here, with the numbers.
bool may_use(std::size_t bytes, dsm::Heap& heap) noexcept {
    const std::uint64_t arena = world()->map->shape().heap_bytes;
    const std::uint64_t taken = arena - std::min<std::uint64_t>(arena, heap.bytes_free());
    // Relaxed: a count.
    const std::uint64_t used =
        taken - std::min<std::uint64_t>(taken, reserved_bytes.load(std::memory_order_relaxed));
    // As the kernel refuses: without a line.
    if (bytes > own_memory_limit() || used > own_memory_limit() - bytes) return false;
    // An arena without room for the bytes refuses them with a line of its own.
    if (fits_memory(used, bytes) || bytes > arena - taken) return true;
    static constinit std::atomic<bool> said{false};
    if (said.exchange(true, std::memory_order_relaxed)) return false;
    say("malloc of %lu bytes refused: with the %lu in use and a second copy of each that is %lu "
        "bytes, of %lu this node may use (%s); use more nodes, or set HIROBA_MEMORY",
        bytes, used, copies_per_byte * (used + bytes), memory_limit().bytes, memory_limit().whose);
    return false;
}

}  // namespace

bool detail::decide_spread() noexcept {
    // Before libc has set up the environment only the loader allocates: nothing of the program.
    if (environ == nullptr) return false;
    // A call from inside the decision is this library's or libc's own. No second thread exists yet.
    if (deciding.exchange(true, std::memory_order_relaxed)) return false;
    const std::uint32_t nodes = number_in_environment("HIROBA_JOB_NODES", 1);
    if (nodes > 1) {
        const auto shape = space_shape(nodes, number_in_environment("HIROBA_JOB_THREADS", 1));
        if (!shape) die(exit_usage, "%s", shape.error().text.c_str());
        const dsm::AddressMap map{*shape};
        // The arenas are rounded up to the block size. That is not known yet, so the range is
        // rounded up to the largest one there is.
        heap_arenas = {map.early_arena().end(),
                       round_up(map.shape().heap_bytes, block_bytes_max) * nodes};
        early.open(map.early_arena(), map.main_range());
        common = static_cast<std::byte*>(early.allocate(common_bytes, page_bytes));
        node_pages =
            static_cast<std::byte*>(early.allocate(std::size_t{nodes} * page_bytes, page_bytes));
        learn_callers();
        // Registered first, our handlers run after all others before a fork and before them after
        // it, so none of them can allocate while the latches are held.
        pthread_atfork(&before_fork, &after_fork, &after_fork);
        private_heap_count = nodes;
        move_private_heap(number_in_environment("HIROBA_JOB_RANK", 0));
    }
    spread.store(nodes > 1 ? Spread::several : Spread::alone, std::memory_order_release);
    return nodes > 1;
}

bool is_one_of_several() noexcept {
    // `environ` last: where the program refers to it, it lies in memory that becomes global while
    // the runtime's threads already make calls.
    if (detail::spread.load(std::memory_order_relaxed) != Spread::unknown || environ != nullptr)
        return is_spread();
    return number_in_environment("HIROBA_JOB_NODES", 1) > 1;
}

ProgramMemory::ProgramMemory(const void* return_address) noexcept : before_(serves_thread) {
    if (is_spread() && is_for_program(return_address)) serves_thread = true;
}

ProgramMemory::~ProgramMemory() { serves_thread = before_; }

bool is_for_program(const void* return_address) noexcept {
    switch (caller_of(return_address)) {
        case Caller::program: return true;
        case Caller::language_runtime: return global_heap() != nullptr;
        case Caller::system: return serves_thread;
    }
    return true;
}

std::optional<NodeId> foreign_private_heap(const void* block) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    if (private_heaps == 0 || address < private_heaps) return std::nullopt;
    const std::size_t rank = (address - private_heaps) / private_heap_step_bytes;
    if (rank >= private_heap_count || rank == own_private_heap) return std::nullopt;
    // Our own may have grown over the next one's place.
    const bool behind = rank > own_private_heap;
    if (behind && address < reinterpret_cast<std::uintptr_t>(__sbrk(0))) return std::nullopt;
    return NodeId{static_cast<std::uint32_t>(rank)};
}

bool is_program_memory(const void* block) noexcept {
    return heap_arenas.contains(reinterpret_cast<std::uintptr_t>(block)) || early.owns(block);
}

dsm::AddressRange early_allocations() noexcept { return early.used(); }

std::byte* common_memory() noexcept { return common; }
std::byte* page_of_node(NodeId node) noexcept { return node_pages + node.value * page_bytes; }

int perturb_byte() noexcept { return perturb.load(std::memory_order_relaxed); }

void set_perturb_byte(int byte) noexcept { perturb.store(byte, std::memory_order_relaxed); }

void* allocate_for_program(std::size_t bytes, std::size_t alignment, bool zeroed) noexcept {
    const RuntimeScope latches;
    const int errno_before = errno;
    dsm::Heap* const heap = global_heap();
    bool is_zero = true;
    void* block = nullptr;
    if (bytes <= PTRDIFF_MAX) {
        if (heap != nullptr && is_looked_at(bytes) && !may_use(bytes, *heap)) {
            errno = ENOMEM;
            return nullptr;
        }
        block = heap != nullptr ? heap->allocate(bytes, alignment, &is_zero)
                                : early.allocate(bytes, alignment);
        if (block == nullptr) say_refused(bytes, heap);
    }
    if (block == nullptr) {
        errno = ENOMEM;
        return nullptr;
    }
    if (zeroed && !is_zero) std::memset(block, 0, bytes);
    // Relaxed: a thread that has not heard of it allocates as before.
    const int perturbed = perturb.load(std::memory_order_relaxed);
    if (!zeroed && perturbed != 0) std::memset(block, perturbed ^ 0xff, bytes);
    errno = errno_before;
    return block;
}

void* reserve_for_program(std::size_t bytes, bool accessible) noexcept {
    const RuntimeScope latches;
    dsm::Heap* const heap = global_heap();
    void* block = nullptr;
    if (heap != nullptr && bytes <= PTRDIFF_MAX) block = heap->reserve(bytes);
    if (block == nullptr) {
        say_refused(bytes, heap);
        return nullptr;
    }
    const std::size_t held = heap->usable_bytes(block);
    const auto begin = reinterpret_cast<std::uintptr_t>(block);
    for (std::uintptr_t at = begin; at < begin + held;) {
        const dsm::AddressRange used = heap->first_committed({at, begin + held - at});
        if (used.bytes > 0) std::memset(reinterpret_cast<void*>(used.address), 0, used.bytes);
        at = used.bytes > 0 ? used.end() : begin + held;
    }
    if (accessible) heap->resize(block, held);
    reserved_block_changed(0, held);
    return block;
}

void give_back_reserved(void* block) noexcept {
    reserved_block_changed(program_block_bytes(block), 0);
    give_back(block);
}

void reserved_block_changed(std::size_t before, std::size_t after) noexcept {
    reserved_bytes.fetch_add(after - before, std::memory_order_relaxed);
}

void give_back(void* block) noexcept {
    if (early.owns(block)) return;
    const RuntimeScope latches;
    const int errno_before = errno;
    dsm::Heap* const heap = global_heap();
    if (heap == nullptr) fatal("free(): %p is not an allocated block", block);
    heap->deallocate(block);
    errno = errno_before;
}

std::size_t program_block_bytes(const void* block) noexcept {
    if (early.owns(block)) return early.usable_bytes(block);
    dsm::Heap* const heap = global_heap();
    return heap != nullptr ? heap->usable_bytes(block) : 0;
}

void* resize_for_program(void* block, std::size_t bytes) noexcept {
    const std::size_t held = program_block_bytes(block);
    if (held == 0) fatal("realloc(): %p is not an allocated block", block);
    if (bytes <= held && bytes >= held / 2) return block;
    dsm::Heap* const heap = global_heap();
    {
        const RuntimeScope latches;
        if (heap != nullptr && heap->resize(block, bytes)) return block;
    }

    void* const moved = allocate_for_program(bytes, 16, false);
    if (moved == nullptr) return bytes <= held ? block : nullptr;
    std::memcpy(moved, block, std::min(held, bytes));
    give_back(block);
    return moved;
}

void* note_allocation(void* block, std::size_t bytes, const void* return_address) noexcept {
    constexpr std::size_t noted_bytes_min = 1024;
    if (bytes >= noted_bytes_min && block != nullptr && is_recording()) [[unlikely]]
        record(RecordKind::allocated, reinterpret_cast<std::uintptr_t>(block), bytes,
               reinterpret_cast<std::uintptr_t>(return_address));
    return block;
}

void* allocate(std::size_t bytes, const void* return_address) noexcept {
    if (is_spread() && is_for_program(return_address)) {
        return note_allocation(allocate_for_program(bytes, 16, false), bytes, return_address);
    }
    loader_allocates();
    return libc_malloc(bytes);
}

void* allocate_aligned(std::size_t alignment, std::size_t bytes,
                       const void* return_address) noexcept {
    if (is_spread() && is_for_program(return_address)) {
        return note_allocation(allocate_for_program(bytes, alignment, false), bytes,
                               return_address);
    }
    return libc_memalign(alignment, bytes);
}

void release_block(void* block) noexcept {
    if (block == nullptr) return;
    if (is_spread() && is_program_memory(block)) {
        give_back(block);
    } else {
        libc_free(block);
    }
}

}  // namespace hiroba::abi
