// SPDX-License-Identifier: BSD-3-Clause
// Role: stands for provider ucx in builds without UCX's headers.
#include "net/provider/checks.hpp"
#include "net/provider/ucx/make_ucx_provider.hpp"

namespace hiroba::net::ucx {

namespace {

Error absent() { return not_built("ucx", "UCX's", "libucx-dev"); }

}  // namespace

Result<std::unique_ptr<Provider>> make_ucx_provider(ProviderSetup) { return absent(); }

bool has_pinning_devices() noexcept { return false; }

Result<std::string> describe_library() { return absent(); }

}  // namespace hiroba::net::ucx
