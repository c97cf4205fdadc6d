// SPDX-License-Identifier: BSD-3-Clause
// Role: see long_wait.hpp.
#include "net/long_wait.hpp"

#include "base/settings.hpp"

namespace hiroba::net {

std::uint64_t wait_limit_s() noexcept {
    const auto set = setting_number("HIROBA_WAIT_TIMEOUT");
    return set ? *set : 0;
}

}  // namespace hiroba::net
