// SPDX-License-Identifier: BSD-3-Clause
// Role: what a transport must do. Written for people who add a transport; users see net/net.hpp.
// Invariant: a provider is a leaf: it knows its device, not pages or OpenMP.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "hiroba/net_requests.hpp"
#include "net/message_kind.hpp"

namespace hiroba::net {

/// Registered memory that every node has under the same number and with the same size.
struct RegionId {
    std::uint32_t value = 0;
    constexpr bool operator==(const RegionId&) const = default;
};

/// Outcome of posting work: `done` already happened, `posted` completes through poll(), `again`
/// means a queue was full and nothing was done.
enum class Post : std::uint8_t { done, posted, again };

/// Facts a provider states once.
struct Limits {
    const char* name;
    std::size_t message_bytes_max;  ///< one send()
    bool completes_inline;          ///< put, get and atomics return Post::done
    bool parallel;                  ///< calls may run on several threads at once
    bool maps_peers;                ///< mapped() gives load/store access to peers' regions
    /// The works of one post(list) to one peer are done there one after the other: what a get
    /// brings was read after what earlier gets bring, and after all earlier puts and atomics. (Puts
    /// and atomics may overtake earlier gets.) False: no such promise.
    bool lists_in_order = false;
    /// post_with_next() gathers what it is given.
    bool gathers = false;
    /// Sets of queues that threads may post to and poll at once without meeting each other: so many
    /// executors are of use. Above 1 only where `parallel`.
    std::uint32_t queue_pairs = 1;
    /// A device keeps pages of regions: memory given back to the machine would leave the device on
    /// the former pages, so it is cleared instead.
    bool pins_memory = false;
};

/// Odd: of a request of net/offload; even: the address of what its waiter looks at.
struct OpId {
    std::uint64_t value = 0;
    constexpr bool is_request() const { return (value & 1) != 0; }
    constexpr bool operator==(const OpId&) const = default;
    /// A request of which nobody keeps anything: only where requests_under_way() counts.
    static constexpr std::uint64_t bare = ~std::uint64_t{0};
};

/// What is kept of a request's Callback once the request is accepted: whoever took it has counted.
struct Completion {
    void (*function)(void* data, Outcome outcome) noexcept = nullptr;
    void* data = nullptr;

    Completion() = default;
    Completion(const Callback& given) noexcept : function(given.function), data(given.data) {}
    Completion(void (*of)(void*, Outcome) noexcept, void* with) noexcept
        : function(of), data(with) {}
};

/// One operation of a list; the fields are the parameters of the call of that name.
struct Work {
    enum class Kind : std::uint8_t { put, get, atomic, send };
    Kind kind{};
    AtomicOp op{};
    MessageKind message{};
    Urgency urgency{};
    NodeId peer{};
    RegionId region{};
    OpId id{};
    std::uint64_t offset = 0;
    std::byte* memory = nullptr;  ///< put reads it, get writes it
    std::size_t bytes = 0;
    std::uint64_t operand = 0;
    std::uint64_t expected = 0;
    std::uint64_t* old = nullptr;
    std::span<const Bytes> parts{};
    /// Told instead of the id, by Arrivals::ended(), when a put or get has the id OpId::bare.
    Completion then{};
    Post outcome = Post::again;
};

/// What all kicks of one width to one page have in common: small stores that are told apart by
/// where they go and what they bring (net/kick). Only registration of a target makes one.
struct PreparedKick {
    NodeId to;
    RegionId region;
    std::uint64_t page_offset = 0;
    std::uint16_t bytes = 0;               ///< 1, 2, 4 or 8
    bool native = false;                   ///< prepare() made the header; else it is net/kick's
    alignas(8) std::byte header[32] = {};  ///< as it travels, all but offset and value
};

/// Receives what poll() delivers.
class Arrivals {
public:
    virtual ~Arrivals() = default;
    /// `body` is borrowed until return. Messages from one node come in the order sent.
    virtual void message(NodeId from, MessageKind kind, Bytes body) noexcept = 0;
    virtual void completed(OpId id) noexcept = 0;
    /// Instead of completed(): `peer` is lost. Whether and how often it was carried out is unknown.
    virtual void failed(OpId id, NodeId peer) noexcept {
        static_cast<void>(peer);
        completed(id);
    }
    /// Instead of both for a request with OpId::bare.
    virtual void ended(const Completion& then, Outcome outcome) noexcept {
        if (then.function != nullptr) then.function(then.data, outcome);
    }
    /// Told once, after failed() for all that was pending: nothing was heard of `peer` for too
    /// long.
    virtual void silent(NodeId peer) noexcept { static_cast<void>(peer); }
};

/// Moves bytes between two processes.
///
/// All nodes call allocate() in the same order with the same sizes, then connect() once; after
/// that any thread may post when limits().parallel. Offsets count from the region's start.
class Provider {
public:
    virtual ~Provider() = default;

    virtual const Limits& limits() const noexcept = 0;  // Fixed for the provider's lifetime.

    /// Registers `bytes` of zeroed memory, sparse: untouched pages cost nothing. Before connect().
    virtual Result<RegionId> allocate(std::size_t bytes) = 0;
    /// This node's processor does atomics on the region's words without asking the provider, so all
    /// atomics on them have to be the processor's. Before connect(). Nothing to do where a
    /// processor carries them out anyway.
    virtual void processor_atomics(RegionId region) noexcept { static_cast<void>(region); }
    /// This node's memory of the region. Valid after connect().
    virtual MutableBytes local(RegionId region) noexcept = 0;
    /// The peer's memory for loads and stores, or nullptr unless limits().maps_peers.
    virtual std::byte* mapped(NodeId node, RegionId region) noexcept = 0;

    /// Collective: exchanges addresses and opens the way to every peer.
    virtual Result<void> connect() = 0;

    virtual Post send(NodeId to, MessageKind kind, Urgency urgency,
                      std::span<const Bytes> parts) noexcept = 0;
    virtual Post put(OpId id, NodeId to, RegionId region, std::uint64_t offset,
                     Bytes from) noexcept = 0;
    virtual Post get(OpId id, MutableBytes to, NodeId from, RegionId region,
                     std::uint64_t offset) noexcept = 0;
    /// 8-byte atomic on an 8-byte aligned offset; `*old` is the value before.
    virtual Post atomic(OpId id, AtomicOp op, NodeId at, RegionId region, std::uint64_t offset,
                        std::uint64_t operand, std::uint64_t expected,
                        std::uint64_t* old) noexcept = 0;

    /// Posts a list in one call, in any order between peers; returns how many of the first were
    /// taken, with their outcomes. Here one after the other; a provider that pays for each entry
    /// into its device does better.
    virtual std::size_t post(std::span<Work> list) noexcept;
    /// As post(), but where something is under way to the same peer the list may stay here, so that
    /// what is posted next leaves with it: until the next poll(), at the latest when the peer
    /// answers.
    /// @param waits  for another thread that is in the provider; else takes nothing then
    virtual std::size_t post_with_next(std::span<Work> list, bool waits) noexcept {
        static_cast<void>(waits);
        return post(list);
    }
    /// How many requests (OpId) it has and has not told the end of; nullptr: it does not count, so
    /// whoever posts has to. What poll() tells it takes off before, sequentially consistent.
    virtual const std::atomic<std::uint32_t>* requests_under_way() const noexcept {
        return nullptr;
    }
    /// Completes everything pending to `peer`, now and later, with Arrivals::failed(). Called when
    /// the launcher tells that it died. Messages to it vanish. Any thread.
    virtual void peer_lost(NodeId peer) noexcept { static_cast<void>(peer); }

    /// Makes the header of kicks to a page that this node does not map. False: there is no form for
    /// kicks here, so that they travel as messages. After connect().
    virtual bool prepare(PreparedKick& kick) noexcept {
        static_cast<void>(kick);
        return false;
    }
    /// Stores the low `kick.bytes` bytes of `value` at `kick.page_offset + offset`, aligned and at
    /// once, without the target's handlers. In order with other kicks and messages to that node.
    /// Nothing tells of completion; `again` means that the credits are used up: what was sent last
    /// is not acknowledged. Only where prepare() said true.
    /// @param more  another follows at once, with which it may leave
    virtual Post kick(const PreparedKick& kick, std::uint32_t offset, std::uint64_t value,
                      bool more) noexcept;

    /// Whether everything sent and posted here has reached its node (unless that was lost), and no
    /// peer waits for an acknowledgement of this one. Not from a handler.
    virtual bool drained() noexcept { return true; }

    /// Delivers up to `count_max` messages and completions; returns how many. Never blocks.
    /// One thread at a time.
    virtual std::size_t poll(Arrivals& arrivals, std::size_t count_max) noexcept = 0;
    /// Tells up to `count_max` completions of the calling thread's set of queues, beside whoever
    /// polls, and nothing else. Any thread where limits().queue_pairs is above 1.
    virtual std::size_t poll_own(Arrivals& arrivals, std::size_t count_max) noexcept {
        static_cast<void>(arrivals), static_cast<void>(count_max);
        return 0;
    }

    /// Sleeps until something may have arrived for `role` or wake() was called on this node for
    /// it, or `timeout_ns` passed. `ready` is asked once more after the sleep was announced, so
    /// that no wake-up is lost.
    enum class Sleeper : std::uint8_t { waiter, service };
    virtual void sleep(Sleeper role, std::uint64_t timeout_ns, bool (*ready)(void*),
                       void* argument) noexcept = 0;
    /// Wakes sleepers of `node` after a one-sided store they may be waiting for.
    virtual void wake(NodeId node, Sleeper role) noexcept = 0;
};

/// Devices beside the provider's own, each of which carries the messages of one kind.
struct FurtherDevices {
    struct One {
        MessageKind kind{};
        std::string name;  ///< interface, address or subnet (udp); RDMA device or port (verbs)
    };
    std::vector<One> all;
    const char* setting = "";  ///< names them, for error lines
};

/// Whether this machine has what a provider needs, and which: versions and devices, or what is
/// missing. Loads libraries; for a command that ends soon.
struct ProviderFinding {
    std::string name;
    bool usable = false;
    std::string detail;
};
std::vector<ProviderFinding> find_providers();

}  // namespace hiroba::net
