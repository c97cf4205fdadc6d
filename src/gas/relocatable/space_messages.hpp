// SPDX-License-Identifier: BSD-3-Clause
// Role: the messages of the relocatable space, and how they get to a node, this one included.
// Invariant: little endian words; every read is checked, because another process wrote them.
//
//   word 0   kind (32 bits), number of words that follow the head (32)
//   word 1   token: the sender's name for what it wants
//   ask      page | token of the entry << 48                       to the directory node
//   told     page | token << 48, page word                         its answer
//   claim    page                                                  to the directory node
//   granted  page, page word, words of sharers                     its answer, perhaps in parts
//   commit   page, page word                                       to the directory node
//   stop, move, resume   page | former owner << 48, page word      a mover's waves, to sharers
//   ready    number of the change, wave, 1 when drained            the answer to stop and move
//   join     page | rank << 48                                     to the mover: rank misses it
//   publish  first page, pages, bytes, distribution (3 words)      an allocation
//   published  nothing                                             its answer
//   calling  a CollectiveCall; the token is its number             to all ranks but this
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "gas/relocatable/rank_set.hpp"
#include "net/net.hpp"

namespace hiroba::gas {

enum class SpaceMessageKind : std::uint32_t {
    ask = 1,
    told,
    claim,
    granted,
    commit,
    stop,
    move,
    resume,
    ready,
    publish,
    published,
    join,
    calling,
};

struct SpaceMessage {
    NodeId to;
    SpaceMessageKind kind{};
    std::uint64_t token = 0;
    std::vector<std::uint64_t> words;
};

inline constexpr unsigned page_tag_shift = 48;
constexpr std::uint64_t tagged(std::uint64_t page, std::uint64_t tag) noexcept {
    return page | tag << page_tag_shift;
}
constexpr std::uint64_t page_of(std::uint64_t word) noexcept {
    return word & ((std::uint64_t{1} << page_tag_shift) - 1);
}
constexpr std::uint32_t tag_of(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word >> page_tag_shift);
}

/// Sends messages. The receiving handler may send, not wait. Thread: any. No latch may be held.
class SpaceMessages {
public:
    using Words = std::span<const std::uint64_t>;
    using Receive = void (*)(void* context, NodeId from, SpaceMessageKind kind, std::uint64_t token,
                             Words words) noexcept;
    /// Before Endpoint::connect().
    SpaceMessages(net::Endpoint& endpoint, Receive receive, void* context) noexcept;

    void send(NodeId to, SpaceMessageKind kind, std::uint64_t token, Words words) noexcept;
    void send(const SpaceMessage& message) noexcept {
        send(message.to, message.kind, message.token, message.words);
    }
    void send_all(std::span<const SpaceMessage> messages) noexcept {
        for (const SpaceMessage& message : messages) send(message);
    }
    /// Waits until `ready(argument)`. If that takes long it wakes the service threads of `nodes`,
    /// which then look at what was sent to them. Messages themselves wake no thread: a wake-up
    /// costs as much as several round trips between nodes that wait. Not from handlers.
    void wait(bool (*ready)(void*), void* argument, const RankSet& nodes) noexcept;
    template <class Predicate>
    void wait_until(Predicate&& predicate, const RankSet& nodes) noexcept {
        wait([](void* p) { return (*static_cast<std::remove_reference_t<Predicate>*>(p))(); },
             const_cast<void*>(static_cast<const void*>(&predicate)), nodes);
    }
    void wake(const RankSet& nodes) noexcept;
    /// The most pages a message can speak of.
    std::size_t pages_max() const noexcept { return pages_max_; }
    net::Endpoint& endpoint() noexcept { return endpoint_; }

private:
    static void arrived(void* self, NodeId from, Bytes body) noexcept;

    net::Endpoint& endpoint_;
    Receive receive_;
    void* context_;
    std::size_t pages_max_;
};

}  // namespace hiroba::gas
