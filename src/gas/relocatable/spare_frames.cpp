// SPDX-License-Identifier: BSD-3-Clause
#include "gas/relocatable/spare_frames.hpp"

#include <errno.h>
#include <sys/mman.h>

#include <cstring>
#include <mutex>

namespace hiroba::gas {

void scrub(std::byte* at, std::size_t bytes, bool is_pinned) noexcept {
    if (is_pinned) {
        std::memset(at, 0, bytes);
        return;
    }
    // A hole in the file is a hole for every node that maps it.
    if (madvise(at, bytes, MADV_REMOVE) == 0) return;
    if (errno == EINVAL && madvise(at, bytes, MADV_DONTNEED) == 0) return;
    std::memset(at, 0, bytes);
}

std::optional<std::uint64_t> SpareFrames::keep(std::uint64_t page) {
    const std::scoped_lock guard{latch_};
    if (kept_.insert(page).second) order_.push_back(page);
    if (kept_.size() <= pages_max_) return std::nullopt;
    while (!kept_.contains(order_.front())) order_.pop_front();
    const std::uint64_t oldest = order_.front();
    order_.pop_front();
    return oldest;
}

bool SpareFrames::drop(std::uint64_t page) {
    const std::scoped_lock guard{latch_};
    return kept_.erase(page) != 0;
}

}  // namespace hiroba::gas
