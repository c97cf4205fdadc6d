// SPDX-License-Identifier: BSD-3-Clause
// Role: how an agent finds the launcher among the addresses that the launcher may have.
#pragma once

#include "base/result.hpp"
#include "net/bootstrap/host_link.hpp"
#include "tools/hosts/startup_packet.hpp"

namespace hiroba::tools {

/// Connects to every address of the start-up packet, and to the one ssh came from, at once. The
/// launcher is the first of them, in this order, that proves to know the job's key; whatever
/// answers later than 0.5 s behind another is passed over. So agents take one network where all
/// reach several. An environment error when none did within `limit_ms`, naming all.
Result<net::HostLink> call_launcher(const StartupPacket& packet, int limit_ms);

}  // namespace hiroba::tools
