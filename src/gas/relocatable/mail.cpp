// SPDX-License-Identifier: BSD-3-Clause
#include "gas/relocatable/mail.hpp"

#include <algorithm>
#include <cstring>

#include "base/fatal.hpp"

namespace hiroba::gas {
namespace {

constexpr std::size_t head_words = 2;
constexpr std::size_t words_of_page_max = 3;
constexpr std::size_t pages_max_wanted = 2048;

/// A node that waits for its answer is up; others may have to be woken.
net::Urgency urgency_of(MailKind kind) noexcept {
    const bool is_answer = kind == MailKind::told || kind == MailKind::granted ||
                           kind == MailKind::ready || kind == MailKind::published;
    return is_answer ? net::Urgency::when_polled : net::Urgency::wake_service;
}

}  // namespace

Mail::Mail(net::Endpoint& endpoint, Receive receive, void* context) noexcept
    : endpoint_(endpoint), receive_(receive), context_(context) {
    const std::size_t room = endpoint.provider().limits().message_bytes_max / 8 - head_words;
    pages_max_ = std::min(room / words_of_page_max, pages_max_wanted);
    endpoint.on(net::MessageKind::relocation, &Mail::arrived, this);
}

void Mail::send(NodeId to, MailKind kind, std::uint64_t token, Words words) noexcept {
    if (to == endpoint_.self()) return receive_(context_, to, kind, token, words);
    const std::uint64_t head[head_words] = {
        static_cast<std::uint64_t>(kind) | std::uint64_t{words.size()} << 32, token};
    const Bytes parts[] = {std::as_bytes(std::span(head)), std::as_bytes(words)};
    endpoint_.send(to, net::MessageKind::relocation, urgency_of(kind), parts);
}

void Mail::arrived(void* self, NodeId from, Bytes body) noexcept {
    const auto& mail = *static_cast<Mail*>(self);
    std::uint64_t head[head_words] = {};
    HIROBA_INVARIANT(body.size() >= sizeof head && (body.size() & 7) == 0,
                     "a relocation message of %lu bytes from node %u", body.size(), from.value);
    std::memcpy(head, body.data(), sizeof head);
    body = body.subspan(sizeof head);
    const std::uint64_t kind = head[0] & 0xffff'ffff;
    const bool is_whole = body.size() == (head[0] >> 32) * 8;
    HIROBA_INVARIANT(is_whole && kind >= 1 && kind <= std::uint64_t{11},
                     "relocation message %lu of %lu bytes from node %u", kind, body.size(),
                     from.value);
    // The body may lie at any address; words are read as words.
    if (reinterpret_cast<std::uintptr_t>(body.data()) % alignof(std::uint64_t) == 0) {
        const Words words{reinterpret_cast<const std::uint64_t*>(body.data()), body.size() / 8};
        return mail.receive_(mail.context_, from, static_cast<MailKind>(kind), head[1], words);
    }
    std::vector<std::uint64_t> words(body.size() / 8);
    std::memcpy(words.data(), body.data(), body.size());
    mail.receive_(mail.context_, from, static_cast<MailKind>(kind), head[1], words);
}

}  // namespace hiroba::gas
