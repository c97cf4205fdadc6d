// SPDX-License-Identifier: BSD-3-Clause
// Role: the ring behind PeerQueue.
// Invariant: a place is written only between pop() of its former message and push() of the next.
#include "net/kick/peer_queue.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/fatal.hpp"

namespace hiroba::net::kick {

PeerQueue::~PeerQueue() {
    if (memory_ != nullptr) munmap(memory_, places * body_bytes_max);
}

Result<void> PeerQueue::reserve() {
    void* const memory = mmap(nullptr, places * body_bytes_max, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return Error{ErrorKind::environment,
                     "no room for " + std::to_string(places * body_bytes_max) +
                         " bytes of messages of peers: " + std::strerror(errno)};
    memory_ = static_cast<std::byte*>(memory);
    return {};
}

void PeerQueue::push(Bytes body) noexcept {
    const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
    // Pairs with the release in pop(): the place is no longer read.
    const std::uint32_t used = tail - head_.load(std::memory_order_acquire);
    HIROBA_INVARIANT(used < places, "%u messages of a peer wait already", used);
    HIROBA_INVARIANT(body.size() <= body_bytes_max, "a message of a peer, %lu bytes",
                     static_cast<unsigned long>(body.size()));
    std::memcpy(place(tail), body.data(), body.size());
    lengths_[tail % places] = static_cast<std::uint32_t>(body.size());
    tail_.store(tail + 1, std::memory_order_release);  // Pairs with the acquire in empty().
}

Bytes PeerQueue::front() const noexcept {
    HIROBA_INVARIANT(!empty(), "nothing to read");
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    return {place(head), lengths_[head % places]};
}

void PeerQueue::pop() noexcept {
    head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

}  // namespace hiroba::net::kick
