// SPDX-License-Identifier: BSD-3-Clause
// Role: stands for provider verbs in builds without libibverbs' headers.
#include "net/provider/checks.hpp"
#include "net/provider/verbs/make_verbs_provider.hpp"

namespace hiroba::net::verbs {
namespace {

Error absent() { return not_built("verbs", "libibverbs'", "libibverbs-dev"); }

}  // namespace

Result<std::unique_ptr<Provider>> make_verbs_provider(ProviderSetup) { return absent(); }

Result<std::vector<std::string>> describe_devices() { return absent(); }

}  // namespace hiroba::net::verbs
