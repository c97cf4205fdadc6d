// SPDX-License-Identifier: BSD-3-Clause
// Role: one node's shared memory for the dsm_* tests, and its synchronization with the others.
// Invariant: made before Rig::connect(), by every node alike; one per process.
#pragma once

#include <memory>
#include <vector>

#include "dsm/dsm.hpp"
#include "dsm/sync/lock_table.hpp"
#include "tools/perf/raw_pages.hpp"
#include "tools/perf/rig.hpp"

namespace hiroba::tools::perf_parts {

class MemoryRig {
public:
    /// Registers the shared memory; before Rig::connect().
    static Result<std::unique_ptr<MemoryRig>> create(Rig& rig);
    /// Starts resolving faults, on the calling thread; once, after Rig::connect().
    void attach();

    /// Bytes of shared memory for the tests; node 0 is their first home.
    static constexpr std::size_t area_bytes = std::size_t{192} << 20;
    std::byte* area() const;
    std::byte* block(std::size_t index) const { return area() + index * block_bytes(); }
    std::size_t block_bytes() const { return memory_->engine().block_bytes; }
    const char* engine() const { return memory_->engine().name; }
    dsm::SharedMemory& memory() { return *memory_; }
    const dsm::AddressMap& map() const { return *map_; }
    dsm::LockTable& locks() { return *locks_; }
    Rig& rig() { return rig_; }

    /// Makes what this node wrote available, and nothing else.
    void release() { memory_->release(dsm::Others::running); }
    /// A barrier of all nodes: what any has written before is what all see after. Collective.
    /// @param others  stopped: as OpenMP's barrier and the C++ face's, where the thread is the only
    ///                one of its node: what was used after the last one comes with it. running:
    ///                what other nodes have written is fetched by a fault.
    void synchronize(dsm::Others others = dsm::Others::running);

    /// Pages for a floor, of the size and engine the shared memory has. Fatal where there are none.
    std::unique_ptr<RawPages> raw_pages(std::size_t pages);

private:
    /// What one node tells one other in the first exchange of a barrier. `most` is the longest of
    /// the sender's news: the longest of all decides for every node alike whether a second follows.
    struct Piece {
        std::uint32_t bytes = 0;
        std::uint32_t most = 0;
        std::byte news[40];  // none, or one notice: with its number, the piece fills one line
    };
    void exchange_long_news(std::size_t most);
    explicit MemoryRig(Rig& rig) : rig_(rig) {}

    Rig& rig_;
    std::unique_ptr<dsm::AddressMap> map_;
    std::unique_ptr<dsm::SharedMemory> memory_;
    std::unique_ptr<dsm::DebtPayer> payer_;
    std::unique_ptr<dsm::LockTable> locks_;
    std::vector<Piece> told_, heard_;
    std::vector<std::byte> news_, out_, in_;
};

}  // namespace hiroba::tools::perf_parts
