// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/news/news_board.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <span>

namespace hiroba::dsm {

namespace {
/// So much of the news comes with the words in front of it.
constexpr std::size_t news_along = 1024;
}  // namespace

Result<gas::Segment> NewsBoard::allocate(net::Endpoint& endpoint, std::size_t news_bytes_max) {
    return gas::Segment::allocate(
        endpoint, news_at + round_up(news_bytes_max, 8) + bytes_of_words(endpoint.nodes()));
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
    if (segment_.in_one_exchange(node)) return read_far(node, release, to, nullptr);
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

ReleaseNumber NewsBoard::acquired_by_all() noexcept {
    ReleaseNumber least = ~ReleaseNumber{0};
    for (std::uint32_t node = 0; node < nodes_; ++node) {
        if (NodeId{node} == self_) continue;
        least = std::min(least, segment_.load({NodeId{node}, acquired_at(self_)}));
    }
    return least;
}

std::optional<Bytes> NewsBoard::read_or_want(NodeId node, ReleaseNumber release, MutableBytes to,
                                             bool& first) noexcept {
    return read_far(node, release, to, &first);
}

std::array<gas::Segment::Access, 3> NewsBoard::look(Seen& seen, MutableBytes along) noexcept {
    using Access = gas::Segment::Access;
    return {Access::get(segment_, version_at, std::as_writable_bytes(std::span{seen.head})),
            Access::get(segment_, news_at, along),
            Access::get(segment_, version_at, std::as_writable_bytes(std::span{&seen.after, 1}))};
}

// Most news are short: they come in the exchange that looks for them.
/// @param first  if given, the release is wanted where it is not told of, as by want()
std::optional<Bytes> NewsBoard::read_far(NodeId node, ReleaseNumber release, MutableBytes to,
                                         bool* first) noexcept {
    using Access = gas::Segment::Access;
    Backoff backoff;
    for (;; backoff.pause()) {
        Seen seen;
        const auto looks = look(seen, to.first(std::min(to.size(), news_along)));
        if (first == nullptr) {
            std::array list{looks[0], looks[1], looks[2]};
            gas::Segment::in_order(node, list);
        } else {
            std::atomic<ReleaseNumber>& wanted = seen_wanted_[node.value];
            const ReleaseNumber before = wanted.load(std::memory_order_relaxed);
            std::array list{
                Access::compare_swap(segment_, wanted_at, before, std::max(before, release)),
                looks[0], looks[1], looks[2]};
            gas::Segment::in_order(node, list);
            const bool swapped = list[0].found == before;
            wanted.store(swapped ? std::max(before, release) : list[0].found,
                         std::memory_order_relaxed);
            *first = swapped ? before < release : want(node, release);
            first = nullptr;
        }
        if (seen.head[1] < release) return std::nullopt;
        if (seen.head[0] % 2 != 0 || seen.after != seen.head[0]) continue;
        const std::size_t bytes = seen.head[2];
        if (bytes <= news_along) return Bytes{to}.first(bytes);
        const auto rest = look(seen, to.first(bytes));
        std::array list{rest[0], rest[1], rest[2]};
        const std::uint64_t version = seen.after;
        gas::Segment::in_order(node, list);
        if (seen.head[0] == version && seen.after == version) return Bytes{to}.first(bytes);
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
    const bool far = segment_.in_one_exchange(node);
    std::atomic<ReleaseNumber>& seen = seen_wanted_[node.value];
    std::uint64_t before =
        far ? seen.load(std::memory_order_relaxed) : segment_.load({node, wanted_at});
    bool first = false;
    while (before < release && !first) {
        const std::uint64_t found = segment_.compare_swap({node, wanted_at}, before, release);
        first = found == before;
        before = first ? release : found;
    }
    if (far) seen.store(before, std::memory_order_relaxed);
    return first;
}

}  // namespace hiroba::dsm
