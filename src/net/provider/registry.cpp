// SPDX-License-Identifier: BSD-3-Clause
// Role: see registry.hpp. A new provider is one line in the table.
#include "net/provider/registry.hpp"

#include <array>
#include <string>
#include <utility>

#include "base/settings.hpp"
#include "net/bootstrap/device.hpp"
#include "net/provider/devices/several_devices.hpp"
#include "net/provider/mixed/mixed_provider.hpp"
#include "net/provider/secrecy.hpp"
#include "net/provider/shm/shm_provider.hpp"
#include "net/provider/this_host.hpp"
#include "net/provider/ucx/make_ucx_provider.hpp"
#include "net/provider/udp/udp_provider.hpp"
#include "net/provider/verbs/make_verbs_provider.hpp"
#include "net/wire/address_card.hpp"

namespace hiroba::net {
namespace {

using Maker = Result<std::unique_ptr<Provider>> (*)(ProviderSetup);

/// shm to nodes on the same host, another provider to all others.
Result<std::unique_ptr<Provider>> make_mixed(ProviderSetup setup, mixed::Parts parts) {
    if (setup.self.value >= setup.nodes) {
        return Error{ErrorKind::refused, "node " + std::to_string(setup.self.value) +
                                             ": a job of " + std::to_string(setup.nodes) +
                                             " nodes has no such rank"};
    }
    parts.near = shm::make_shm_provider;
    parts.near_card_bytes = sizeof(wire::AddressCard);
    parts.host = setup.host != 0 ? setup.host : this_host();
    return std::unique_ptr<Provider>(
        std::make_unique<mixed::MixedProvider>(std::move(setup), std::move(parts)));
}

Result<std::unique_ptr<Provider>> make_auto_provider(ProviderSetup setup) {
    return make_mixed(std::move(setup),
                      {.far = udp::make_udp_provider, .lists_in_order = true, .gathers = true});
}

Result<std::unique_ptr<Provider>> make_shm_and_ucx(ProviderSetup setup) {
    return make_mixed(std::move(setup),
                      {.far = ucx::make_ucx_provider, .pins_memory = ucx::has_pinning_devices()});
}

Result<std::unique_ptr<Provider>> make_shm_and_verbs(ProviderSetup setup) {
    return make_mixed(
        std::move(setup),
        {.far = verbs::make_verbs_provider, .lists_in_order = true, .pins_memory = true});
}

/// Tells what the machine has for the provider, or what is missing.
using Look = Result<std::string> (*)();

Result<std::string> look_for_shm() { return std::string("between processes of one host"); }
Result<std::string> look_for_udp() { return std::string("any hosts with IP"); }
Result<std::string> look_for_auto() { return std::string("shm within a host, udp between hosts"); }
Result<std::string> look_for_verbs() {
    const auto devices = verbs::describe_devices();
    if (!devices) return devices.error();
    std::string all;
    for (const std::string& device : *devices) all += (all.empty() ? "" : "; ") + device;
    return all;
}

/// What a device of its own is given to, beside the provider's.
enum class Devices : std::uint8_t { none, networks, rdma };

struct Named {
    const char* name;
    Maker make;
    Look look;
    Devices devices;
    bool maps_host;  ///< nodes of one host share memory
    bool encrypts;   ///< whatever leaves the host, where HIROBA_ENCRYPT asks for it
};
constexpr Named providers[] = {
    {"shm", shm::make_shm_provider, look_for_shm, Devices::none, true, true},
    {"udp", udp::make_udp_provider, look_for_udp, Devices::networks, false, true},
    {"auto", make_auto_provider, look_for_auto, Devices::networks, true, true},
    {"ucx", ucx::make_ucx_provider, ucx::describe_library, Devices::none, false, false},
    {"shm+ucx", make_shm_and_ucx, ucx::describe_library, Devices::none, true, false},
    {"verbs", verbs::make_verbs_provider, look_for_verbs, Devices::rdma, false, false},
    {"shm+verbs", make_shm_and_verbs, look_for_verbs, Devices::rdma, true, false}};
constexpr auto names = [] {
    std::array<const char*, std::size(providers)> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = providers[i].name;
    return all;
}();

}  // namespace

std::span<const char* const> provider_names() noexcept { return names; }

Result<void> check_secrecy(std::string_view name) {
    if (setting("HIROBA_ENCRYPT") != "on") return {};
    for (const Named& provider : providers) {
        if (name == provider.name && !provider.encrypts)
            return Error{ErrorKind::environment,
                         "HIROBA_ENCRYPT=on: provider " + std::string(name) +
                             " does not encrypt what it sends; take udp or auto, or set "
                             "HIROBA_ENCRYPT=off where the network is trusted"};
    }
    return {};
}

Result<std::unique_ptr<Provider>> make_provider(std::string_view name, ProviderSetup setup) {
    std::string known;
    for (const Named& provider : providers) {
        if (name == provider.name) {
            if (auto checked = check_secrecy(name); !checked) return checked.error();
            return provider.make(std::move(setup));
        }
        known += (known.empty() ? "" : ", ") + std::string(provider.name);
    }
    return Error{ErrorKind::usage,
                 "HIROBA_PROVIDER=" + std::string(name) + ": no such provider; there is " + known};
}

Result<std::unique_ptr<Provider>> make_provider(std::string_view name, ProviderSetup setup,
                                                const FurtherDevices& further) {
    const Named* named = nullptr;
    for (const Named& provider : providers) {
        if (name == provider.name) named = &provider;
    }
    const bool shares_memory = setup.one_host && named != nullptr && named->maps_host;
    if (further.all.empty() || shares_memory || named == nullptr || setup.nodes == 1)
        return make_provider(name, std::move(setup));
    if (named->devices == Devices::none) {
        return Error{ErrorKind::usage, std::string(further.setting) + ": provider " + named->name +
                                           " takes no further devices; unset it, or take udp, "
                                           "auto, verbs or shm+verbs"};
    }
    std::vector<devices::Lane> lanes;
    for (const FurtherDevices::One& one : further.all) {
        devices::Lane lane{one.kind, setup};
        // Datagrams of one device are foreign at the others.
        lane.setup.job_key_high ^= (lanes.size() + 1) * 0xd6e8'feb8'6659'fd93u;
        if (named->devices == Devices::rdma) {
            lane.setup.device = one.name;
            lane.setup.network = {};
        } else {
            const auto choice = choose_device(one.name, {}, further.setting);
            if (!choice) return choice.error();
            lane.setup.network = choice->address;
        }
        lanes.push_back(std::move(lane));
    }
    const Maker make =
        named->devices == Devices::rdma ? verbs::make_verbs_provider : udp::make_udp_provider;
    const NodeId self = setup.self;
    auto first = make_provider(name, std::move(setup));
    if (!first) return first.error();
    return std::unique_ptr<Provider>(
        std::make_unique<devices::SeveralDevices>(std::move(*first), self, std::move(lanes), make));
}

std::vector<ProviderFinding> find_providers() {
    std::vector<ProviderFinding> all;
    for (const Named& provider : providers) {
        const auto found = provider.look();
        all.push_back(
            {provider.name, static_cast<bool>(found), found ? *found : found.error().text});
    }
    return all;
}

}  // namespace hiroba::net
