// SPDX-License-Identifier: BSD-3-Clause
// Role: see disturbance.hpp.
#include "net/provider/udp/disturbance.hpp"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <string>

#include "base/settings.hpp"

namespace hiroba::net::udp {

Result<Weather> read_weather() {
    Weather weather;
    for (const auto& [name, percent] : {std::pair{"HIROBA_UDP_LOSS", &weather.loss},
                                        std::pair{"HIROBA_UDP_DUPLICATE", &weather.duplicate},
                                        std::pair{"HIROBA_UDP_REORDER", &weather.reorder}}) {
        const auto number = setting_number(name);
        if (!number) return number.error();
        if (*number > 100) {
            return Error{ErrorKind::usage, std::string(name) + "=" + std::to_string(*number) +
                                               ": a percentage, at most 100"};
        }
        *percent = static_cast<std::uint32_t>(*number);
    }
    const auto delay_us = setting_number("HIROBA_UDP_DELAY");
    if (!delay_us) return delay_us.error();
    const auto seed = setting_number("HIROBA_UDP_SEED");
    if (!seed) return seed.error();
    weather.delay_ns = std::min<std::uint64_t>(*delay_us, 1'000'000) * 1'000;
    weather.seed = *seed;
    return weather;
}

Disturbance::~Disturbance() {
    if (memory_ != nullptr) munmap(memory_, (held_max + 1) * slot_bytes);
}

Result<void> Disturbance::open(const Weather& weather, std::uint64_t stream) {
    weather_ = weather;
    state_ = weather.seed * 0x9E37'79B9'7F4A'7C15u + stream;
    void* const memory = mmap(nullptr, (held_max + 1) * slot_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return Error{ErrorKind::environment,
                     std::string("provider udp: memory for delayed datagrams: ") + strerror(errno) +
                         "; see ulimit -v"};
    }
    memory_ = static_cast<std::byte*>(memory);
    return {};
}

/// SplitMix64.
std::uint64_t Disturbance::random() noexcept {
    std::uint64_t z = state_ += 0x9E37'79B9'7F4A'7C15u;
    z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9u;
    z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EBu;
    return z ^ (z >> 31);
}

int Disturbance::treat(Bytes datagram, std::uint64_t tag, std::uint64_t now_ns) noexcept {
    if (happens(weather_.loss)) return 0;
    const int times = happens(weather_.duplicate) ? 2 : 1;
    if (!happens(weather_.reorder) || datagram.size() > slot_bytes) return times;
    for (std::size_t i = 0; i < held_max; ++i) {
        Held& held = held_[i];
        if (held.bytes != 0) continue;
        held.due_ns = now_ns + random() % (weather_.delay_ns + 1);
        held.tag = tag;
        held.bytes = static_cast<std::uint32_t>(datagram.size());
        memcpy(memory_ + i * slot_bytes, datagram.data(), datagram.size());
        due_ns_ = std::min(due_ns_, held.due_ns);
        return times - 1;
    }
    return times;
}

MutableBytes Disturbance::release(std::uint64_t now_ns, std::uint64_t& tag) noexcept {
    if (now_ns < due_ns_) return {};
    for (std::size_t i = 0; i < held_max; ++i) {
        Held& held = held_[i];
        if (held.bytes == 0 || held.due_ns > now_ns) continue;
        // Out of its slot, which is free at once: while it is delivered more may be held back.
        const MutableBytes datagram{memory_ + held_max * slot_bytes, held.bytes};
        memcpy(datagram.data(), memory_ + i * slot_bytes, held.bytes);
        tag = held.tag;
        held.bytes = 0;
        find_due();
        return datagram;
    }
    return {};
}

void Disturbance::find_due() noexcept {
    due_ns_ = ~std::uint64_t{0};
    for (const Held& held : held_) {
        if (held.bytes != 0) due_ns_ = std::min(due_ns_, held.due_ns);
    }
}

}  // namespace hiroba::net::udp
