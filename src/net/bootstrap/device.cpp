// SPDX-License-Identifier: BSD-3-Clause
// Role: see device.hpp.
#include "net/bootstrap/device.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
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

/// The first `bits` of both numeric addresses are equal; false for an address that is none.
bool is_within(const std::string& address, const std::string& network, unsigned bits) {
    for (const int family : {AF_INET, AF_INET6}) {
        unsigned char a[16] = {}, b[16] = {};
        const unsigned bits_max = family == AF_INET ? 32 : 128;
        if (bits > bits_max || ::inet_pton(family, address.c_str(), a) != 1 ||
            ::inet_pton(family, network.c_str(), b) != 1)
            continue;
        unsigned bit = 0;
        while (bit < bits && ((a[bit / 8] ^ b[bit / 8]) >> (7 - bit % 8) & 1) == 0) ++bit;
        return bit == bits;
    }
    return false;
}

/// Whether `wanted` is the device's name or address, or the subnet that its address lies in.
bool names(const std::string& wanted, const NetworkDevice& device) {
    const std::size_t slash = wanted.find('/');
    if (slash == std::string::npos) return device.name == wanted || device.address == wanted;
    unsigned bits = 0;
    const char* const end = wanted.data() + wanted.size();
    const auto parsed = std::from_chars(wanted.data() + slash + 1, end, bits);
    return parsed.ec == std::errc{} && parsed.ptr == end &&
           is_within(device.address, wanted.substr(0, slash), bits);
}

bool is_address(const std::string& text) {
    unsigned char bytes[16];
    const std::string number = text.substr(0, text.find('/'));
    return ::inet_pton(AF_INET, number.c_str(), bytes) == 1 ||
           ::inet_pton(AF_INET6, number.c_str(), bytes) == 1;
}

Result<DeviceChoice> named_device(const std::string& wanted,
                                  const std::vector<NetworkDevice>& devices, const char* setting) {
    for (const NetworkDevice& device : devices) {
        if (device.up && names(wanted, device))
            return DeviceChoice{device.name, device.address, std::string(setting) + " names it"};
    }
    return Error{ErrorKind::usage, std::string(setting) + "=" + wanted +
                                       ": no device of this host is up and has that name, "
                                       "address or subnet; there are " +
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

std::string network_for_host(std::string_view setting, std::string_view host) {
    std::string for_all, for_host;
    std::string_view rest = setting;
    while (!rest.empty()) {
        const std::string item{rest.substr(0, rest.find(','))};
        rest.remove_prefix(std::min(rest.size(), item.size() + 1));
        // In brackets, as in --hosts, a host may be an address of IPv6.
        const bool bracketed = item.starts_with('[');
        const std::size_t closed = bracketed ? item.find(']') : 0;
        const std::size_t colon = closed == item.npos ? item.npos : item.find(':', closed);
        if (colon == item.npos || colon == 0 || (!bracketed && is_address(item)))
            for_all = item;
        else if (item.substr(bracketed, (bracketed ? closed - 1 : colon)) == host)
            for_host = item.substr(colon + 1);
    }
    return for_host.empty() ? for_all : for_host;
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

Result<DeviceChoice> choose_device(std::string_view wanted, std::span<const std::string> peers,
                                   const char* setting) {
    const std::vector<NetworkDevice> devices = network_devices();
    if (!wanted.empty()) return named_device(std::string(wanted), devices, setting);

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
