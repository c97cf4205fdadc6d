// SPDX-License-Identifier: BSD-3-Clause
// Role: which address a node gives to its peers; see socket.hpp.
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>

#include <memory>
#include <string>

#include "net/provider/udp/socket.hpp"

namespace hiroba::net::udp {
namespace {

/// Interfaces that containers and virtual machines put between themselves; they lead to no other
/// host.
bool is_virtual(std::string_view interface) noexcept {
    for (const std::string_view start :
         {"docker", "br-", "virbr", "lxc", "lxd", "cni", "flannel", "podman", "vnet"}) {
        if (interface.starts_with(start)) return true;
    }
    return false;
}

bool read_sockaddr(const sockaddr* name, Address& address) noexcept {
    address = {};
    if (name == nullptr) return false;
    if (name->sa_family == AF_INET) {
        address.family = 4;
        memcpy(address.bytes, &reinterpret_cast<const sockaddr_in*>(name)->sin_addr, 4);
        return true;
    }
    if (name->sa_family != AF_INET6) return false;
    const auto* six = reinterpret_cast<const sockaddr_in6*>(name);
    address.family = 6;
    address.scope = six->sin6_scope_id;
    memcpy(address.bytes, &six->sin6_addr, 16);
    return true;
}

/// Lower is better; IPv4 before IPv6, link-local last.
int rank_of(const ifaddrs& entry, const Address& address) noexcept {
    int rank = address.family == 6 ? 1 : 0;
    if (address.family == 6 && address.bytes[0] == 0xfe && address.bytes[1] == 0x80) rank += 2;
    if (is_virtual(entry.ifa_name)) rank += 4;
    if ((entry.ifa_flags & IFF_LOOPBACK) != 0) rank += 8;
    return rank;
}

}  // namespace

bool Address::is_loopback() const noexcept {
    if (family == 4) return bytes[0] == 127;
    for (int i = 0; i < 15; ++i) {
        if (bytes[i] != 0) return false;
    }
    return bytes[15] == 1;
}

Result<Address> choose_address(std::string_view network) {
    const std::string wanted{network};
    Address numeric;
    if (inet_pton(AF_INET, wanted.c_str(), numeric.bytes) == 1) numeric.family = 4;
    if (numeric.family == 0 && inet_pton(AF_INET6, wanted.c_str(), numeric.bytes) == 1) {
        numeric.family = 6;
    }
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0) {
        return Error{ErrorKind::environment,
                     std::string("provider udp: network interfaces: ") + strerror(errno)};
    }
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner{list, &freeifaddrs};

    Address best;
    int best_rank = 1 << 10;
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
        Address address;
        if ((entry->ifa_flags & IFF_UP) == 0 || !read_sockaddr(entry->ifa_addr, address)) continue;
        if (numeric.family != 0) {
            if (address.family != numeric.family || memcmp(address.bytes, numeric.bytes, 16) != 0) {
                continue;
            }
        } else if (!wanted.empty() && wanted != entry->ifa_name) {
            continue;
        }
        const int rank = rank_of(*entry, address);
        if (rank >= best_rank) continue;
        best = address;
        best_rank = rank;
    }
    if (best.family == 0 && wanted.empty()) {
        return Error{ErrorKind::environment,
                     "provider udp: no network device of this host is up, nor loopback. Bring one "
                     "up (ip link set lo up)"};
    }
    if (best.family == 0 && wanted == "127.0.0.1") {
        return Error{ErrorKind::environment,
                     "provider udp: loopback, 127.0.0.1, is down. Bring it up (ip link set lo up)"};
    }
    if (best.family == 0) {
        return Error{
            ErrorKind::usage,
            "HIROBA_NET=" + wanted + ": no interface of this host is up with that name or address"};
    }
    return best;
}

socklen_t to_sockaddr(const Address& address, sockaddr_storage& storage) noexcept {
    storage = {};
    if (address.family == 6) {
        auto& six = reinterpret_cast<sockaddr_in6&>(storage);
        six.sin6_family = AF_INET6;
        six.sin6_port = htons(address.port);
        six.sin6_scope_id = address.scope;
        memcpy(&six.sin6_addr, address.bytes, 16);
        return sizeof six;
    }
    auto& four = reinterpret_cast<sockaddr_in&>(storage);
    four.sin_family = AF_INET;
    four.sin_port = htons(address.port);
    memcpy(&four.sin_addr, address.bytes, 4);
    return sizeof four;
}

}  // namespace hiroba::net::udp
