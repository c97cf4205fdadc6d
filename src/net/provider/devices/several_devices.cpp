// SPDX-License-Identifier: BSD-3-Clause
// Role: see several_devices.hpp.
#include "net/provider/devices/several_devices.hpp"

#include <algorithm>
#include <utility>

namespace hiroba::net::devices {

SeveralDevices::SeveralDevices(std::unique_ptr<Provider> first, NodeId self,
                               std::vector<Lane> lanes, Maker make)
    : first_(std::move(first)), self_(self), make_(std::move(make)), limits_(first_->limits()) {
    for (Lane& lane : lanes) {
        devices_.push_back(std::make_unique<Device>());
        devices_.back()->lane = std::move(lane);
    }
}

SeveralDevices::~SeveralDevices() {
    for (const auto& device : devices_) device->listener.stop();
}

// Every node makes its devices before it meets the others, so that a device that one of them lacks
// is told by that node, and nobody waits for it in the middle of an exchange.
Result<void> SeveralDevices::connect() {
    for (const auto& device : devices_) {
        device->lane.setup.has_listener = true;
        auto made = make_(std::move(device->lane.setup));
        if (!made) return made.error();
        device->provider = std::move(*made);
        const Limits& limits = device->provider->limits();
        limits_.message_bytes_max = std::min(limits_.message_bytes_max, limits.message_bytes_max);
        limits_.parallel = limits_.parallel && limits.parallel;
    }
    if (auto connected = first_->connect(); !connected) return connected;
    for (const auto& device : devices_) {
        if (auto connected = device->provider->connect(); !connected) return connected;
        device->listener.start("listens to a further device", *device->provider, self_,
                               {first_.get(), self_});
    }
    return {};
}

/// nullptr: the first provider's.
SeveralDevices::Device* SeveralDevices::device_of(MessageKind kind) noexcept {
    for (const auto& device : devices_) {
        if (device->lane.kind == kind) return device.get();
    }
    return nullptr;
}

Post SeveralDevices::send(NodeId to, MessageKind kind, Urgency urgency,
                          std::span<const Bytes> parts) noexcept {
    Device* const device = device_of(kind);
    const bool is_first = device == nullptr || first_->mapped(to, RegionId{0}) != nullptr;
    Provider& provider = is_first ? *first_ : *device->provider;
    return provider.send(to, kind, urgency, parts);
}

bool SeveralDevices::all_are_of_first(std::span<const Work> list) noexcept {
    return std::ranges::none_of(list, [this](const Work& work) {
        return work.kind == Work::Kind::send && device_of(work.message) != nullptr;
    });
}

std::size_t SeveralDevices::post(std::span<Work> list) noexcept {
    return all_are_of_first(list) ? first_->post(list) : Provider::post(list);
}

std::size_t SeveralDevices::post_with_next(std::span<Work> list, bool waits) noexcept {
    return all_are_of_first(list) ? first_->post_with_next(list, waits) : Provider::post(list);
}

void SeveralDevices::peer_lost(NodeId peer) noexcept {
    first_->peer_lost(peer);
    for (const auto& device : devices_) device->provider->peer_lost(peer);
}

bool SeveralDevices::drained() noexcept {
    return first_->drained() && std::ranges::all_of(devices_, [](const auto& device) {
               return device->provider == nullptr || device->provider->drained();
           });
}

std::size_t SeveralDevices::poll(Arrivals& arrivals, std::size_t count_max) noexcept {
    std::size_t events = first_->poll(arrivals, count_max);
    for (const auto& device : devices_) {
        device->listener.polled();
        events += device->provider->poll(arrivals, count_max);
    }
    return events;
}

}  // namespace hiroba::net::devices
