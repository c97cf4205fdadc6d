// SPDX-License-Identifier: BSD-3-Clause
// Role: messages that handlers sent while the target's queue was full. A handler cannot wait for
// room: it runs on the polling thread, and two nodes whose handlers waited for each other would
// never empty the queues that both are waiting for. Invariant: per target, messages leave in
// the order they came, and none overtakes them: a sender that finds messages to its target waits
// until they are gone. Messages and queues lie in pages of their own: a handler never meets the
// program's allocator, and targets without messages, of which a job may have a million, cost no
// memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "net/provider/provider.hpp"

namespace hiroba::net {

/// append() and flush() belong to the progress role.
class Outbox {
public:
    explicit Outbox(std::uint32_t nodes);
    Outbox(const Outbox&) = delete;
    ~Outbox();

    /// True when no message to `to` is left. Any thread; the caller may send to it then.
    bool empty(NodeId to) const noexcept {
        // Acquire, pairs with flush(): what is sent next comes behind what was sent there.
        return queues_[to.value].count.load(std::memory_order_acquire) == 0;
    }
    /// True when any message is left. Any thread.
    bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }  // append()

    void append(NodeId to, MessageKind kind, Urgency urgency,
                std::span<const Bytes> parts) noexcept;
    /// Sends what has room by now; has the service threads of the other targets make room.
    void flush(Provider& provider) noexcept;

private:
    struct Deferred;
    struct Queue {
        Deferred* first = nullptr;
        Deferred* last = nullptr;
        std::atomic<std::uint32_t> count{0};
        std::uint32_t next_waiting = 0;  ///< as first_waiting_
    };
    static void discard(Deferred* deferred) noexcept;
    bool flush(Provider& provider, NodeId to) noexcept;

    std::uint32_t nodes_;
    Queue* queues_;                    ///< of each node; zero pages until touched
    std::uint32_t first_waiting_ = 0;  ///< one more than a node with deferreds; 0: none
    std::atomic<std::uint32_t> count_{0};
};

}  // namespace hiroba::net
