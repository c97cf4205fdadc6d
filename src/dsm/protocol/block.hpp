// SPDX-License-Identifier: BSD-3-Clause
// Role: the states of one block at one node and how they change (docs/protocol.md#block).
// Invariant: private copy == public copy (the twin) in every state but invalid_dirty,
// readonly_dirty, writable, pinned, exclusive and held; a pair without a row means a bug: the
// node stops.
// Source: the paper, section 3.4 and figure 3; rows for rebasing:
// docs/decisions/unmerged-bytes-stay-on-top.md.
#pragma once

#include <cstdint>
#include <optional>

#include "base/fatal.hpp"

namespace hiroba::dsm {

/// State of a block at one node. Zero-filled memory means invalid.
enum class BlockState : std::uint8_t {
    invalid,         ///< inaccessible, nothing unmerged
    invalid_dirty,   ///< inaccessible, holds bytes the home does not: merged at the next release
    invalidating,    ///< made inaccessible, not yet known whether it holds unmerged bytes
    readonly,        ///< readable; a write will be noticed
    readonly_dirty,  ///< as readonly, but holds unmerged bytes that no write will announce
    writable,        ///< writable; may hold unmerged bytes; visited by the next release
    pinned,          ///< never inaccessible, compared if written: stacks of this node's threads
    discarded,       ///< inaccessible, all zero: freed here, perhaps not yet on every node
    exclusive,       ///< writable, the only readable copy of all nodes: no release looks at it
    held,            ///< as writable, its lock kept, since this node makes atomics in a row there
};
inline constexpr unsigned block_states = 10;

enum class BlockEvent : std::uint8_t {
    read_fault,     ///< the program, or the kernel for it, reads
    write_fault,    ///< the program writes what is not writable
    pinned_fault,   ///< first touch of memory that must stay accessible
    written,        ///< the fault engine saw a write since the last release
    stale,          ///< a newer notice or min_wts says the copy must not be read any more
    found_equal,    ///< compared after becoming inaccessible: private equals twin
    found_changed,  ///< ... it does not
    merged,         ///< a release has merged it (or found nothing to merge)
    atomic,         ///< an atomic read-modify-write was made in the critical section
    unpinned,       ///< about to become stale, and no system call needs it pinned any more
    freed,          ///< the program uses it on no node any more: both copies become zero
    unread,         ///< a release finds it written, and that no other node can read any of it
    taken,          ///< about to be written, and no node can read any of it
    wanted,         ///< another node wants it, or this one does what needs a tracked block
    handed_over,    ///< another node will want it whole: no copy stays readable here
    repeated,       ///< an atomic follows others of this node
};
inline constexpr unsigned block_events = 16;

/// What the engine does on the way, in this order: rebase or fetch, then (un)map.
enum class BlockWork : std::uint8_t {
    none = 0,
    fetch = 1,   ///< private := public := newest
    rebase = 2,  ///< private := newest with our changes on top; public := newest
    map_read = 4,
    map_write = 8,
    unmap = 16,     ///< when stale, then compare: found_equal or found_changed; or publish
    remember = 32,  ///< put on the list of unmerged blocks, which the next release visits
};

constexpr BlockWork operator|(BlockWork a, BlockWork b) {
    return static_cast<BlockWork>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
constexpr bool has(BlockWork all, BlockWork one) {
    return (static_cast<std::uint8_t>(all) & static_cast<std::uint8_t>(one)) != 0;
}

struct BlockStep {
    BlockState next;
    BlockWork work;
};

/// True when the program can read the block without a fault.
constexpr bool readable(BlockState state) {
    return state == BlockState::readonly || state == BlockState::readonly_dirty ||
           state == BlockState::writable || state == BlockState::pinned ||
           state == BlockState::exclusive || state == BlockState::held;
}

/// True when this node keeps the block's lock until somebody wants it.
constexpr bool keeps_lock(BlockState state) {
    return state == BlockState::exclusive || state == BlockState::held;
}

/// True when there is nothing to merge: a release that has the block on its list passes it by.
constexpr bool settled(BlockState state) {
    return state == BlockState::invalid || state == BlockState::discarded ||
           state == BlockState::exclusive;
}

/// As docs/protocol.md calls them.
constexpr const char* name_of(BlockState state) {
    constexpr const char* names[block_states] = {
        "invalid",  "invalid_dirty", "invalidating", "readonly",  "readonly_dirty",
        "writable", "pinned",        "discarded",    "exclusive", "held"};
    return names[static_cast<unsigned>(state)];
}
constexpr const char* name_of(BlockEvent event) {
    constexpr const char* names[block_events] = {
        "read_fault",    "write_fault", "pinned_fault", "written",  "stale", "found_equal",
        "found_changed", "merged",      "atomic",       "unpinned", "freed", "unread",
        "taken",         "wanted",      "handed_over",  "repeated"};
    return names[static_cast<unsigned>(event)];
}

[[noreturn]] inline void unexpected(BlockState state, BlockEvent event) {
    fatal("block protocol: no row for state %s and event %s", name_of(state), name_of(event));
}

constexpr std::uint16_t on(BlockState state, BlockEvent event) {
    return static_cast<std::uint16_t>(static_cast<unsigned>(state) << 8 |
                                      static_cast<unsigned>(event));
}

// NOLINTBEGIN(bugprone-branch-clone): a row for each pair, also where two do the same.
/// The part of find_step() about memory that the program has freed (docs/protocol.md#freed).
constexpr std::optional<BlockStep> find_step_of_freed(BlockState state, BlockEvent event) {
    using enum BlockState;
    using enum BlockEvent;
    using enum BlockWork;

    switch (on(state, event)) {
        // On every node, while no thread uses it. Unmerged bytes belong to no object any more.
        case on(invalid, freed):
        case on(invalid_dirty, freed):
        case on(discarded, freed): return BlockStep{discarded, none};
        case on(readonly, freed):
        case on(readonly_dirty, freed):
        case on(writable, freed): return BlockStep{discarded, unmap};

        // As invalid: only reading ahead, which no thread waits for, must know the difference.
        case on(discarded, read_fault): return BlockStep{readonly, fetch | map_read};
        case on(discarded, write_fault): return BlockStep{writable, fetch | map_write};
        case on(discarded, pinned_fault): return BlockStep{pinned, fetch | map_write};
        case on(discarded, atomic): return BlockStep{writable, rebase | map_write};
        case on(discarded, written): return BlockStep{discarded, none};

        default: return std::nullopt;
    }
}

/// The part of find_step() about blocks that no other node can read (docs/protocol.md#exclusive).
constexpr std::optional<BlockStep> find_step_of_exclusive(BlockState state, BlockEvent event) {
    using enum BlockState;
    using enum BlockEvent;
    using enum BlockWork;

    switch (on(state, event)) {
        case on(writable, unread):
        case on(pinned, unread): return BlockStep{exclusive, none};
        case on(exclusive, wanted): return BlockStep{writable, none};
        case on(exclusive, handed_over): return BlockStep{invalid, unmap};
        case on(invalid, taken): return BlockStep{exclusive, map_write};

        // The kernel dropped the mapping, or has it protected yet.
        case on(exclusive, read_fault):
        case on(exclusive, write_fault):
        case on(exclusive, pinned_fault):  // for the kernel to read: it may write what is exclusive
        case on(exclusive, atomic): return BlockStep{exclusive, map_write};
        // It was reported before, or lies between others that are scanned.
        case on(exclusive, written):
        case on(exclusive, merged): return BlockStep{exclusive, none};

        // Whatever needs a tracked block, or its lock, ends it first.
        case on(writable, repeated):
        case on(pinned, repeated): return BlockStep{held, none};
        case on(held, wanted): return BlockStep{writable, none};
        case on(held, written): return BlockStep{held, none};
        case on(held, read_fault):
        case on(held, write_fault):
        case on(held, pinned_fault):  // for the kernel to read
        case on(held, atomic): return BlockStep{held, map_write};

        default: return find_step_of_freed(state, event);
    }
}

/// Where a block goes on `event`, and what to do on the way; empty: that must not happen. Pure.
constexpr std::optional<BlockStep> find_step(BlockState state, BlockEvent event) {
    using enum BlockState;
    using enum BlockEvent;
    using enum BlockWork;

    switch (on(state, event)) {
        case on(invalid, read_fault): return BlockStep{readonly, fetch | map_read};
        case on(invalid, write_fault): return BlockStep{writable, fetch | map_write};
        case on(invalid, pinned_fault): return BlockStep{pinned, fetch | map_write};

        // Unmerged bytes survive the fetch on top of it, and only a flag tells of them from now on:
        // write tracking sees a clean page.
        case on(invalid_dirty, read_fault):
            return BlockStep{readonly_dirty, rebase | map_read | remember};
        case on(invalid_dirty, write_fault): return BlockStep{writable, rebase | map_write};

        // Faults on what is accessible: another thread was faster, or the kernel dropped the
        // mapping.
        case on(readonly, read_fault): return BlockStep{readonly, map_read};
        case on(readonly_dirty, read_fault): return BlockStep{readonly_dirty, map_read};
        case on(writable, read_fault): return BlockStep{writable, map_write};
        case on(readonly, write_fault):
        case on(readonly_dirty, write_fault):
        case on(writable, write_fault): return BlockStep{writable, map_write};
        case on(pinned, read_fault):
        case on(pinned, write_fault):
        case on(pinned, pinned_fault): return BlockStep{pinned, map_write};

        // A buffer that the kernel is about to fill: it must stay writable until the call is over.
        case on(invalid_dirty, pinned_fault): return BlockStep{pinned, rebase | map_write};
        case on(readonly, pinned_fault):
        case on(readonly_dirty, pinned_fault):
        case on(writable, pinned_fault): return BlockStep{pinned, map_write};

        case on(readonly, written):
        case on(readonly_dirty, written):
        case on(writable, written): return BlockStep{writable, none};
        case on(pinned, written): return BlockStep{pinned, none};
        // Reported before it became inaccessible; the comparison has settled what it holds.
        case on(invalid, written): return BlockStep{invalid, none};
        case on(invalid_dirty, written): return BlockStep{invalid_dirty, none};

        case on(readonly, stale):
        case on(readonly_dirty, stale):
        case on(writable, stale): return BlockStep{invalidating, unmap};
        case on(invalidating, found_equal): return BlockStep{invalid, none};
        case on(invalidating, found_changed): return BlockStep{invalid_dirty, remember};
        case on(pinned, stale): return BlockStep{pinned, rebase};
        case on(pinned, unpinned): return BlockStep{writable, none};

        case on(invalid_dirty, merged): return BlockStep{invalid, none};
        case on(readonly, merged):
        case on(readonly_dirty, merged):
        case on(writable, merged): return BlockStep{readonly, none};
        case on(pinned, merged): return BlockStep{pinned, none};

        case on(invalid, atomic):
        case on(invalid_dirty, atomic):
        case on(readonly, atomic):
        case on(readonly_dirty, atomic):
        case on(writable, atomic): return BlockStep{writable, rebase | map_write};
        case on(pinned, atomic): return BlockStep{pinned, rebase | map_write};

        default: return find_step_of_exclusive(state, event);
    }
}

// NOLINTEND(bugprone-branch-clone)

/// As find_step(); a pair without a row stops the node.
constexpr BlockStep step(BlockState state, BlockEvent event) {
    const std::optional<BlockStep> found = find_step(state, event);
    if (!found) unexpected(state, event);
    return *found;
}

}  // namespace hiroba::dsm
