// SPDX-License-Identifier: BSD-3-Clause
// Role: see exchange_cards.hpp: first the lengths, then as many pieces as the longest card has.
#include "net/provider/exchange_cards.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace hiroba::net {

Result<std::vector<std::vector<std::byte>>> exchange_cards(const ProviderSetup& setup,
                                                           const std::vector<std::byte>& mine) {
    /// The bytes of one round: the way by which nodes meet bears no more.
    constexpr std::size_t piece_bytes = 960;
    if (setup.nodes == 1) return std::vector<std::vector<std::byte>>{mine};
    const std::uint64_t length = mine.size();
    const auto lengths = setup.exchange(std::as_bytes(std::span(&length, 1)), -1);
    if (!lengths) return lengths.error();
    std::vector<std::uint64_t> wanted(setup.nodes);
    for (std::uint32_t rank = 0; rank < setup.nodes; ++rank) {
        if (lengths->bytes[rank].size() != sizeof length)
            return Error{ErrorKind::refused, "node " + std::to_string(setup.self.value) +
                                                 ": node " + std::to_string(rank) +
                                                 " has another provider"};
        std::memcpy(&wanted[rank], lengths->bytes[rank].data(), sizeof length);
    }
    std::vector<std::vector<std::byte>> cards(setup.nodes);
    const std::uint64_t longest = *std::ranges::max_element(wanted);
    for (std::uint64_t done = 0; done < longest; done += piece_bytes) {
        std::vector<std::byte> piece(piece_bytes);
        if (done < length)
            std::memcpy(piece.data(), mine.data() + done, std::min(piece_bytes, length - done));
        const auto pieces = setup.exchange(piece, -1);
        if (!pieces) return pieces.error();
        for (std::uint32_t rank = 0; rank < setup.nodes; ++rank) {
            const auto& given = pieces->bytes[rank];
            if (cards[rank].size() < wanted[rank])
                cards[rank].insert(cards[rank].end(), given.begin(), given.end());
        }
    }
    for (std::uint32_t rank = 0; rank < setup.nodes; ++rank) cards[rank].resize(wanted[rank]);
    return cards;
}

}  // namespace hiroba::net
