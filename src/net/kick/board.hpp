// SPDX-License-Identifier: BSD-3-Clause
// Role: a node's part in kicks: its registered targets, the headers made of them, and its LLCM, the
// small memory that peers kick into and this node polls. Source: Tanabe et al., DIMMnet-1.
// Invariant: every node reserves the same parts of the LLCM in the same order. Bytes land in the
// order in which one thread kicks them at one node, whatever carries them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/latch.hpp"
#include "net/kick/header_cache.hpp"
#include "net/kick/seed_table.hpp"
#include "net/net.hpp"
#include "net/wire/landing.hpp"

namespace hiroba::net::kick {

template <class T>
class Kick;

/// Offset in every node's LLCM.
using Offset = std::uint64_t;

/// Thread: any, after connect(); reserve() and expose() belong to the thread that sets up.
class Board {
public:
    /// The memory the paper's card has.
    static constexpr std::size_t llcm_bytes_default = std::size_t{128} << 10;

    /// Registers the LLCM and the handler; before Endpoint::connect(), attach() after it.
    /// @param kind  of the messages that carry kicks where nothing else does; one board has it
    static Result<std::unique_ptr<Board>> create(Endpoint& endpoint, std::uint64_t job_key,
                                                 std::size_t llcm_bytes = llcm_bytes_default,
                                                 MessageKind kind = MessageKind::kick);
    Board(const Board&) = delete;
    Board& operator=(const Board&) = delete;
    void attach();

    Endpoint& endpoint() noexcept { return endpoint_; }
    NodeId self() const noexcept { return self_; }
    std::uint32_t nodes() const noexcept { return endpoint_.nodes(); }
    RegionId llcm() const noexcept { return llcm_; }

    /// Takes a part of the LLCM of every node, zeroed; one of at most a page lies in one page.
    /// @param alignment  a power of two up to page_bytes
    Result<Offset> reserve(std::size_t bytes, std::size_t alignment = cache_line_bytes);

    /// Lets kicks reach another region of `bytes` bytes, here and from here. On all nodes.
    void expose(RegionId region, std::uint64_t bytes);
    bool is_exposed(RegionId region) noexcept {
        const std::scoped_lock guard{latch_};
        return table_.exposed_bytes(region) != 0;
    }

    /// Registers a page as a target; errors as SeedTable::enter().
    Result<Target> target(NodeId node, RegionId region, std::uint64_t page_offset);
    /// The page of the LLCM that `place` lies in.
    Result<Target> target(NodeId node, Offset place) {
        return target(node, llcm_, place / page_bytes * page_bytes);
    }
    /// Resolves a target to something that can be kicked. Refuses what was not registered here.
    template <class T>
    Result<Kick<T>> kick(Target target) {
        Result<Header> header = resolve(target);
        if (!header) return header.error();
        return Kick<T>{*this, *header};
    }

    /// What kicks to a target are made of: from the cache of headers, else from the table.
    Result<Header> resolve(Target target);

    /// This node's LLCM from `place` on. After attach().
    std::byte* at(Offset place) noexcept { return local_ + place; }
    /// The peer's, or nullptr where the provider maps nothing.
    std::byte* at(NodeId node, Offset place) noexcept {
        std::byte* const base = base_of(node);
        return base == nullptr ? nullptr : base + place;
    }
    /// Reads what was kicked to `place`; what was kicked before it is then there too.
    template <class T>
    T load(Offset place) noexcept {
        // Acquire, pairs with the release of Kick::store() and land().
        return std::atomic_ref<T>(*reinterpret_cast<T*>(at(place))).load(std::memory_order_acquire);
    }

    /// Waits until predicate(value at `place`) holds: spins, yields, sleeps. Who kicks there calls
    /// wake() when it may be slept on. Not from a handler.
    template <class T, class Predicate>
    void wait_until(Offset place, Predicate&& predicate) noexcept {
        wait_for([&] { return predicate(load<T>(place)); });
    }
    /// As above for any look at this node's memory. It may be asked again after it was true.
    template <class Look>
    void wait_for(Look&& look) noexcept {
        // Looks are cheaper than polls, but where cores are short the wait belongs to others, and
        // where nothing is mapped what has come lands when somebody polls.
        std::uint32_t left = bases_.empty() ? 0 : std::min(looks_before_poll, endpoint_.spins());
        for (; left != 0; --left) {
            if (look()) return;
            __builtin_ia32_pause();
        }
        endpoint_.wait_until(look);
    }
    /// Wakes threads of `node` that sleep on what was kicked before.
    /// A kick that travels as a packet wakes them by itself.
    void wake(NodeId node) noexcept {
        if (base_of(node) != nullptr) endpoint_.wake(node);
    }

    /// The header of kicks of `bytes` bytes to the page of `header`.
    PreparedKick prepare(const Header& header, std::size_t bytes) noexcept;
    /// Sends a kick to a page that is not mapped.
    /// @param more  it may leave with the next
    void post(const PreparedKick& kick, std::uint32_t offset, std::uint64_t value,
              bool more) noexcept;
    /// As post(), from a handler, which cannot wait for credits.
    void post_from_handler(const PreparedKick& kick, std::uint32_t offset,
                           std::uint64_t value) noexcept;
    /// Carries 1 to landing_bytes_max bytes where nothing is mapped. Copied at return.
    void post(NodeId to, wire::LandingBytes& header, std::uint64_t offset, Bytes bytes) noexcept;
    static constexpr std::size_t landing_bytes_max = 1440;  ///< a datagram's, with its headers

    HeaderCache::Counts header_counts() noexcept;
    /// Bytes that came with a foreign stamp or for a place outside and were not written.
    std::uint64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }
    wire::LandingBytes stamp_for(const Header& header) const noexcept {
        return stamp_for(NodeId{header.rank}, RegionId{header.region}, header.page_offset);
    }

private:
    static constexpr std::uint32_t looks_before_poll = 50;

    wire::LandingBytes stamp_for(NodeId node, RegionId region,
                                 std::uint64_t page_offset) const noexcept;
    Board(Endpoint& endpoint, std::uint64_t job_key, RegionId llcm, std::size_t llcm_bytes,
          MessageKind kind);
    std::byte* base_of(NodeId node) const noexcept {
        return bases_.empty() ? (node == self_ ? local_ : nullptr) : bases_[node.value];
    }
    Header refill(const Seed& seed, Target target) noexcept;
    void land(NodeId from, Bytes body) noexcept;
    bool may_land(const wire::Landing& landing, std::size_t bytes) const noexcept;

    Endpoint& endpoint_;
    NodeId self_;
    std::uint64_t job_key_;
    MessageKind kind_;
    RegionId llcm_;
    std::size_t llcm_bytes_;
    std::size_t reserved_ = 0;
    std::byte* local_ = nullptr;
    std::vector<std::byte*> bases_;  ///< per node, nullptr if far; none if the provider maps none
    Latch latch_;                    ///< of table_ and cache_
    SeedTable table_;
    HeaderCache cache_;
    std::atomic<std::uint64_t> refused_{0};
};

}  // namespace hiroba::net::kick
