// SPDX-License-Identifier: BSD-3-Clause
// Role: makes providers by name; registry.cpp is the only file that knows which there are.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/result.hpp"
#include "net/provider/address_exchange.hpp"
#include "net/provider/provider.hpp"

namespace hiroba::net {

/// Every name make_provider() accepts. Static storage.
std::span<const char* const> provider_names() noexcept;

/// A usage error names the unknown provider and those there are.
Result<std::unique_ptr<Provider>> make_provider(std::string_view name, ProviderSetup setup);

/// As above, with `further` devices. Where all nodes share memory none is used; a usage error names
/// a provider that has no devices, or a device that is not there.
Result<std::unique_ptr<Provider>> make_provider(std::string_view name, ProviderSetup setup,
                                                const FurtherDevices& further);

}  // namespace hiroba::net
