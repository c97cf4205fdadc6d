// SPDX-License-Identifier: BSD-3-Clause
// Role: stands for provider ucx in builds without UCX's headers.
#include "net/provider/ucx/make_ucx_provider.hpp"

namespace hiroba::net::ucx {

namespace {

Error absent() {
    return {ErrorKind::environment,
            "HIROBA_PROVIDER=ucx: this hiroba was built without UCX's headers. Build it where "
            "they are (Debian: libucx-dev), or choose another provider"};
}

}  // namespace

Result<std::unique_ptr<Provider>> make_ucx_provider(ProviderSetup) { return absent(); }

bool has_pinning_devices() noexcept { return false; }

Result<std::string> describe_library() { return absent(); }

}  // namespace hiroba::net::ucx
