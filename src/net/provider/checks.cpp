// SPDX-License-Identifier: BSD-3-Clause
// Role: see checks.hpp.
#include "net/provider/checks.hpp"

namespace hiroba::net {

Error refused(NodeId self, const std::string& text) {
    return {ErrorKind::refused, "node " + std::to_string(self.value) + ": " + text};
}

Result<void> check_rank(const ProviderSetup& setup) {
    if (setup.self.value < setup.nodes) return {};
    return refused(setup.self,
                   "a job of " + std::to_string(setup.nodes) + " nodes has no such rank");
}

Error not_built(const char* provider, const char* whose, const char* package) {
    return {ErrorKind::environment, std::string("HIROBA_PROVIDER=") + provider +
                                        ": this hiroba was built without " + whose +
                                        " headers. Build it where they are (Debian: " + package +
                                        "), or choose another provider"};
}

}  // namespace hiroba::net
