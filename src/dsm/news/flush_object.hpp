// SPDX-License-Identifier: BSD-3-Clause
// Role: the one object of the job that all flushes lock, with what has been flushed, so that
// flushes are totally ordered (docs/decisions/one-object-for-all-flushes.md). It lies on node 0.
// Invariant: whoever holds its lock sees the newest version, and news at least as new.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "dsm/protocol/signature.hpp"
#include "dsm/protocol/stamp.hpp"
#include "gas/gas.hpp"
#include "net/net.hpp"

namespace hiroba::dsm {

/// Thread: as said; nothing here may be called from a handler.
class FlushObject {
public:
    /// How often anybody has flushed something; 0: nobody ever.
    using Version = std::uint64_t;

    static Result<gas::Segment> allocate(net::Endpoint& endpoint, std::size_t news_bytes_max);
    /// Before Endpoint::connect(); `segment` comes from allocate().
    FlushObject(net::Endpoint& endpoint, gas::Segment segment, std::size_t news_bytes_max);
    void attach() { segment_.attach(); }

    /// Whether anybody has flushed. Asks node 0. Thread: any.
    bool used() noexcept { return segment_.load(header_at) != 0; }
    /// Whether something newer than `seen` was flushed, as far as this node has been told: who
    /// flushes tells all that cannot look, so it does not take long, and no answer has to be waited
    /// for. Thread: any.
    bool newer_than(Version seen) noexcept;

    struct Content {
        Version version;
        Bytes news;  ///< empty if `seen` was the version; until own_news() is written
    };
    /// Waits for the lock; where nothing is mapped, lock and content are one exchange.
    /// @param serve  is called again and again meanwhile: who has it may wait for this node
    template <class Serve>
    Content lock(Version seen, Serve&& serve) noexcept {
        Backoff backoff;
        while (!try_lock()) {
            endpoint_.poll();
            serve();
            backoff.pause();
        }
        return content(seen);
    }
    /// Where to write what is to be flushed. With the lock.
    MutableBytes own_news() noexcept { return MutableBytes{buffer_}.subspan(sizeof(Header)); }
    void unlock() noexcept;
    /// Puts the first `bytes` of own_news() there as `version`, unlocks, and tells the nodes that
    /// do not have the object mapped.
    void unlock_with(Version version, std::size_t bytes) noexcept;

    /// This node's part of the object, for explorers (NodeView in test/sim/dsm).
    Bytes shown() noexcept { return {segment_.local(), segment_.bytes()}; }
    /// The version that this node has been told, likewise.
    Version told() const noexcept { return told_.load(std::memory_order_relaxed); }

private:
    struct Header {
        Version version;
        std::uint64_t news_bytes;
    };
    // Where they lie on node 0: the lock and the rest on their own lines.
    static constexpr NodeId keeper{0};
    static constexpr std::uint64_t lock_offset = 0;
    static constexpr std::uint64_t header_offset = 64;
    static constexpr gas::GlobalAddress header_at{keeper, header_offset};

    static void on_flushed(void* context, NodeId from, Bytes body) noexcept;
    bool is_mapped() const noexcept { return segment_.reach(header_at, 8) != nullptr; }
    bool try_lock() noexcept;
    MutableBytes first_bytes() noexcept;
    Content content(Version seen) noexcept;
    void tell_who_cannot_look(Version version) noexcept;

    net::Endpoint& endpoint_;
    gas::Segment segment_;
    std::vector<std::byte> buffer_;  ///< a Header and news. With the lock
    std::atomic<Version> told_{0};
};

}  // namespace hiroba::dsm
