// SPDX-License-Identifier: BSD-3-Clause
// Role: see authenticator.hpp.
#include "net/wire/authenticator.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace hiroba::net::wire {
namespace {

__extension__ using Product = unsigned __int128;

constexpr std::size_t pair_bytes = 16;

/// The words of a pair, each with its key's added, multiplied.
Product product(const std::uint64_t* key, const std::byte* pair) noexcept {
    std::uint64_t words[2];
    std::memcpy(words, pair, sizeof words);
    return Product{words[0] + key[0]} * (words[1] + key[1]);
}

/// What a key is derived for.
enum class Use : std::uint64_t { small, joint, part };

/// Word `index` of a key.
std::uint64_t derive(const HashKey& job, Use use, std::uint64_t from, std::uint64_t to,
                     std::uint64_t index) noexcept {
    const std::uint64_t words[] = {static_cast<std::uint64_t>(use), from, to, index};
    return siphash(job, std::as_bytes(std::span(words)));
}

}  // namespace

PartHash part_hash(const PartKey& key, Bytes part) noexcept {
    // Two sums, since each addition waits for the carry of the one before.
    Product even = 0, odd = 0;
    const std::uint64_t* words = key.data();
    const std::byte* at = part.data();
    const std::byte* const end = at + part.size();
    for (; end - at >= 4 * static_cast<std::ptrdiff_t>(pair_bytes); at += 4 * pair_bytes) {
        even += product(words, at);
        odd += product(words + 2, at + pair_bytes);
        even += product(words + 4, at + 2 * pair_bytes);
        odd += product(words + 6, at + 3 * pair_bytes);
        words += 8;
    }
    for (; at < end; at += std::min<std::ptrdiff_t>(pair_bytes, end - at)) {
        std::byte last[pair_bytes]{};
        std::memcpy(last, at, std::min<std::size_t>(pair_bytes, end - at));
        even += product(words, last);
        words += 2;
    }
    const Product sum = even + odd;
    return {static_cast<std::uint64_t>(sum), static_cast<std::uint64_t>(sum >> 64)};
}

std::uint64_t authenticator(const DirectionKey& key, Bytes datagram) noexcept {
    if (datagram.size() <= small_bytes_max) return siphash(key.small, datagram);
    SipHash hash{key.joint};
    std::uint64_t words[whole_bytes / 8];
    std::memcpy(words, datagram.data(), whole_bytes);
    for (const std::uint64_t word : words) hash.absorb(word);
    for (std::size_t at = whole_bytes; at < datagram.size(); at += hashed_part_bytes) {
        const std::size_t bytes = std::min(hashed_part_bytes, datagram.size() - at);
        const PartHash part = part_hash(*key.parts, datagram.subspan(at, bytes));
        hash.absorb(part.low);
        hash.absorb(part.high);
    }
    // The length says how many parts there were.
    return hash.finish(datagram.size());
}

PartKey part_key(const HashKey& job) noexcept {
    PartKey key;
    for (std::size_t i = 0; i < key.size(); ++i) key[i] = derive(job, Use::part, 0, 0, i);
    return key;
}

HashKey small_key(const HashKey& job, std::uint64_t from, std::uint64_t to) noexcept {
    return {derive(job, Use::small, from, to, 0), derive(job, Use::small, from, to, 1)};
}

DirectionKey direction_key(const HashKey& job, const PartKey& parts, std::uint64_t from,
                           std::uint64_t to) noexcept {
    return {small_key(job, from, to),
            {derive(job, Use::joint, from, to, 0), derive(job, Use::joint, from, to, 1)},
            &parts};
}

}  // namespace hiroba::net::wire
