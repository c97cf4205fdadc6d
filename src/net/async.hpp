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

/// The requests of one node. Make it, allocate() and on(), connect the endpoint, attach().
class Async {
public:
    /// @param mode  how requests reach the provider (offload/engine.hpp)
    /// @param queues  of commands, 1 to offload::Engine::queues_max
    /// @param executors  that empty them, as far as the provider has queues for several
    Async(Endpoint& endpoint, offload::Mode mode, std::uint32_t queues = 1,
          std::uint32_t executors = 1);
    /// The mode HIROBA_OFFLOAD asks for.
    static offload::Mode mode_of_setting() noexcept;

    /// Memory of equal size on every node, both ends of requests. Collective, before connect().
    Result<Handle> allocate(std::size_t bytes, bool processor_atomics = false);
    /// Lets this node's own memory be the local end of requests. At any time; the memory must
    /// outlive them. Private memory only: a fault inside a provider finds its latches held.
    Result<Handle> register_local(MutableBytes memory);
    /// The handle is refused from now on. Not while requests use it.
    void deregister(Handle handle) noexcept;
    /// Registers the handler; before connect().
    void on(ActiveId id, ActiveHandler handler, void* context) noexcept;
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
        if (handle.value >= handles_max || !registrations_[handle.value].is_symmetric) return {};
        return Allocated{registrations_[handle.value].region, registrations_[handle.value].bytes};
    }
    /// Longest payload of a message.
    std::size_t payload_bytes_max() const noexcept { return payload_bytes_max_; }

    /// This node's memory of `handle`; empty when it is not registered.
    MutableBytes local(Handle handle) const noexcept;

    /// `node`'s part of symmetric memory for loads and stores; nullptr where nothing is mapped.
    std::byte* mapped(Handle handle, NodeId node) const noexcept {
        const Registration* memory = find(handle);
        const bool known = memory != nullptr && node.value < memory->peers.size();
        return known ? memory->peers[node.value] : nullptr;
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

    static constexpr std::uint32_t handles_max = 1024;

private:
    struct Registration {
        std::byte* local = nullptr;
        std::uint64_t bytes = 0;
        RegionId region;
        bool is_symmetric = false;
        std::vector<std::byte*> peers;  ///< of symmetric memory, where the provider maps it
        std::atomic<bool> valid{false};
    };
    const Registration* find(Handle handle) const noexcept {
        if (handle.value >= handles_max) return nullptr;
        const Registration& found = registrations_[handle.value];
        // Acquire, pairs with register_local(): the rest was written before.
        return found.valid.load(std::memory_order_acquire) ? &found : nullptr;
    }
    static bool fits(const Registration& memory, std::uint64_t offset, std::uint64_t bytes) {
        return offset <= memory.bytes && bytes <= memory.bytes - offset;
    }
    const Registration* remote(NodeId node, RemoteAddress at, std::uint64_t bytes) const noexcept {
        if (node.value >= reachable_) return nullptr;
        const Registration* memory = find(at.handle);
        const bool good =
            memory != nullptr && memory->is_symmetric && fits(*memory, at.offset, bytes);
        return good ? memory : nullptr;
    }
    /// nullptr when the place is not registered.
    std::byte* place(LocalAddress at, std::uint64_t bytes) const noexcept {
        const Registration* memory = find(at.handle);
        return memory != nullptr && fits(*memory, at.offset, bytes) ? memory->local + at.offset
                                                                    : nullptr;
    }
    Result<void> check_node(NodeId node) const;
    template <Work::Kind kind, class Params>
    Submission try_copy(const Params& params, NodeId peer, RemoteAddress there,
                        LocalAddress here) noexcept;
    Result<void> check_remote(NodeId node, RemoteAddress at, std::uint64_t bytes) const;
    Result<void> check_local(const char* argument, LocalAddress at, std::uint64_t bytes) const;
    Result<Registration*> new_registration();
    template <class Write>
    Submission submit(const Write& write, bool may_join) noexcept {
        return engine_.submit(write, may_join) ? Submission::accepted : Submission::again;
    }
    /// A request there is a packet, and several may share one.
    static bool is_far(const Registration& memory, NodeId node) noexcept {
        return memory.peers[node.value] == nullptr;
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
    std::uint32_t handles_ = 0;
    std::array<Registered, ActiveId::count> active_{};
    std::array<Registration, handles_max> registrations_;
};

}  // namespace hiroba::net
