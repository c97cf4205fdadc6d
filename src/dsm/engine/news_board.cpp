// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/engine/news_board.hpp"

#include <atomic>
#include <cstring>
#include <span>

namespace hiroba::dsm {

Result<gas::Segment> NewsBoard::allocate(net::Endpoint& endpoint, std::size_t news_bytes_max) {
    return gas::Segment::allocate(
        endpoint, news_at + round_up(news_bytes_max, 8) + std::size_t{16} * endpoint.nodes());
}

void NewsBoard::write(ReleaseNumber release, std::size_t bytes) noexcept {
    const std::uint64_t before = own(version_at).load();
    segment_.store({self_, version_at}, before + 1);
    // The odd version must be seen before any changed byte; pairs with the fence in read().
    std::atomic_thread_fence(std::memory_order_release);
    segment_.store({self_, bytes_at}, bytes);
    segment_.put({self_, news_at}, {own_.data(), bytes});
    segment_.store({self_, release_at}, release);
    segment_.store({self_, version_at}, before + 2);
}

std::optional<Bytes> NewsBoard::read(NodeId node, ReleaseNumber release, MutableBytes to) noexcept {
    Backoff backoff;
    for (;; backoff.pause()) {
        std::uint64_t head[3];  // version, release, bytes
        segment_.get({node, version_at}, std::as_writable_bytes(std::span{head}));
        if (head[1] < release) return std::nullopt;
        if (head[0] % 2 != 0) continue;                       // it waits for nobody meanwhile
        std::atomic_thread_fence(std::memory_order_acquire);  // pairs with the version's stores
        segment_.get({node, news_at}, to.first(head[2]));
        // The bytes must be read before the version is looked at again, as in PublicCopies::read().
        std::atomic_thread_fence(std::memory_order_acquire);
        if (segment_.load({node, version_at}) == head[0]) return Bytes{to}.first(head[2]);
    }
}

void NewsBoard::want_block(NodeId node, std::uint32_t block) noexcept {
    segment_.store({node, block_wanted_at(self_)}, block + std::uint64_t{1});
    segment_.store({node, any_block_at}, 1);
}

void NewsBoard::note_wanted(NodeId from, std::uint32_t block) noexcept {
    own(block_wanted_at(from)).store(block + std::uint64_t{1});
    own(any_block_at).store(1);
}

void NewsBoard::ask_turn(NodeId node, std::uint32_t block, Turn turn) noexcept {
    using Access = gas::Segment::Access;
    Access accesses[] = {Access::store(segment_, turn_at(self_), turn_word(block, turn)),
                         Access::store(segment_, any_turn_at, 1)};
    gas::Segment::in_order(node, accesses);
}

bool NewsBoard::want(NodeId node, ReleaseNumber release) noexcept {
    std::uint64_t before = segment_.load({node, wanted_at});
    while (before < release) {
        const std::uint64_t found = segment_.compare_swap({node, wanted_at}, before, release);
        if (found == before) return true;
        before = found;
    }
    return false;
}

}  // namespace hiroba::dsm
