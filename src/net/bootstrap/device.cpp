// SPDX-License-Identifier: BSD-3-Clause
// Role: see device.hpp.
#include "net/bootstrap/device.hpp"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>

namespace hiroba::net {

namespace {

/// Addresses set aside for documentation (RFC 5737, RFC 3849): a route to them is the one that
/// leads out of this host.
constexpr const char* elsewhere[] = {"192.0.2.1", "2001:db8::1"};

std::string text_of(const sockaddr* name) {
    const socklen_t bytes =
        name->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    char text[NI_MAXHOST] = {};
    if (::getnameinfo(name, bytes, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
    return std::string(text).substr(0, std::string_view(text).find('%'));
}

Error unfit(std::string text) { return {ErrorKind::environment, std::move(text)}; }

/// "eth0 10.0.0.1, lo 127.0.0.1".
std::string list(const std::vector<NetworkDevice>& devices) {
    std::string text;
    for (const NetworkDevice& device : devices) {
        text += (text.empty() ? "" : ", ") + device.name + " " + device.address;
        if (!device.up) text += " (down)";
    }
    return text.empty() ? "none" : text;
}

Result<DeviceChoice> named_device(const std::string& wanted,
                                  const std::vector<NetworkDevice>& devices) {
    for (const NetworkDevice& device : devices) {
        if (device.up && (device.name == wanted || device.address == wanted))
            return DeviceChoice{device.name, device.address, "HIROBA_NET names it"};
    }
    return Error{ErrorKind::usage, "HIROBA_NET=" + wanted +
                                       ": no device of this host is up and has that name or "
                                       "address; there are " +
                                       list(devices)};
}

const NetworkDevice* holder_of(const std::vector<NetworkDevice>& devices,
                               const std::string& address) {
    for (const NetworkDevice& device : devices)
        if (device.address == address) return &device;
    return nullptr;
}

}  // namespace

std::vector<NetworkDevice> network_devices() {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return {};
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
    std::vector<NetworkDevice> devices;
    for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
        if (!entry->ifa_addr) continue;
        const int family = entry->ifa_addr->sa_family;
        if (family != AF_INET && family != AF_INET6) continue;
        NetworkDevice device;
        device.name = entry->ifa_name;
        device.address = text_of(entry->ifa_addr);
        device.up = (entry->ifa_flags & IFF_UP) && (entry->ifa_flags & IFF_RUNNING);
        device.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
        device.bridge = ::access(("/sys/class/net/" + device.name + "/bridge").c_str(), F_OK) == 0;
        devices.push_back(std::move(device));
    }
    return devices;
}

Result<std::string> address_towards(const std::string& peer) {
    addrinfo wanted{}, *found = nullptr;
    wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    wanted.ai_socktype = SOCK_DGRAM;
    if (::getaddrinfo(peer.c_str(), "9", &wanted, &found) != 0)
        return unfit("\"" + peer + "\" is no numeric address");
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
    const int socket = ::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket < 0) return unfit(std::string("cannot make a socket: ") + std::strerror(errno));
    sockaddr_storage mine{};
    socklen_t bytes = sizeof mine;
    // Connecting a datagram socket only looks up the route.
    const bool routed = ::connect(socket, found->ai_addr, found->ai_addrlen) == 0 &&
                        ::getsockname(socket, reinterpret_cast<sockaddr*>(&mine), &bytes) == 0;
    const int error = errno;
    ::close(socket);
    if (!routed) return unfit("no route to " + peer + ": " + std::strerror(error));
    return text_of(reinterpret_cast<sockaddr*>(&mine));
}

Result<DeviceChoice> choose_device(std::string_view wanted, std::span<const std::string> peers) {
    const std::vector<NetworkDevice> devices = network_devices();
    if (!wanted.empty()) return named_device(std::string(wanted), devices);

    DeviceChoice choice;
    std::string first_peer;
    for (const std::string& peer : peers) {
        const auto address = address_towards(peer);
        if (!address)
            return unfit(address.error().text + ". Set HIROBA_NET; devices are " + list(devices));
        const NetworkDevice* const device = holder_of(devices, *address);
        if (!device || device->loopback)
            return unfit("packets to " + peer + " would not leave this host (from " + *address +
                         "). Set HIROBA_NET; devices are " + list(devices));
        if (!choice.name.empty() && choice.address != *address)
            return unfit(first_peer + " lies behind " + choice.name + " (" + choice.address +
                         "), " + peer + " behind " + device->name + " (" + *address +
                         "). Set HIROBA_NET to the one that leads to all");
        choice = {device->name, *address, "it leads to the other hosts"};
        first_peer = peer;
    }
    if (!choice.name.empty()) return choice;
    for (const char* const address : elsewhere) {
        const auto mine = address_towards(address);
        const NetworkDevice* const device = mine ? holder_of(devices, *mine) : nullptr;
        if (device && !device->loopback)
            return DeviceChoice{device->name, *mine, "it leads out of this host"};
    }
    return unfit("no device leads out of this host; devices are " + list(devices));
}

}  // namespace hiroba::net
