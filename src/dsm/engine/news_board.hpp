// SPDX-License-Identifier: BSD-3-Clause
// Role: what a node tells whoever has come upon bytes of a release it has not acquired: a board in
// registered memory with the number of the node's last release told there, and its news; and a word
// in which others say up to which release they want it.
// Invariant: number and news are of one moment (version odd while they change). `wanted` only
// rises.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "base/latch.hpp"
#include "dsm/engine/sparse_array.hpp"
#include "dsm/protocol/stamp.hpp"
#include "gas/gas.hpp"
#include "net/net.hpp"

namespace hiroba::dsm {

/// Thread: any; nothing here may be called from a handler.
class NewsBoard {
public:
    static Result<gas::Segment> allocate(net::Endpoint& endpoint, std::size_t news_bytes_max);
    NewsBoard(net::Endpoint& endpoint, gas::Segment segment, std::size_t news_bytes_max)
        : self_(endpoint.self()),
          segment_(std::move(segment)),
          bytes_max_(news_bytes_max),
          own_(news_bytes_max) {}
    void attach() { segment_.attach(); }

    /// Where write() takes the news from. Both with one latch of the caller's.
    MutableBytes own_news() noexcept { return {own_.data(), bytes_max_}; }
    /// Shows the first `bytes` of own_news() as those of all releases up to `release`.
    void write(ReleaseNumber release, std::size_t bytes) noexcept;
    /// Up to which of this node's releases its board tells.
    ReleaseNumber written() noexcept { return own(release_at).load(); }

    /// The news of `node`, if they tell of its releases up to `release`: into `to`, of
    /// news_bytes_max. Empty: not yet.
    std::optional<Bytes> read(NodeId node, ReleaseNumber release, MutableBytes to) noexcept;

    /// Tells `node` that its release `release` is wanted. False: somebody has told it before.
    bool want(NodeId node, ReleaseNumber release) noexcept;
    /// Up to which of this node's releases others want to be told.
    ReleaseNumber wanted() noexcept { return own(wanted_at).load(); }

    /// All that decides what is read from it, for explorers (Node::show_state).
    void show(void (*visit)(void* context, Bytes part), void* context) noexcept {
        visit(context, {segment_.local(), news_at + bytes_max_});
    }

private:
    static constexpr std::uint64_t wanted_at = 0;
    static constexpr std::uint64_t version_at = 64;
    static constexpr std::uint64_t release_at = 72;
    static constexpr std::uint64_t bytes_at = 80;
    static constexpr std::uint64_t news_at = 88;

    /// A word of this node's: whoever changes it from elsewhere does so in this memory.
    std::atomic_ref<std::uint64_t> own(std::uint64_t at) noexcept {
        return std::atomic_ref{*reinterpret_cast<std::uint64_t*>(segment_.local() + at)};
    }

    NodeId self_;
    gas::Segment segment_;
    std::size_t bytes_max_;
    SparseArray<std::byte> own_;
};

}  // namespace hiroba::dsm
