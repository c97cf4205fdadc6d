// SPDX-License-Identifier: BSD-3-Clause
// Role: stands for provider verbs in builds without libibverbs' headers.
#include "net/provider/verbs/make_verbs_provider.hpp"

namespace hiroba::net::verbs {
namespace {

Error absent() {
    return {ErrorKind::environment,
            "HIROBA_PROVIDER=verbs: this hiroba was built without libibverbs' headers. Build it "
            "where they are (Debian: libibverbs-dev), or choose another provider"};
}

}  // namespace

Result<std::unique_ptr<Provider>> make_verbs_provider(ProviderSetup) { return absent(); }

Result<std::vector<std::string>> describe_devices() { return absent(); }

}  // namespace hiroba::net::verbs
