// SPDX-License-Identifier: BSD-3-Clause
// Role: makes the provider over UCX, in builds with UCX's headers and in those without.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "net/provider/address_exchange.hpp"
#include "net/provider/provider.hpp"

namespace hiroba::net::ucx {

/// As ProviderSetup says; refuses a rank outside the job. Environment errors: this machine has no
/// UCX, or this build was made without its headers.
Result<std::unique_ptr<Provider>> make_ucx_provider(ProviderSetup setup);

}  // namespace hiroba::net::ucx
