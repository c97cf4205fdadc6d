// SPDX-License-Identifier: BSD-3-Clause
// Role: the allocator in global memory: size classes, metadata out of line, remote free.
// Invariant: no metadata lies in the pages it manages; a block freed by another node than the one
// whose arena it is from is reused only after that node's release has been acquired here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"

namespace hiroba::net {
class Endpoint;
}

namespace hiroba::dsm {

class AddressMap;
struct AddressRange;
class SharedMemory;

struct HeapOptions {
    /// So much of a node's freed memory may stay with it for reuse (HIROBA_KEEP_FREED).
    std::size_t keep_freed_bytes = std::size_t{32} << 20;
};

/// Thread: any, at once. Never touches the memory it hands out; never allocates by malloc.
class Heap {
public:
    /// Registers the span table; before Endpoint::connect(), attach() after it.
    static Result<std::unique_ptr<Heap>> create(net::Endpoint& endpoint, const AddressMap& map,
                                                SharedMemory& memory,
                                                const HeapOptions& options = {});
    virtual ~Heap() = default;
    virtual void attach() = 0;

    /// nullptr when the arena is full. `alignment` a power of two. Fresh memory from the arena is
    /// zero; `*zeroed` says whether this block is. Blocks of a page and more start on a page.
    virtual void* allocate(std::size_t bytes, std::size_t alignment, bool* zeroed) noexcept = 0;
    /// Address space, a part of which will be used: what commit() names. Zero. nullptr: no room.
    virtual void* reserve(std::size_t bytes) noexcept = 0;
    /// Any node: the program may write these pages from now on. Of no effect in other blocks.
    virtual void commit(AddressRange pages) noexcept = 0;
    /// Whether reserve() of this node made the block.
    virtual bool is_reserved(const void* block) noexcept = 0;
    /// Returns the first part of pages of such a block that has been committed; none: no bytes.
    virtual AddressRange first_committed(AddressRange pages) noexcept = 0;
    /// Any node's block; freeing what is not allocated is fatal with the address.
    virtual void deallocate(void* block) noexcept = 0;
    /// Makes an own block of a page or more `bytes` long in place. False: nothing was done.
    virtual bool resize(void* block, std::size_t bytes) noexcept = 0;
    /// Bytes usable at `block`, whichever node it came from.
    virtual std::size_t usable_bytes(const void* block) noexcept = 0;
    virtual bool owns(const void* address) const noexcept = 0;

    /// Bytes in free pages of this node's arena.
    virtual std::size_t bytes_free() noexcept = 0;

    /// Sends this node's pending remote frees to their owners. Call after a release and before the
    /// news of that synchronization are encoded. Releases once more if there is something to send.
    virtual void flush_remote_frees() noexcept = 0;
    /// Makes remote frees reusable that had come by the call before, and learns the news of those
    /// that came since. Call right after an acquire: what it learns must not be joined between
    /// that acquire and SharedMemory::everyone_knows().
    virtual void accept_remote_frees() noexcept = 0;

    /// Goes on with giving freed pages back to the machine, this node's and others'; a part of
    /// deallocate() and of accept_remote_frees(). For nodes that do neither for long: whether there
    /// is something to do (one or two loads), and doing it. No role and no latch held.
    virtual bool has_freed_pages() const noexcept = 0;
    virtual void return_freed_pages() noexcept = 0;

    /// Around fork(): the child finds the bookkeeping whole, not in the middle of a change.
    virtual void before_fork() noexcept = 0;
    virtual void after_fork() noexcept = 0;
};

}  // namespace hiroba::dsm
