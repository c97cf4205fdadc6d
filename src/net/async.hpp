// SPDX-License-Identifier: BSD-3-Clause
// Role: the asynchronous face of the communication layer: one-sided reads, writes and atomics, and
// active messages, from any thread, each with a callback.
// Source: Endo & Taura, low-level communication layer, section 3.1.
//
// Invariant: a request that is refused or finds a queue full has done nothing. Nothing is promised
// about the order of requests or of their callbacks. No thread need poll: a thread that waits
// inside hiroba does, else the endpoint's service thread, which must run (Endpoint::serve).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/latch.hpp"
#include "base/result.hpp"
#include "hiroba/net_requests.hpp"
#include "net/net.hpp"
#include "net/offload/engine.hpp"

namespace hiroba::net {

class ServedMemory;

/// The requests of one node. Make it, allocate() and on(), connect the endpoint, attach().
class Async {
public:
    /// @param mode  how requests reach the provider (offload/engine.hpp)
    /// @param queues  of commands, 1 to offload::Engine::queues_max
    /// @param executors  that empty them, as far as the provider has queues for several
    Async(Endpoint& endpoint, offload::Mode mode, std::uint32_t queues = 1,
          std::uint32_t executors = 1);
    ~Async();
    /// The mode HIROBA_OFFLOAD asks for.
    static offload::Mode mode_of_setting() noexcept;

    /// Memory of equal size on every node, both ends of requests. Collective, before connect().
    Result<Handle> allocate(std::size_t bytes, bool processor_atomics = false);
    /// Lets this node's own memory be the local end of requests. At any time; the memory must
    /// outlive them. Private memory only: a fault inside a provider finds its latches held.
    Result<Handle> register_local(MutableBytes memory);
    /// Memory that came after connect() (net/later_memory.hpp).
    struct Later {
        RegionId region{};
        std::uint64_t base = 0;  ///< where it begins in the region; with `is_served` its number
        std::uint64_t bytes = 0;
        std::byte* local = nullptr;         ///< this node's part, if it has one
        std::byte* const* peers = nullptr;  ///< where the nodes' regions are mapped
        std::optional<NodeId> owner{};      ///< without one every node has it
        bool is_served = false;             ///< the owner's handlers access it
    };
    /// The n-th call for memory of all nodes gives the same handle on each, if all free the same.
    Result<Handle> register_later(const Later& memory);
    /// What serves memory that is not in a region. Before attach().
    void serve_by(ServedMemory& served) noexcept { served_ = &served; }
    /// The handle is refused from now on. Not while requests use it.
    void deregister(Handle handle) noexcept;
    /// Registers the handler; before connect().
    void on(ActiveId id, ActiveHandler handler, void* context) noexcept;
    /// So many messages behind those of programs are the layer's own: of questions, of answers, of
    /// teams.
    static constexpr std::uint32_t inner_messages = 3;
    static constexpr ActiveId question_id{ActiveId::count}, answer_id{ActiveId::count + 1},
        team_id{ActiveId::count + 2};
    /// Sends one of them; from handlers too, where it never waits.
    void send_inner(NodeId to, ActiveId id, std::span<const std::uint64_t> words,
                    Bytes payload) noexcept;
    /// Resolves what connect() has brought, and starts the executors.
    void attach();
    /// How many there are.
    std::uint32_t executors() const noexcept { return engine_.executors(); }

    struct Allocated {
        RegionId region;
        std::uint64_t bytes;
    };
    /// What allocate() made; nothing for other handles. After attach() any thread.
    std::optional<Allocated> allocated(Handle handle) const noexcept {
        if (handle.value >= first_handles) return {};
        const Registration& memory = registrations_[handle.value];
        if (memory.sort != Sort::of_all || memory.own_peers == nullptr) return {};
        return Allocated{memory.region, memory.bytes};
    }
    /// Where a 16-byte word of `node` is: mapped here, or in a region, or served by number.
    struct Place {
        std::byte* mapped = nullptr;
        RegionId region{};
        std::uint64_t offset = 0;  ///< in the region or the served memory
        std::uint64_t number = 0;  ///< of served memory
        bool is_served = false;
        bool is_later = false;  ///< it came after connect()
    };
    std::optional<Place> find_place(NodeId node, RemoteAddress at, std::uint64_t bytes) const;
    /// Why find_place() finds nothing.
    Result<void> check(NodeId node, RemoteAddress at, std::uint64_t bytes) const {
        return check_remote(node, at, bytes);
    }
    /// Longest payload of a message.
    std::size_t payload_bytes_max() const noexcept { return payload_bytes_max_; }

    /// This node's memory of `handle`; empty when it is not registered.
    MutableBytes local(Handle handle) const noexcept;

    /// `node`'s part of memory for loads and stores; nullptr where nothing is mapped.
    std::byte* mapped(Handle handle, NodeId node) const noexcept {
        const Registration* memory = find(handle);
        if (memory == nullptr || node.value >= nodes_ || !memory->is_of(node)) return nullptr;
        return memory->mapped(node);
    }

    Submission try_read(const ReadParams& params) noexcept;
    Submission try_write(const WriteParams& params) noexcept;
    Submission try_atomic(const AtomicParams& params) noexcept;
    Submission try_message(const MessageParams& params) noexcept;
    Submission try_call(const CallParams& params) noexcept;

    /// Why a request is refused: names the argument and the numbers.
    Result<void> check(const ReadParams& params) const;
    Result<void> check(const WriteParams& params) const;
    Result<void> check(const AtomicParams& params) const;
    Result<void> check(const MessageParams& params) const;
    Result<void> check(const CallParams& params) const;

    /// Waits until `predicate()`, looking at it alone for a moment before it polls: for what peers
    /// store directly and then announce by Endpoint::wake(). Any thread; not from a handler or
    /// callback.
    template <class Predicate>
    void wait_until(Predicate&& predicate) noexcept {
        if (maps_peers_) {
            for (std::uint32_t left = CoreShortage::spins_max; left != 0; --left) {
                if (predicate()) return;
                __builtin_ia32_pause();
            }
        }
        endpoint_.wait_until(predicate);
    }
    /// Everything this node requested is complete. Any thread.
    bool idle() const noexcept { return engine_.idle(); }
    Endpoint& endpoint() noexcept { return endpoint_; }
    offload::Mode mode() const noexcept { return engine_.mode(); }

private:
    /// Handles are places in tables of so many registrations each, and how often the place was
    /// used. The first table is always there; the upper half is of memory that all nodes have and
    /// that came after connect(): nodes register own memory in orders of their own.
    static constexpr std::uint32_t first_handles = 1024, tables_max = 4096;
    static constexpr std::uint32_t place_bits = 22, place_mask = (1u << place_bits) - 1;
    static constexpr std::uint32_t reused_behind = 1024;  ///< free places wait for so many others

    enum class Sort : std::uint8_t { local, of_all, of_one, served };
    struct Registration {
        std::byte* local = nullptr;
        std::uint64_t bytes = 0;
        std::uint64_t base = 0;             ///< in the region; a number if served
        std::byte* const* peers = nullptr;  ///< of all nodes, where the provider maps the region
        RegionId region;
        NodeId owner{};  ///< of Sort::of_one and served
        Sort sort = Sort::local;
        std::atomic<std::uint32_t> tag{Handle::none};  ///< the handle that finds it
        std::unique_ptr<std::byte*[]> own_peers;       ///< of allocate()

        bool is_of(NodeId node) const noexcept {
            return sort == Sort::of_all || (sort != Sort::local && owner == node);
        }
        std::byte* mapped(NodeId node) const noexcept {
            std::byte* const start = peers == nullptr ? nullptr : peers[node.value];
            return start == nullptr ? nullptr : start + base;
        }
    };
    /// Places of handles. Under registering_.
    struct Places {
        std::uint32_t next, end;
        std::deque<std::uint32_t> freed{};  ///< the handles that were there, the oldest first
    };
    const Registration* find(Handle handle) const noexcept {
        const std::uint32_t place = handle.value & place_mask;
        const Registration* found = &registrations_[place % first_handles];
        if (place >= first_handles) {
            // Acquire, pairs with new_registration(): the table was made before.
            const Registration* const table =
                tables_[place / first_handles].load(std::memory_order_acquire);
            if (table == nullptr) return nullptr;
            found = table + place % first_handles;
        }
        // Acquire, pairs with publish(): the rest was written before.
        return found->tag.load(std::memory_order_acquire) == handle.value ? found : nullptr;
    }
    static bool fits(const Registration& memory, std::uint64_t offset, std::uint64_t bytes) {
        return offset <= memory.bytes && bytes <= memory.bytes - offset;
    }
    const Registration* remote(NodeId node, RemoteAddress at, std::uint64_t bytes) const noexcept {
        if (node.value >= reachable_) return nullptr;
        const Registration* memory = find(at.handle);
        const bool good =
            memory != nullptr && memory->is_of(node) && fits(*memory, at.offset, bytes);
        return good ? memory : nullptr;
    }
    /// nullptr when the place is not registered.
    std::byte* place(LocalAddress at, std::uint64_t bytes) const noexcept {
        const Registration* memory = find(at.handle);
        const bool good =
            memory != nullptr && memory->local != nullptr && fits(*memory, at.offset, bytes);
        return good ? memory->local + at.offset : nullptr;
    }
    Result<void> check_node(NodeId node) const;
    template <Work::Kind kind, class Params>
    Submission try_copy(const Params& params, NodeId peer, RemoteAddress there,
                        LocalAddress here) noexcept;
    Result<void> check_remote(NodeId node, RemoteAddress at, std::uint64_t bytes) const;
    Result<void> check_local(const char* argument, LocalAddress at, std::uint64_t bytes) const;
    struct Fresh {
        Registration* memory;
        Handle handle;
    };
    Result<Fresh> new_registration(Places& from);
    static void publish(const Fresh& made) noexcept {
        made.memory->tag.store(made.handle.value, std::memory_order_release);  // pairs with find()
    }
    template <class Write>
    Submission submit(const Write& write, bool may_join) noexcept {
        return engine_.submit(write, may_join) ? Submission::accepted : Submission::again;
    }
    /// A request there is a packet, and several may share one.
    static bool is_far(const Registration& memory, NodeId node) noexcept {
        return memory.mapped(node) == nullptr;
    }
    Submission send_directly(const MessageParams& params, const std::byte* payload) noexcept;
    static void arrived(void* context, NodeId from, Bytes body) noexcept;

    struct Registered {
        ActiveHandler handler = nullptr;
        void* context = nullptr;
    };
    Endpoint& endpoint_;
    std::uint32_t nodes_;
    std::uint32_t reachable_ = 0;  ///< nodes_ from attach() on: one comparison refuses both
    bool maps_peers_;
    bool stores_directly_;  ///< all requests are this CPU's, on the caller's thread
    std::size_t payload_bytes_max_;
    offload::Engine engine_;
    Latch registering_;
    ServedMemory* served_ = nullptr;
    Places own_{0, tables_max / 2 * first_handles};
    Places later_{tables_max / 2 * first_handles, tables_max* first_handles - 1};
    std::array<Registered, ActiveId::count + inner_messages> active_{};
    std::array<Registration, first_handles> registrations_;
    std::array<std::atomic<Registration*>, tables_max> tables_{};
};

}  // namespace hiroba::net
