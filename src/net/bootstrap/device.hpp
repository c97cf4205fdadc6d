// SPDX-License-Identifier: BSD-3-Clause
// Role: which network device a host's nodes use, by asking the kernel where packets to the job's
// other hosts would leave. Names of devices are never guessed from: a device is right because the
// peers lie behind it, whatever it is called.
// Invariant: nothing is sent; addresses are numeric text, as inet_pton reads it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace hiroba::net {

/// One address of one device of this host.
struct NetworkDevice {
    std::string name;
    std::string address;
    bool up = false;  ///< has a carrier and is switched on
    bool loopback = false;
    bool bridge = false;  ///< joins virtual machines or containers of this host
};

/// Every address of this host, in the kernel's order; empty when they cannot be read.
std::vector<NetworkDevice> network_devices();

/// The address from which packets to `peer` leave. An environment error when there is no route.
Result<std::string> address_towards(const std::string& peer);

struct DeviceChoice {
    std::string name;
    std::string address;
    std::string why;
};

/// What the setting HIROBA_NET says of a host: items of the form DEVICE, for all hosts, or
/// HOST:DEVICE, which goes first, with commas between; HOST as --hosts names it. Empty: nothing.
std::string network_for_host(std::string_view setting, std::string_view host);

/// The device that leads to all of `peers`, or the one that `wanted` names: a name, an address or a
/// subnet, from `setting`. Without both: the one that leads out of this host.
/// Errors: usage when `wanted` is no device of this host that is up; environment when no device
/// fits: no route, only loopback, or different devices for different peers.
Result<DeviceChoice> choose_device(std::string_view wanted, std::span<const std::string> peers,
                                   const char* setting = "HIROBA_NET");

}  // namespace hiroba::net
