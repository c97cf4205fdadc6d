// SPDX-License-Identifier: BSD-3-Clause
// Role: the asynchronous face of the communication layer: one-sided reads, writes and atomics, and
// active messages, from any thread, each with a callback.
// Source: Endo & Taura, low-level communication layer, section 3.1.
//
// Invariant: a request that is refused or finds a queue full has done nothing. Nothing is promised
// about the order of requests or of their callbacks. Nobody need poll: whoever waits inside hiroba
// does, else the endpoint's service thread, which must run (Endpoint::serve).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/latch.hpp"
#include "base/result.hpp"
#include "net/net.hpp"
#include "net/offload/engine.hpp"

namespace hiroba::net {

/// Registered memory; allocate() and register_local() make them. Never reused.
struct Handle {
    std::uint32_t value = 0;
};

/// A place in registered memory of another node. Move within the memory by changing `offset`.
struct RemoteAddress {
    Handle handle;
    std::uint64_t offset = 0;
};
/// A place in registered memory of this node.
struct LocalAddress {
    Handle handle;
    std::uint64_t offset = 0;
};

/// `accepted`: the callback will run, or has run. `again`: a queue is full; try later. `refused`:
/// an argument is wrong; Async::check() says which.
enum class Submission : std::uint8_t { accepted, again, refused };

/// Bytes written meanwhile may be old or new. `to` must not be looked at before the callback.
struct ReadParams {
    NodeId source;
    RemoteAddress from;
    LocalAddress to;
    std::size_t bytes = 0;
    Callback on_complete;
};
/// `from` is borrowed until the callback, which says that the bytes are visible at the target.
struct WriteParams {
    NodeId target;
    LocalAddress from;
    RemoteAddress to;
    std::size_t bytes = 0;
    Callback on_complete;
};
/// Sequentially consistent, of 4 or 8 bytes at an aligned offset, atomic against every other one.
struct AtomicParams {
    NodeId target;
    RemoteAddress at;
    AtomicOp op{};
    std::uint32_t bytes = 8;     ///< 4 or 8
    std::uint64_t operand = 0;   ///< the low 4 bytes, or all
    std::uint64_t expected = 0;  ///< of compare_swap
    LocalAddress old;            ///< where the value before goes, before the callback
    Callback on_complete;
};

/// Names a handler of active messages, the same on every node.
struct ActiveId {
    std::uint8_t value = 0;
    static constexpr std::uint32_t count = 64;
};
/// Runs on the polling thread, as net::Handler. Everything is borrowed. It may make requests.
using ActiveHandler = void (*)(void* context, NodeId from, std::span<const std::uint64_t> arguments,
                               Bytes payload) noexcept;
/// Short with arguments alone, medium with a payload. The payload is borrowed until the callback,
/// which says that it has left: not that the handler has run.
struct MessageParams {
    NodeId target;
    ActiveId id;
    std::span<const std::uint64_t> arguments;  ///< up to arguments_max, copied
    LocalAddress payload;                      ///< ignored when payload_bytes is 0
    std::size_t payload_bytes = 0;
    Urgency urgency = Urgency::wake_service;
    Callback on_complete;
    static constexpr std::size_t arguments_max = offload::arguments_max;
};

/// The requests of one node. Make it, allocate() and on(), connect the endpoint, attach().
class Async {
public:
    /// @param mode  how requests reach the provider (offload/engine.hpp)
    Async(Endpoint& endpoint, offload::Mode mode);
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
    /// Resolves what connect() has brought.
    void attach();

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

    /// Why a request is refused: names the argument and the numbers.
    Result<void> check(const ReadParams& params) const;
    Result<void> check(const WriteParams& params) const;
    Result<void> check(const AtomicParams& params) const;
    Result<void> check(const MessageParams& params) const;

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
        if (node.value >= nodes_) return nullptr;
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
    Result<void> check_remote(NodeId node, RemoteAddress at, std::uint64_t bytes) const;
    Result<void> check_local(const char* argument, LocalAddress at, std::uint64_t bytes) const;
    Result<Registration*> new_registration();
    Submission submit(const offload::Command& command) noexcept {
        return engine_.submit(command) ? Submission::accepted : Submission::again;
    }
    Submission send_directly(const MessageParams& params, const std::byte* payload) noexcept;
    static void arrived(void* context, NodeId from, Bytes body) noexcept;

    struct Registered {
        ActiveHandler handler = nullptr;
        void* context = nullptr;
    };
    Endpoint& endpoint_;
    std::uint32_t nodes_;
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
