// SPDX-License-Identifier: BSD-3-Clause
// Role: stands for provider ucx in builds without UCX's headers.
#include "net/provider/ucx/make_ucx_provider.hpp"

namespace hiroba::net::ucx {

Result<std::unique_ptr<Provider>> make_ucx_provider(ProviderSetup) {
    return Error{ErrorKind::environment,
                 "HIROBA_PROVIDER=ucx: this hiroba was built without UCX's headers. Build it where "
                 "they are (Debian: libucx-dev), or choose another provider"};
}

}  // namespace hiroba::net::ucx
