// SPDX-License-Identifier: BSD-3-Clause
// Role: see pinned_regions.hpp.
#include "net/provider/verbs/pinned_regions.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/fatal.hpp"
#include "base/thread_context.hpp"

namespace hiroba::net::verbs {

PinnedRegions::~PinnedRegions() {
    const CallsOfOwnLibrary of_verbs;
    for (const Region& region : regions_) {
        for (ibv_mr* const chunk : region.chunks)
            if (chunk != nullptr) device_.ibv().dereg_mr(chunk);
        if (region.own) munmap(region.start, round_up(region.bytes, page_bytes));
    }
}

void PinnedRegions::add(std::byte* start, std::size_t bytes, bool own) {
    Region region{start, bytes, own, {}};
    region.chunks.resize((bytes + chunk_bytes - 1) / chunk_bytes);
    regions_.push_back(std::move(region));
}

ibv_mr* PinnedRegions::pin(std::uint32_t region, std::uint32_t chunk) noexcept {
    HIROBA_INVARIANT(region < regions_.size() && chunk < regions_[region].chunks.size(),
                     "chunk %u of region %u", chunk, region);
    Region& of = regions_[region];
    const std::scoped_lock guard{latch_};
    ibv_mr*& pinned = of.chunks[chunk];
    if (pinned != nullptr) return pinned;
    const std::size_t from = std::size_t{chunk} * chunk_bytes;
    const CallsOfOwnLibrary of_verbs;
    pinned =
        device_.pin(of.start + from, std::min(chunk_bytes, round_up(of.bytes, page_bytes) - from));
    return pinned;
}

std::optional<PinnedRegions::Local> PinnedRegions::find(const std::byte* memory,
                                                        std::size_t bytes) noexcept {
    for (std::uint32_t i = 0; i < regions_.size(); ++i) {
        const Region& region = regions_[i];
        if (memory < region.start || memory >= region.start + region.bytes) continue;
        const auto offset = static_cast<std::size_t>(memory - region.start);
        const auto chunk = static_cast<std::uint32_t>(offset / chunk_bytes);
        const ibv_mr* const pinned = pin(i, chunk);
        if (pinned == nullptr) return std::nullopt;
        const std::size_t end = std::min((chunk + 1) * chunk_bytes, region.bytes);
        return Local{pinned->lkey, std::min(bytes, end - offset)};
    }
    return std::nullopt;
}

PeerKeys::PeerKeys(std::uint32_t nodes, std::vector<std::size_t> region_bytes)
    : region_bytes_(std::move(region_bytes)), keys_(nodes) {}

PeerKeys::Key PeerKeys::look(NodeId peer, std::uint32_t region, std::uint32_t chunk) noexcept {
    const std::scoped_lock guard{latch_};
    auto& of_peer = keys_[peer.value];
    if (of_peer.empty()) of_peer.resize(region_bytes_.size());
    auto& chunks = of_peer[region];
    if (chunks.empty()) chunks.resize((region_bytes_[region] + chunk_bytes - 1) / chunk_bytes);
    const Key found = chunks[chunk];
    if (found.state == State::unknown) chunks[chunk].state = State::asked;
    return found;
}

void PeerKeys::tell(NodeId peer, std::uint32_t region, std::uint32_t chunk,
                    std::uint32_t key) noexcept {
    const std::scoped_lock guard{latch_};
    keys_[peer.value][region][chunk] = {State::known, key};
}

}  // namespace hiroba::net::verbs
