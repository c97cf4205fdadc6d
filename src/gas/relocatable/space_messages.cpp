// SPDX-License-Identifier: BSD-3-Clause
#include "gas/relocatable/space_messages.hpp"

#include <algorithm>
#include <cstring>

#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "gas/messages.hpp"

namespace hiroba::gas {
namespace {

constexpr std::size_t head_words = 2;
constexpr std::size_t pages_max_wanted = 2048;

/// A node that waits inside hiroba answers at once; one that computes is woken after this long,
/// and again: it may have to be told of what came after it was woken.
constexpr std::uint64_t patience_ns = 20'000, patience_max_ns = 1'000'000;

}  // namespace

SpaceMessages::SpaceMessages(net::Endpoint& endpoint, Receive receive, void* context) noexcept
    : endpoint_(endpoint), receive_(receive), context_(context) {
    const std::size_t room = endpoint.provider().limits().message_bytes_max / 8 - head_words;
    const std::size_t words_of_page_max = 3 + rank_word(endpoint.nodes() - 1);  // granted
    pages_max_ = std::min(room / words_of_page_max, pages_max_wanted);
    endpoint.on(message::relocation, &SpaceMessages::arrived, this);
}

void SpaceMessages::send(NodeId to, SpaceMessageKind kind, std::uint64_t token,
                         Words words) noexcept {
    if (to == endpoint_.self()) return receive_(context_, to, kind, token, words);
    const std::uint64_t head[head_words] = {
        static_cast<std::uint64_t>(kind) | std::uint64_t{words.size()} << 32, token};
    const Bytes parts[] = {std::as_bytes(std::span(head)), std::as_bytes(words)};
    endpoint_.send(to, message::relocation, net::Urgency::when_polled, parts);
}

void SpaceMessages::wait(bool (*ready)(void*), void* argument, const RankSet& nodes) noexcept {
    std::uint64_t pause_ns = patience_ns;
    while (!endpoint_.wait(ready, argument, now_ns() + pause_ns)) {
        wake(nodes);
        pause_ns = std::min(2 * pause_ns, patience_max_ns);
    }
}

void SpaceMessages::wake(const RankSet& nodes) noexcept {
    for (std::uint32_t rank = 0; rank < endpoint_.nodes(); ++rank) {
        if (!nodes.contains(rank) || rank == endpoint_.self().value) continue;
        endpoint_.provider().wake(NodeId{rank}, net::Provider::Sleeper::service);
    }
}

void SpaceMessages::arrived(void* self, NodeId from, Bytes body) noexcept {
    const auto& messages = *static_cast<SpaceMessages*>(self);
    std::uint64_t head[head_words] = {};
    HIROBA_INVARIANT(body.size() >= sizeof head && (body.size() & 7) == 0,
                     "a relocation message of %lu bytes from node %u", body.size(), from.value);
    std::memcpy(head, body.data(), sizeof head);
    body = body.subspan(sizeof head);
    const std::uint64_t kind = head[0] & 0xffff'ffff;
    const bool is_whole = body.size() == (head[0] >> 32) * 8;
    HIROBA_INVARIANT(
        is_whole && kind >= 1 && kind <= static_cast<std::uint64_t>(SpaceMessageKind::calling),
        "relocation message %lu of %lu bytes from node %u", kind, body.size(), from.value);
    // The body may lie at any address; words are read as words.
    if (reinterpret_cast<std::uintptr_t>(body.data()) % alignof(std::uint64_t) == 0) {
        const Words words{reinterpret_cast<const std::uint64_t*>(body.data()), body.size() / 8};
        return messages.receive_(messages.context_, from, static_cast<SpaceMessageKind>(kind),
                                 head[1], words);
    }
    std::vector<std::uint64_t> words(body.size() / 8);
    std::memcpy(words.data(), body.data(), body.size());
    messages.receive_(messages.context_, from, static_cast<SpaceMessageKind>(kind), head[1], words);
}

}  // namespace hiroba::gas
