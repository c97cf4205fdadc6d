// SPDX-License-Identifier: BSD-3-Clause
// Role: see udp_provider.hpp; how nodes meet and part, then sleep.
#include "net/provider/udp/udp_provider.hpp"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "base/settings.hpp"
#include "net/bootstrap/device.hpp"
#include "net/provider/apply_atomic.hpp"
#include "net/provider/checks.hpp"
#include "net/provider/this_host.hpp"

namespace hiroba::net::udp {
namespace {

wire::HashKey job_key(const ProviderSetup& setup) noexcept {
    return {setup.job_key, setup.job_key_high};
}

constexpr Limits udp_limits{.name = "udp",
                            .message_bytes_max = udp::message_bytes_max,
                            .completes_inline = false,
                            .parallel = true,
                            .maps_peers = false,
                            .lists_in_order = true,
                            .gathers = true};
constexpr std::uint64_t card_version = 1;
/// From the peer's struct to its slots.
constexpr std::size_t peer_bytes = round_up(sizeof(Peer), page_bytes);
constexpr std::size_t slots_bytes = window_packets * slot_bytes;

void* map_private(std::size_t bytes) noexcept {
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    madvise(memory, bytes, MADV_DONTDUMP);
    return memory;
}

Address loopback(std::uint16_t family, std::uint16_t port) noexcept {
    Address address;
    address.family = family;
    address.port = port;
    if (family == 6) {
        address.bytes[15] = 1;
    } else {
        address.bytes[0] = 127;
        address.bytes[3] = 1;
    }
    return address;
}

/// On one host only what HIROBA_NET says of every host could matter, and a subnet does not.
std::string wanted_network(const ProviderSetup& setup) {
    if (!setup.network.empty()) return setup.network;
    std::string named = network_for_host(setting("HIROBA_NET"), "");
    if (!setup.one_host) return named;
    return named.empty() || named.find('/') != named.npos ? "127.0.0.1" : named;
}

}  // namespace

Result<std::unique_ptr<Provider>> make_udp_provider(ProviderSetup setup) {
    if (auto checked = check_rank(setup); !checked) return checked.error();
    const auto weather = read_weather();
    if (!weather) return weather.error();
    const auto silence_s = setting_number("HIROBA_PEER_TIMEOUT");
    if (!silence_s) return silence_s.error();
    const std::uint64_t silence_max_ns =
        std::min<std::uint64_t>(*silence_s, 1'000'000) * 1'000'000'000u;
    const auto datagram_bytes = setting_number("HIROBA_UDP_DATAGRAM");
    if (!datagram_bytes) return datagram_bytes.error();
    if (*datagram_bytes < datagram_bytes_min || *datagram_bytes > datagram_bytes_max) {
        return Error{ErrorKind::usage, "HIROBA_UDP_DATAGRAM=" + std::to_string(*datagram_bytes) +
                                           ": " + std::to_string(datagram_bytes_min) + " to " +
                                           std::to_string(datagram_bytes_max) + " bytes"};
    }
    return std::unique_ptr<Provider>(std::make_unique<UdpProvider>(
        std::move(setup), *weather, silence_max_ns, static_cast<std::size_t>(*datagram_bytes),
        setting("HIROBA_ENCRYPT") == "on" ? Secrecy::encrypted : Secrecy::open));
}

UdpProvider::UdpProvider(ProviderSetup setup, const Weather& weather, std::uint64_t silence_max_ns,
                         std::size_t datagram_bytes, Secrecy secrecy)
    : setup_(std::move(setup)),
      weather_(weather),
      silence_max_ns_(silence_max_ns),
      datagram_bytes_(datagram_bytes),
      seals_(job_key(setup_), secrecy) {}

UdpProvider::~UdpProvider() {
    for (Peer* peer : talked_) {
        peer->way.close();
        Seals::end(*peer);
        munmap(peer, peer_bytes + 2 * slots_bytes + message_bytes_max);
    }
    for (const RegionMemory& region : regions_) {
        if (region.own) munmap(region.start, round_up(region.bytes, page_bytes));
    }
}

const Limits& UdpProvider::limits() const noexcept { return udp_limits; }

// --- meeting -------------------------------------------------------------------------------------

Result<RegionId> UdpProvider::allocate(std::size_t bytes) {
    constexpr std::size_t region_bytes_max = std::size_t{1} << 46;
    HIROBA_INVARIANT(peers_.nodes() == 0, "region of %lu bytes allocated after connect()", bytes);
    if (bytes > region_bytes_max) {
        return refused(
            setup_.self,
            "a region of " + std::to_string(bytes) +
                " bytes does not fit the address space; lower HIROBA_HEAP or HIROBA_GAS");
    }
    regions_.push_back({nullptr, bytes, false});
    return RegionId{static_cast<std::uint32_t>(regions_.size() - 1)};
}

Result<void> UdpProvider::take_memory() {
    for (std::size_t i = 0; i < regions_.size(); ++i) {
        RegionMemory& region = regions_[i];
        if (setup_.memory) {
            region.start = setup_.memory(static_cast<std::uint32_t>(i)).data();
            continue;
        }
        region.start = static_cast<std::byte*>(map_private(round_up(region.bytes, page_bytes)));
        if (region.start == nullptr) {
            return Error{
                ErrorKind::environment,
                "mmap of " + std::to_string(region.bytes) + " bytes: " + strerror(errno) +
                    "; see ulimit -v and vm.max_map_count, or lower HIROBA_HEAP or HIROBA_GAS"};
        }
        region.own = true;
    }
    return {};
}

Result<void> UdpProvider::connect() {
    HIROBA_INVARIANT(peers_.nodes() == 0, "connect() called twice on node %u", setup_.self.value);
    if (Result<void> taken = take_memory(); !taken) return taken;
    if (getrandom(&drawn_, sizeof drawn_, 0) != sizeof drawn_) {
        return Error{ErrorKind::environment, std::string("getrandom: ") + strerror(errno)};
    }
    if (setup_.host == 0) setup_.host = this_host();
    if (auto opened = seals_.open(); !opened) return opened;
    Address address = loopback(4, 0);
    if (setup_.nodes > 1) {
        const auto chosen = choose_address(wanted_network(setup_));
        if (!chosen) return chosen.error();
        auto copy = chosen;
        address = *copy;
    }
    // Peers of this host are reached by loopback whatever the address; nobody else need be heard.
    Address on{.family = address.family};
    if (setup_.one_host || setup_.nodes == 1) on = loopback(address.family, 0);
    if (auto opened = socket_.open(on); !opened) return opened;
    address.port = socket_.port();
    for (Disturbance* direction : {&out_, &in_}) {
        if (weather_.fair()) break;
        const std::uint64_t stream = 2 * setup_.self.value + (direction == &in_);
        if (auto opened = direction->open(weather_, stream); !opened) return opened;
    }

    ops_ = std::make_unique<Op[]>(ops_max);
    for (std::uint32_t i = 0; i < ops_max; ++i) free_ops_.append(ops_.get(), i);
    talked_.reserve(setup_.nodes);
    dirty_.reserve(setup_.nodes);
    kept_.reserve(setup_.nodes);
    if (!peers_.open(setup_.nodes)) {
        return Error{ErrorKind::environment, "no memory for the addresses of " +
                                                 std::to_string(setup_.nodes) +
                                                 " nodes: " + strerror(errno) + "; see ulimit -v"};
    }
    if (setup_.nodes == 1) {
        peers_.set(0, loopback(address.family, address.port), drawn_);
        return {};
    }
    wire::DatagramCard mine{};
    mine.drawn = drawn_;
    mine.host = setup_.host;
    memcpy(mine.address, address.bytes, sizeof mine.address);
    mine.port = address.port;
    mine.family = address.family;
    mine.scope = address.scope;
    mine.encrypts = seals_.encrypts();
    mine.has_aes = wire::has_aes();
    return meet(mine);
}

/// How much of a datagram's bytes the window may use.
std::size_t UdpProvider::path_bytes(const Way& way) const noexcept {
    return std::min(datagram_bytes_, way.datagram_bytes) - seals_.overhead();
}

Result<void> UdpProvider::meet(wire::DatagramCard& mine) {
    mine.common = {.version = card_version,
                   .job_key = wire::siphash(job_key(setup_), {}),
                   .node = setup_.self.value,
                   .nodes = setup_.nodes};
    for (const RegionMemory& region : regions_) wire::add_region(mine.common, region.bytes);
    const auto all = setup_.exchange(std::as_bytes(std::span(&mine, 1)), -1);
    if (!all) return all.error();
    if (all->bytes.size() != setup_.nodes) {
        return refused(setup_.self, std::to_string(all->bytes.size()) + " nodes met in a job of " +
                                        std::to_string(setup_.nodes));
    }
    for (std::uint32_t rank = 0; rank < setup_.nodes; ++rank) {
        if (auto learned = learn(mine, rank, all->bytes[rank]); !learned) return learned;
    }
    peers_.complete();
    seals_.complete();
    return {};
}

Result<void> UdpProvider::learn(const wire::DatagramCard& mine, std::uint32_t rank, Bytes card) {
    wire::DatagramCard theirs;
    const std::string node = "node " + std::to_string(rank);
    if (card.size() != sizeof theirs) {
        return refused(setup_.self, node + " sent " + std::to_string(card.size()) +
                                        " bytes instead of its address");
    }
    memcpy(static_cast<void*>(&theirs), card.data(), sizeof theirs);
    if (std::string text = wire::card_difference(mine.common, theirs.common, rank); !text.empty()) {
        return refused(setup_.self, node + " has " + text);
    }
    if (theirs.family != mine.family) {
        return refused(setup_.self, node + " has an IPv" + std::to_string(theirs.family) +
                                        " address, here IPv" + std::to_string(mine.family) +
                                        "; set HIROBA_NET");
    }
    if (theirs.encrypts != mine.encrypts) {
        const auto word = [](std::uint32_t encrypts) { return encrypts != 0 ? "on" : "off"; };
        return refused(setup_.self, node + " has HIROBA_ENCRYPT=" + word(theirs.encrypts) +
                                        ", here " + word(mine.encrypts) +
                                        "; set it where the job is started");
    }
    if (theirs.has_aes == 0) seals_.do_without_aes();
    Address address = loopback(theirs.family, theirs.port);
    if (theirs.host != mine.host) {
        memcpy(address.bytes, theirs.address, sizeof address.bytes);
        address.scope = theirs.scope;
        if (address.is_loopback()) {
            return refused(setup_.self, node +
                                            " is on another host and gave a loopback address; "
                                            "set HIROBA_NET to an interface that leads there");
        }
    }
    peers_.set(rank, address, theirs.drawn);
    return {};
}

Peer* UdpProvider::talk_to(std::uint32_t rank) noexcept {
    HIROBA_INVARIANT(rank < peers_.nodes(), "node %u of %u connected nodes", rank, peers_.nodes());
    Peer* const peer = peers_[rank];
    return peer != nullptr ? peer : make_peer(rank);
}

Peer* UdpProvider::make_peer(std::uint32_t rank) noexcept {
    const std::size_t bytes = peer_bytes + 2 * slots_bytes + message_bytes_max;
    auto* const memory = static_cast<std::byte*>(map_private(bytes));
    HIROBA_INVARIANT(memory != nullptr, "mmap of %lu bytes for node %u: errno %d; see ulimit -v",
                     bytes, rank, errno);
    Peer& peer = *::new (memory) Peer;
    peer.node = NodeId{rank};
    peer.way = Way::to(peers_.address(rank));
    seals_.begin(peer, drawn_, peers_.drawn(rank));
    peer.send.open(memory + peer_bytes, path_bytes(peer.way));
    peer.receive.open(memory + peer_bytes + slots_bytes);
    peer.message = memory + peer_bytes + 2 * slots_bytes;
    peers_[rank] = &peer;
    talked_.push_back(&peer);
    return &peer;
}

// --- memory --------------------------------------------------------------------------------------

MutableBytes UdpProvider::local(RegionId region) noexcept {
    return {mapped_address(setup_.self.value, region.value, 0, 0), regions_[region.value].bytes};
}

std::byte* UdpProvider::mapped(NodeId node, RegionId region) noexcept {
    return node == setup_.self ? local(region).data() : nullptr;
}

/// Where the bytes lie here; also checks what lies elsewhere, as regions are equal everywhere.
std::byte* UdpProvider::mapped_address(std::uint32_t node, std::uint32_t region,
                                       std::uint64_t offset, std::uint64_t bytes) noexcept {
    HIROBA_INVARIANT(node < peers_.nodes(), "node %u of %u connected nodes", node, peers_.nodes());
    return region_with(regions_, RegionId{region}, offset, bytes).start + offset;
}

void UdpProvider::peer_lost(NodeId node) noexcept {
    {
        const std::scoped_lock lock{latch_};
        lose(*talk_to(node.value));
    }
    sleep_.ring(Sleeper::waiter);
    sleep_.ring(Sleeper::service);
}

bool UdpProvider::drained() noexcept {
    const std::scoped_lock lock{latch_};
    if (delivering_ != 0) return false;
    return std::ranges::all_of(talked_, [](const Peer* peer) {
        // A peer that waits for an acknowledgement would take this node for a slow one.
        return peer->lost ||
               (peer->send.empty() && peer->to_compose.empty() && peer->answers.empty() &&
                peer->wakes == 0 && peer->acknowledge == Acknowledge::nothing);
    });
}

Counts UdpProvider::counts() noexcept {
    const std::scoped_lock lock{latch_};
    Counts counts = counts_;
    for (const Peer* peer : talked_) counts.retransmitted += peer->send.retransmissions();
    return counts;
}

// --- sleep ---------------------------------------------------------------------------------------

void UdpProvider::sleep(Sleeper role, std::uint64_t timeout_ns, bool (*ready)(void*),
                        void* argument) noexcept {
    sleep_.sleep(role, socket_, timeout_ns, ready, argument);
}

void UdpProvider::wake(NodeId node, Sleeper role) noexcept {
    if (node == setup_.self) {
        sleep_.ring(role);
        return;
    }
    const std::scoped_lock lock{latch_};
    Peer& peer = *talk_to(node.value);
    if (peer.lost) return;
    peer.wakes = static_cast<std::uint8_t>(peer.wakes | 1u << static_cast<unsigned>(role));
    compose(peer);
    transmit(peer);
}

}  // namespace hiroba::net::udp
