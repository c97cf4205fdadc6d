// SPDX-License-Identifier: BSD-3-Clause
// Role: which nodes can share memory and reach each other by the loopback device.
#pragma once

#include <cstdint>

namespace hiroba::net {

/// Equal in all processes of one boot of one machine and one network namespace, and nowhere else;
/// never 0.
std::uint64_t this_host();

}  // namespace hiroba::net
