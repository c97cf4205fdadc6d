// SPDX-License-Identifier: BSD-3-Clause
// Role: the readable blocks of a node in the order in which their leases end, so that raising
// min_wts touches only what it drops (the paper, section 3.3).
// Invariant: a block is in the queue at most once (BlockEntry::queued); its key may be older than
// its lease, which whoever pops it finds out.
#pragma once

#include <cstdint>
#include <span>

#include "base/latch.hpp"
#include "base/sparse_array.hpp"
#include "dsm/protocol/signature.hpp"

namespace hiroba::dsm {

/// Thread: any; async-signal-safe.
class LeaseQueue {
public:
    struct Lease {
        Timestamp until;
        BlockId block;
    };

    explicit LeaseQueue(std::size_t blocks) : heap_(blocks) {}

    void push(Lease lease) noexcept;
    /// Takes the lease that ends first if it ends before `min_wts`.
    bool pop_before(Timestamp min_wts, Lease& lease) noexcept;
    /// As they lie in the queue. While nobody changes it.
    std::span<const Lease> all() noexcept { return {heap_.data(), count_}; }

private:
    Latch latch_;
    std::size_t count_ = 0;
    SparseArray<Lease> heap_;
};

}  // namespace hiroba::dsm
