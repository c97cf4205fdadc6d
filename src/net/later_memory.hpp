// SPDX-License-Identifier: BSD-3-Clause
// Role: memory of programs that comes and goes after connect(): of all nodes together, or of one
// alone, which others then attach to.
//
// Providers know regions from connect() on, so there is one more of them, large and sparse, whose
// pages cost nothing until they are touched: its first half is dealt out by all nodes together,
// each by the same rule, its second half by each node for itself. What is given back is cleared
// before any node can have it again. Memory that a program brings itself is served by its node's
// handlers (net/served_memory.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/latch.hpp"
#include "base/result.hpp"
#include "net/async.hpp"
#include "net/collectives.hpp"
#include "net/served_memory.hpp"

namespace hiroba::net {

/// Free pages of a range, first fit. Nothing but arithmetic.
class FreeRanges {
public:
    FreeRanges(std::uint64_t first, std::uint64_t bytes);
    /// The place of `bytes` bytes, whole pages; none: there is no room.
    std::optional<std::uint64_t> take(std::uint64_t bytes);
    /// How many bytes were taken at `first`; 0: nothing was.
    std::uint64_t taken_at(std::uint64_t first) const noexcept;
    void give_back(std::uint64_t first);

private:
    std::map<std::uint64_t, std::uint64_t> free_, taken_;  ///< place, bytes
};

/// What a node has exposed, as it tells others.
struct ExposedMemory {
    NodeId node{};
    bool is_served = false;
    std::uint64_t number = 0;  ///< place in the region, or of served memory
    std::uint64_t bytes = 0;
};

class LaterMemory {
public:
    /// Takes the region; before connect(), the same on every node. Where a limit of the address
    /// space leaves no room there is none, and requests for memory say so.
    static Result<std::unique_ptr<LaterMemory>> make(Async& async, ServedMemory& served);
    /// After connect().
    void attach();

    // --- collective: one thread of each node -----------------------------------------------------
    Result<Handle> allocate(std::uint64_t bytes, Collectives& collectives);
    Result<void> free(Handle handle, Collectives& collectives);

    // --- by one node; any thread -----------------------------------------------------------------
    Result<ExposedMemory> expose(std::uint64_t bytes);
    Result<ExposedMemory> expose(MutableBytes own);
    Result<void> withdraw(const ExposedMemory& memory);
    /// A handle for what any node has exposed; it asks nobody.
    Result<Handle> attach_to(const ExposedMemory& memory);

private:
    LaterMemory(Async& async, ServedMemory& served, std::uint64_t bytes);
    void clear(std::uint64_t first, std::uint64_t bytes) noexcept;
    std::string of_room() const;

    Async& async_;
    ServedMemory& served_;
    NodeId self_;
    std::uint64_t bytes_;  ///< of the region; 0: there is none
    RegionId region_;
    std::byte* local_ = nullptr;
    std::vector<std::byte*> peers_;
    Latch latch_;  ///< guards all below
    FreeRanges of_all_, own_;
    std::map<std::uint32_t, std::uint64_t> places_;  ///< of handles of allocate()
    std::map<std::uint64_t, MutableBytes> served_own_;
};

}  // namespace hiroba::net
