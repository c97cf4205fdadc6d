// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/block/lease_queue.hpp"

#include <algorithm>
#include <mutex>

namespace hiroba::dsm {

namespace {
constexpr auto ends_later = [](const LeaseQueue::Lease& a, const LeaseQueue::Lease& b) {
    return a.until > b.until;
};
}  // namespace

void LeaseQueue::push(Lease lease) noexcept {
    const std::scoped_lock guard{latch_};
    HIROBA_INVARIANT(count_ < heap_.size(), "%lu leases", count_);
    heap_[count_++] = lease;
    std::push_heap(heap_.data(), heap_.data() + count_, ends_later);
}

bool LeaseQueue::pop_before(Timestamp min_wts, Lease& lease) noexcept {
    const std::scoped_lock guard{latch_};
    if (count_ == 0 || heap_[0].until >= min_wts) return false;
    lease = heap_[0];
    std::pop_heap(heap_.data(), heap_.data() + count_, ends_later);
    --count_;
    return true;
}

}  // namespace hiroba::dsm
