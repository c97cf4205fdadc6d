// SPDX-License-Identifier: BSD-3-Clause
// Role: makes the provider over libibverbs, in builds with its headers and in those without.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "net/provider/address_exchange.hpp"
#include "net/provider/provider.hpp"

namespace hiroba::net::verbs {

/// An environment error where the library or a device is missing.
Result<std::unique_ptr<Provider>> make_verbs_provider(ProviderSetup setup);

/// One line for each device, fit for people: "mlx5_0 port 1 (InfiniBand, active, ...)". An error
/// where there is no library or no device.
Result<std::vector<std::string>> describe_devices();

}  // namespace hiroba::net::verbs
