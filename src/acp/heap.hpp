// SPDX-License-Identifier: BSD-3-Clause
// Role: the memory of acp_malloc: each rank has a heap, of which any rank takes blocks.
// Invariant: a heap is changed by its owner alone. What is asked of another's goes there as a
// message and is carried out by whichever thread polls, so the owner's program may compute.
//
// A heap is areas of registered memory, mapped when they are first needed: it has no size to be
// set, and costs nothing until it is used. Areas stay until the rank leaves the job.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "acp/heap_blocks.hpp"
#include "base/result.hpp"
#include "gas/global_memory.hpp"
#include "net/net.hpp"

namespace hiroba::acp {

/// Any thread; what may wait, not from handlers. Make it before Endpoint::connect(); it outlives
/// the last poll.
class Heap {
public:
    Heap(net::Endpoint& endpoint, gas::GlobalMemory& memory);
    ~Heap();
    Heap(const Heap&) = delete;

    /// A block of `bytes` (0: as 1) in the memory of `at`, aligned to 16, of undefined content.
    /// Waits for the answer of another node.
    Result<std::uint64_t> allocate(NodeId at, std::uint64_t bytes);
    /// Gives a block back to the heap of `at`. Waits for its answer: an address that is no block is
    /// refused.
    Result<void> release(NodeId at, std::uint64_t address);

    /// A block of this node's own heap that accesses to other memory start or end in.
    struct Scratch {
        static constexpr std::uint64_t bytes = 4096;
        std::uint64_t address = 0;
        std::byte* at = nullptr;
    };
    /// Refused when there is no memory left. To be given back.
    Result<Scratch> borrow_scratch();
    void give_back(Scratch scratch);

private:
    struct Message;
    struct Asked {
        std::uint64_t value = 0;  ///< of the answer: an address, 1 or 0
        std::atomic<bool> is_answered{false};
    };
    struct Area {
        std::byte* first = nullptr;
        std::uint64_t bytes = 0;
        std::uint64_t address = 0;  ///< of its first byte
    };
    static void on_message(void* self, NodeId from, Bytes body) noexcept;
    /// Does what is asked of this node's heap. @return the value of the answer
    std::uint64_t carry_out(const Message& asked);
    std::uint64_t ask(NodeId at, Message question);
    std::uint64_t take(std::uint64_t bytes);
    bool add_area(std::uint64_t bytes);
    std::byte* local(std::uint64_t address) const noexcept;

    net::Endpoint& endpoint_;
    gas::GlobalMemory& memory_;
    std::mutex latch_;  ///< of all below; nothing is sent and nobody waits while it is held
    HeapBlocks blocks_;
    std::vector<Area> areas_;
    std::vector<Scratch> scratch_;
    std::vector<Asked*> asked_;  ///< by token; nullptr: the token is free
};

}  // namespace hiroba::acp
