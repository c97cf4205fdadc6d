// SPDX-License-Identifier: BSD-3-Clause
// Role: see ucx_provider.hpp; how nodes meet, then what users post.
#include "net/provider/ucx/ucx_provider.hpp"

#include <errno.h>
#include <string.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>
#include <utility>

#include "base/fatal.hpp"
#include "base/own_libraries.hpp"
#include "base/settings.hpp"
#include "base/thread_context.hpp"
#include "net/bootstrap/device.hpp"
#include "net/provider/checks.hpp"
#include "net/provider/exchange_cards.hpp"

namespace hiroba::net::ucx {
namespace {

constexpr Limits ucx_limits{.name = "ucx",
                            .message_bytes_max = UcxProvider::message_bytes_max,
                            .completes_inline = false,
                            .parallel = true,
                            .maps_peers = false};

/// The device that bears `address`, by which other hosts reach this one, and all RDMA devices. UCX
/// alone would also take those that lead to no other host: a container's bridge, loopback.
/// Empty: any will do.
std::string devices_towards(const std::string& address) {
    std::string names;
    for (const NetworkDevice& device : network_devices())
        if (!address.empty() && device.address == address) names = device.name;
    if (names.empty()) return names;
    std::error_code none;
    for (const auto& device : std::filesystem::directory_iterator("/sys/class/infiniband", none)) {
        const std::filesystem::path ports = device.path() / "ports";
        for (const auto& port : std::filesystem::directory_iterator(ports, none))
            names +=
                "," + device.path().filename().string() + ":" + port.path().filename().string();
    }
    return names;
}

/// Fields of a card: a length, then the bytes.
void append(std::vector<std::byte>& card, const void* bytes, std::uint64_t count) {
    const auto* const length = reinterpret_cast<const std::byte*>(&count);
    card.insert(card.end(), length, length + sizeof count);
    const auto* const first = static_cast<const std::byte*>(bytes);
    card.insert(card.end(), first, first + count);
}

/// The field at `at`, which moves on; empty where the card ends.
std::span<const std::byte> take_field(std::span<const std::byte>& at) {
    std::uint64_t count = 0;
    if (at.size() < sizeof count) return {};
    std::memcpy(&count, at.data(), sizeof count);
    at = at.subspan(sizeof count);
    const auto field = at.first(std::min<std::size_t>(count, at.size()));
    at = at.subspan(field.size());
    return field;
}

}  // namespace

Result<std::unique_ptr<Provider>> make_ucx_provider(ProviderSetup setup) {
    if (auto checked = check_rank(setup); !checked) return checked.error();
    const auto silence_s = setting_number("HIROBA_PEER_TIMEOUT");
    if (!silence_s) return silence_s.error();
    const auto ucp = UcpLibrary::load();
    if (!ucp) return ucp.error();
    return std::unique_ptr<Provider>(
        std::make_unique<UcxProvider>(std::move(setup), **ucp, *silence_s));
}

UcxProvider::UcxProvider(ProviderSetup setup, const UcpLibrary& ucp, std::uint64_t silence_max_s)
    : setup_(std::move(setup)),
      ucp_(ucp),
      silence_max_s_(std::min<std::uint64_t>(silence_max_s, 1'000'000)),
      limits_(ucx_limits),
      regions_(ucp) {
    limits_.pins_memory = has_pinning_devices();
}

UcxProvider::~UcxProvider() {
    for (Peer& peer : peers_) {
        peer.keys.forget(ucp_);
        close_endpoint(peer);
    }
    if (worker_ != nullptr) {
        while (ucp_.worker_progress(worker_) != 0) {
        }
        ucp_.worker_destroy(worker_);
    }
    regions_.give_up(context_);
    if (context_ != nullptr) ucp_.cleanup(context_);
    while (Message* const message = arrived_.pop()) std::free(message);
    while (Message* const message = words_.pop()) std::free(message);
}

const Limits& UcxProvider::limits() const noexcept { return limits_; }

Error UcxProvider::wrong(const char* call, ucs_status_t status) const {
    return {ErrorKind::environment, std::string("provider ucx (UCX ") + ucp_.get_version_string() +
                                        "): " + call + ": " + ucp_.status_string(status) +
                                        ". See ucx_info -d, or choose another provider"};
}

// --- meeting -------------------------------------------------------------------------------------

Result<RegionId> UcxProvider::allocate(std::size_t bytes) {
    constexpr std::size_t region_bytes_max = std::size_t{1} << 46;
    HIROBA_INVARIANT(peers_.empty(), "region of %lu bytes allocated after connect()", bytes);
    if (bytes > region_bytes_max)
        return refused(setup_.self, "a region of " + std::to_string(bytes) +
                                        " bytes does not fit the address space; lower HIROBA_HEAP");
    wanted_.push_back(bytes);
    return RegionId{static_cast<std::uint32_t>(wanted_.size() - 1)};
}

Result<void> UcxProvider::open_worker() {
    const LoadingOwnLibraries modules{AtExit::leave_usable};  // one for each kind of wire
    ucp_config_t* config = nullptr;
    ucs_status_t status = ucp_.config_read(nullptr, nullptr, &config);
    if (status != UCS_OK) return wrong("ucp_config_read", status);
    // A version that does not know one of these does as it is asked anyway, or says so below.
    ucp_.config_modify(config, "ATOMIC_MODE", "cpu");
    // One rail keeps messages in order.
    ucp_.config_modify(config, "MAX_EAGER_RAILS", "1");
    const std::string silence = silence_max_s_ == 0 ? "inf" : std::to_string(silence_max_s_) + "s";
    ucp_.config_modify(config, "KEEPALIVE_INTERVAL", silence.c_str());
    const std::string ports{setting("HIROBA_PORTS")};
    if (!ports.empty()) ucp_.config_modify(config, "TCP_PORT_RANGE", ports.c_str());
    const std::string devices = devices_towards(setup_.network);
    if (!devices.empty() && std::getenv("UCX_NET_DEVICES") == nullptr)
        ucp_.config_modify(config, "NET_DEVICES", devices.c_str());
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED |
                        UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
    params.features = UCP_FEATURE_RMA | UCP_FEATURE_AMO64 | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    params.mt_workers_shared = 1;
    params.estimated_num_eps = setup_.nodes;
    status = ucp_.init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context_);
    ucp_.config_release(config);
    if (status != UCS_OK) return wrong("ucp_init", status);

    ucp_worker_params_t worker{};
    worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    status = ucp_.worker_create(context_, &worker, &worker_);
    if (status != UCS_OK) return wrong("ucp_worker_create", status);
    status = ucp_.worker_get_efd(worker_, &event_fd_);
    if (status != UCS_OK) return wrong("ucp_worker_get_efd", status);
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                         UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = message_id;
    handler.cb = on_message;
    handler.arg = this;
    status = ucp_.worker_set_am_recv_handler(worker_, &handler);
    if (status != UCS_OK) return wrong("ucp_worker_set_am_recv_handler", status);
    return {};
}

Result<void> UcxProvider::take_memory() {
    for (std::uint32_t i = 0; i < wanted_.size(); ++i) {
        std::byte* const given = setup_.memory ? setup_.memory(i).data() : nullptr;
        if (!regions_.add(given, wanted_[i], limits_.pins_memory))
            return Error{ErrorKind::environment,
                         "mmap of " + std::to_string(wanted_[i]) + " bytes: " + strerror(errno) +
                             "; see ulimit -v and vm.max_map_count, or lower HIROBA_HEAP"};
    }
    return {};
}

/// The worker's address, then of each region where it starts, its length and its packed key; none
/// where chunks have their own.
Result<std::vector<std::byte>> UcxProvider::make_card() {
    std::vector<std::byte> card;
    ucp_address_t* address = nullptr;
    std::size_t bytes = 0;
    ucs_status_t status = ucp_.worker_get_address(worker_, &address, &bytes);
    if (status != UCS_OK) return wrong("ucp_worker_get_address", status);
    append(card, &setup_.job_key, sizeof setup_.job_key);
    append(card, address, bytes);
    ucp_.worker_release_address(worker_, address);
    for (std::uint32_t i = 0; i < regions_.count(); ++i) {
        const MutableBytes memory = regions_.memory(i);
        const std::uint64_t start = reinterpret_cast<std::uintptr_t>(memory.data());
        const std::uint64_t length = memory.size();
        append(card, &start, sizeof start);
        append(card, &length, sizeof length);
        std::vector<std::byte> key;
        if (length != 0 && !regions_.is_by_chunks(i)) {
            status = regions_.pack_key(context_, i, 0, key);
            if (status != UCS_OK) return wrong("ucp_mem_map and ucp_rkey_pack", status);
        }
        append(card, key.data(), key.size());
    }
    return card;
}

Result<void> UcxProvider::learn(Peer& peer, std::uint32_t rank) {
    std::span<const std::byte> at = peer.card;
    const auto number = [&at] {
        std::uint64_t value = 0;
        const auto field = take_field(at);
        if (field.size() == sizeof value) std::memcpy(&value, field.data(), sizeof value);
        return value;
    };
    if (number() != setup_.job_key)
        return refused(setup_.self, "node " + std::to_string(rank) + " has another job key");
    peer.address = take_field(at);
    for (const std::size_t wanted : wanted_) {
        const std::uint64_t start = number();
        const std::uint64_t bytes = number();
        if (bytes != wanted)
            return refused(setup_.self, "sizes of regions: node " + std::to_string(rank) + " has " +
                                            std::to_string(bytes) + " bytes where this node has " +
                                            std::to_string(wanted));
        peer.keys.add(start, bytes, take_field(at));
    }
    return {};
}

Result<void> UcxProvider::connect() {
    HIROBA_INVARIANT(peers_.empty(), "connect() called twice on node %u", setup_.self.value);
    if (auto opened = open_worker(); !opened) return opened;
    if (auto taken = take_memory(); !taken) return taken;
    ops_ = std::make_unique<Op[]>(ops_max);
    for (std::size_t i = 0; i < ops_max; ++i) {
        ops_[i].provider = this;
        ops_[i].next = std::exchange(free_ops_, &ops_[i]);
    }
    auto mine = make_card();
    if (!mine) return mine.error();
    peers_.resize(setup_.nodes);
    for (Peer& peer : peers_) peer.provider = this;
    auto cards = exchange_cards(setup_, *mine);
    if (!cards) return cards.error();
    for (std::uint32_t rank = 0; rank < setup_.nodes; ++rank) {
        peers_[rank].card = std::move((*cards)[rank]);
        if (auto learned = learn(peers_[rank], rank); !learned) return learned;
    }
    return {};
}

// --- the way to memory and peers -----------------------------------------------------------------

MutableBytes UcxProvider::local(RegionId region) noexcept { return own_memory(regions_, region); }

std::byte* UcxProvider::mapped(NodeId node, RegionId region) noexcept {
    return node == setup_.self ? local(region).data() : nullptr;
}

/// False: there is no way to the peer; it may just have died, of which the launcher tells.
bool UcxProvider::open_endpoint(Peer& peer) noexcept {
    if (peer.endpoint != nullptr) return true;
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(peer.address.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler = {on_error, &peer};
    ucs_status_t status = ucp_.ep_create(worker_, &params, &peer.endpoint);
    if (status == UCS_ERR_UNREACHABLE) {
        // UCX's shared memory tells of no peer's death. Within a host the launcher does.
        params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
        status = ucp_.ep_create(worker_, &params, &peer.endpoint);
        peer.dies_untold = status == UCS_OK;
    }
    if (status == UCS_OK) return true;
    peer.endpoint = nullptr;
    say("provider ucx: no way to node %lu: %s. If it lives, see ucx_info -d; UCX_TLS or "
        "UCX_NET_DEVICES may exclude what leads there",
        static_cast<unsigned long>(&peer - peers_.data()), ucp_.status_string(status));
    peer.broken = true;
    any_broken_ = true;
    return false;
}

std::byte* UcxProvider::own_place(RegionId region, std::uint64_t offset,
                                  std::size_t bytes) noexcept {
    return own_part(regions_, region, offset, bytes);
}

}  // namespace hiroba::net::ucx
