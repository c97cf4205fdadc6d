// SPDX-License-Identifier: BSD-3-Clause
// Role: see this_host.hpp.
#include "net/provider/this_host.hpp"

#include <sys/stat.h>

#include <cstdio>
#include <span>

#include "net/wire/siphash.hpp"

namespace hiroba::net {

std::uint64_t this_host() {
    char boot[64] = {};
    if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
        if (std::fgets(boot, sizeof boot, file) == nullptr) boot[0] = 0;
        std::fclose(file);
    }
    struct stat network {};
    stat("/proc/self/ns/net", &network);
    const wire::HashKey key{static_cast<std::uint64_t>(network.st_ino), 0};
    return wire::siphash(key, std::as_bytes(std::span(boot))) | 1;
}

}  // namespace hiroba::net
