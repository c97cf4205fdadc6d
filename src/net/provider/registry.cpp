// SPDX-License-Identifier: BSD-3-Clause
// Role: see registry.hpp. A new provider is one line in the table.
#include "net/provider/registry.hpp"

#include <array>
#include <string>
#include <utility>

#include "net/provider/mixed/mixed_provider.hpp"
#include "net/provider/shm/shm_provider.hpp"
#include "net/provider/this_host.hpp"
#include "net/provider/ucx/make_ucx_provider.hpp"
#include "net/provider/udp/udp_provider.hpp"
#include "net/wire/address_card.hpp"

namespace hiroba::net {
namespace {

using Maker = Result<std::unique_ptr<Provider>> (*)(ProviderSetup);

/// shm to nodes on the same host, udp to all others.
Result<std::unique_ptr<Provider>> make_auto_provider(ProviderSetup setup) {
    if (setup.self.value >= setup.nodes) {
        return Error{ErrorKind::refused, "node " + std::to_string(setup.self.value) +
                                             ": a job of " + std::to_string(setup.nodes) +
                                             " nodes has no such rank"};
    }
    mixed::Parts parts{.near = shm::make_shm_provider,
                       .far = udp::make_udp_provider,
                       .near_card_bytes = sizeof(wire::AddressCard),
                       .host = setup.host != 0 ? setup.host : this_host()};
    return std::unique_ptr<Provider>(
        std::make_unique<mixed::MixedProvider>(std::move(setup), std::move(parts)));
}

constexpr std::array<const char*, 4> names{"shm", "udp", "auto", "ucx"};
constexpr std::array<Maker, names.size()> makers{shm::make_shm_provider, udp::make_udp_provider,
                                                 make_auto_provider, ucx::make_ucx_provider};

}  // namespace

std::span<const char* const> provider_names() noexcept { return names; }

Result<std::unique_ptr<Provider>> make_provider(std::string_view name, ProviderSetup setup) {
    std::string known;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (name == names[i]) return makers[i](std::move(setup));
        known += (i == 0 ? "" : ", ") + std::string(names[i]);
    }
    return Error{ErrorKind::usage,
                 "HIROBA_PROVIDER=" + std::string(name) + ": no such provider; there is " + known};
}

}  // namespace hiroba::net
