// SPDX-License-Identifier: BSD-3-Clause
// Role: see outbox.hpp.
#include "net/outbox.hpp"

#include <errno.h>
#include <sys/mman.h>

#include <cstring>
#include <new>

#include "base/fatal.hpp"

namespace hiroba::net {

/// One message; its body follows in the same mapping.
struct Outbox::Deferred {
    Deferred* next = nullptr;
    std::size_t mapping_bytes = 0;
    std::size_t body_bytes = 0;
    MessageKind kind{};
    Urgency urgency{};

    std::byte* body() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};

Outbox::Outbox(std::uint32_t nodes) : nodes_(nodes) {
    // Zero bytes are an empty queue.
    void* const memory = mmap(nullptr, nodes * sizeof(Queue), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    HIROBA_INVARIANT(memory != MAP_FAILED, "mmap of the outboxes of %u nodes: errno %d", nodes,
                     errno);
    queues_ = static_cast<Queue*>(memory);
}

Outbox::~Outbox() {
    for (std::uint32_t waiting = first_waiting_; waiting != 0;) {
        Queue& queue = queues_[waiting - 1];
        while (Deferred* deferred = queue.first) {
            queue.first = deferred->next;
            discard(deferred);
        }
        waiting = queue.next_waiting;
    }
    munmap(queues_, nodes_ * sizeof(Queue));
}

void Outbox::append(NodeId to, MessageKind kind, Urgency urgency,
                    std::span<const Bytes> parts) noexcept {
    std::size_t body_bytes = 0;
    for (const Bytes part : parts) body_bytes += part.size();
    const std::size_t mapping_bytes = round_up(sizeof(Deferred) + body_bytes, page_bytes);
    void* memory =
        mmap(nullptr, mapping_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HIROBA_INVARIANT(memory != MAP_FAILED,
                     "mmap of %lu bytes for a message to node %u: errno %d; see ulimit -v and "
                     "vm.max_map_count",
                     mapping_bytes, to.value, errno);

    auto* deferred = ::new (memory) Deferred{nullptr, mapping_bytes, body_bytes, kind, urgency};
    std::byte* at = deferred->body();
    for (const Bytes part : parts) {
        if (!part.empty()) std::memcpy(at, part.data(), part.size());
        at += part.size();
    }
    Queue& queue = queues_[to.value];
    if (queue.first == nullptr) {
        queue.next_waiting = first_waiting_;
        first_waiting_ = to.value + 1;
    }
    (queue.first == nullptr ? queue.first : queue.last->next) = deferred;
    queue.last = deferred;
    queue.count.fetch_add(1, std::memory_order_release);  // pairs with empty()
    count_.fetch_add(1, std::memory_order_release);       // pairs with any()
}

void Outbox::flush(Provider& provider) noexcept {
    std::uint32_t* link = &first_waiting_;
    while (*link != 0) {
        const NodeId to{*link - 1};
        Queue& queue = queues_[to.value];
        if (flush(provider, to)) {
            *link = queue.next_waiting;
        } else {
            link = &queue.next_waiting;
        }
    }
}

/// True when no message to `to` is left.
bool Outbox::flush(Provider& provider, NodeId to) noexcept {
    Queue& queue = queues_[to.value];
    while (Deferred* deferred = queue.first) {
        const Bytes parts[] = {Bytes{deferred->body(), deferred->body_bytes}};
        if (provider.send(to, deferred->kind, deferred->urgency, parts) == Post::again) {
            provider.wake(to, Provider::Sleeper::service);
            return false;
        }
        queue.first = deferred->next;
        discard(deferred);
        queue.count.fetch_sub(1, std::memory_order_release);  // pairs with empty()
        count_.fetch_sub(1, std::memory_order_release);
    }
    return true;
}

void Outbox::discard(Deferred* deferred) noexcept { munmap(deferred, deferred->mapping_bytes); }

}  // namespace hiroba::net
