// SPDX-License-Identifier: BSD-3-Clause
// Role: news that have come here and are not acquired yet.
// Invariant: what was learned stays until an acquire takes it, all of it at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>

#include "base/bytes.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"
#include "base/sparse_array.hpp"
#include "dsm/news/news_encoding.hpp"
#include "dsm/protocol/signature.hpp"
#include "dsm/protocol/stamp.hpp"

namespace hiroba::dsm {

/// How far one node's releases are known.
struct Clock {
    ReleaseNumber told = 0;    ///< the news tell of them
    ReleaseNumber needed = 0;  ///< bytes that this node has published were read from them
    Epoch epoch = 0;           ///< what those told of have merged is of earlier ones
    NewsSequence changed = 0;
};

/// Stands for a sender of news that is no node, so that other nodes need not have the news.
inline constexpr NodeId told_by_nobody{~0u};

/// Thread: any; async-signal-safe.
class LearnedNews {
public:
    /// Notices of one synchronization: every peer's whole signature, many times over.
    static constexpr std::size_t notices_max = std::size_t{4} << 20;

    explicit LearnedNews(std::uint32_t nodes) : notices_(notices_max), clocks_(nodes) {}

    /// @param min_wts  covers what `news` leave out that this node may not know
    void learn(NodeId from, const NewsView& news, Timestamp min_wts) noexcept;
    /// Whether anything was learned since taken() was last said.
    bool any() const noexcept {
        return any_.load(std::memory_order_acquire);  // pairs with learn()
    }
    /// Before take(): what comes meanwhile is said by any() again.
    void taken() noexcept {
        any_.store(false, std::memory_order_release);  // pairs with any(): its role is taken
    }
    bool tells_of(Stamp stamp) noexcept;

    struct Taken {
        std::size_t notices;
        Timestamp min_wts;
        bool aside;  ///< some of them are from nobody in particular
    };
    /// Moves the notices to the front of `to`, after visit(node, clock) for each node.
    template <class Visit>
    Taken take(std::span<Notice> to, Visit&& visit) noexcept;

private:
    friend class NodeView;

    Latch latch_;
    SparseArray<Notice> notices_;
    std::size_t count_ = 0;
    SparseArray<Clock> clocks_;  ///< per node
    Timestamp min_wts_;
    bool aside_ = false;  ///< some of them are from nobody in particular
    std::atomic<bool> any_{false};
};

template <class Visit>
LearnedNews::Taken LearnedNews::take(std::span<Notice> to, Visit&& visit) noexcept {
    const std::scoped_lock guard{latch_};
    HIROBA_INVARIANT(count_ <= to.size(), "%lu notices learned", count_);
    std::memcpy(to.data(), notices_.data(), count_ * sizeof(Notice));
    for (std::uint32_t node = 0; node < clocks_.size(); ++node) visit(node, clocks_[node]);
    return {std::exchange(count_, 0), min_wts_, std::exchange(aside_, false)};
}

}  // namespace hiroba::dsm
