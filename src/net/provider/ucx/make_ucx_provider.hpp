// SPDX-License-Identifier: BSD-3-Clause
// Role: makes the provider over UCX, in builds with UCX's headers and in those without.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "net/provider/address_exchange.hpp"
#include "net/provider/provider.hpp"

namespace hiroba::net::ucx {

/// As ProviderSetup says; refuses a rank outside the job. Environment errors: this machine has no
/// UCX, or this build was made without its headers.
Result<std::unique_ptr<Provider>> make_ucx_provider(ProviderSetup setup);

/// Whether this host has devices that carry data to and from memory by themselves, and pin it:
/// then Limits::pins_memory.
bool has_pinning_devices() noexcept;

/// Describes the version that is found, for people. Errors as above.
Result<std::string> describe_library();

}  // namespace hiroba::net::ucx
