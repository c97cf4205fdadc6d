// SPDX-License-Identifier: BSD-3-Clause
// Role: the ports that a job over hosts may listen on, where a firewall lets only some through.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"

namespace hiroba::net {

/// Both ends included; {0, 0}: any free port.
struct PortRange {
    std::uint16_t first = 0, last = 0;
    bool any() const noexcept { return first == 0; }
};

/// Reads HIROBA_PORTS: "A-B", or "" for any. Usage errors: no such range.
Result<PortRange> port_range(std::string_view text);

}  // namespace hiroba::net
