// SPDX-License-Identifier: BSD-3-Clause
// Role: everybody's card where cards have any length and the exchange takes equal, short pieces.
#pragma once

#include <cstddef>
#include <vector>

#include "net/provider/address_exchange.hpp"

namespace hiroba::net {

/// The cards in rank order, this node's own among them. Collective, as AddressExchange. A node that
/// says something else in the first round is refused: it has another provider.
Result<std::vector<std::vector<std::byte>>> exchange_cards(const ProviderSetup& setup,
                                                           const std::vector<std::byte>& mine);

}  // namespace hiroba::net
