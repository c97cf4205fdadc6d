// SPDX-License-Identifier: BSD-3-Clause
// Role: see mixed_provider.hpp.
#include "net/provider/mixed/mixed_provider.hpp"

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "base/fatal.hpp"
#include "net/wire/address_card.hpp"
#include "net/wire/siphash.hpp"

namespace hiroba::net::mixed {
namespace {

constexpr Limits mixed_limits{.name = "auto",
                              .message_bytes_max = std::size_t{64} << 10,
                              .completes_inline = false,
                              .parallel = true,
                              .maps_peers = true};
constexpr std::uint64_t card_version = 1;

/// Gives messages of the near provider their sender's number in the job.
struct Renumbered final : Arrivals {
    Renumbered(Arrivals& arrivals, const std::vector<NodeId>& nodes)
        : arrivals(arrivals), nodes(nodes) {}
    void message(NodeId from, MessageKind kind, Bytes body) noexcept override {
        arrivals.message(nodes[from.value], kind, body);
    }
    void completed(OpId id) noexcept override { arrivals.completed(id); }
    void failed(OpId id, NodeId peer) noexcept override { arrivals.failed(id, nodes[peer.value]); }
    void ended(const Completion& then, Outcome outcome) noexcept override {
        arrivals.ended(then, outcome);
    }
    Arrivals& arrivals;
    const std::vector<NodeId>& nodes;
};

}  // namespace

MixedProvider::MixedProvider(ProviderSetup setup, Parts parts)
    : setup_(std::move(setup)), parts_(std::move(parts)), limits_(mixed_limits) {
    limits_.lists_in_order = parts_.lists_in_order;
    limits_.pins_memory = parts_.pins_memory;
    limits_.gathers = parts_.gathers;
}

MixedProvider::~MixedProvider() { listener_.stop(); }

const Limits& MixedProvider::limits() const noexcept { return limits_; }

Result<RegionId> MixedProvider::allocate(std::size_t bytes) {
    region_bytes_.push_back(bytes);
    return RegionId{static_cast<std::uint32_t>(region_bytes_.size() - 1)};
}

// --- meeting -------------------------------------------------------------------------------------

Result<void> MixedProvider::connect() {
    if (auto found = find_hosts(); !found) return found;
    if (auto made = make_parts(); !made) return made;
    for (const std::size_t bytes : region_bytes_) {
        for (Provider* part : {near_.get(), far_.get()}) {
            if (part == nullptr) continue;
            if (auto region = part->allocate(bytes); !region) return region.error();
        }
    }
    if (near_ != nullptr) {
        if (auto connected = near_->connect(); !connected) return connected;
    } else {
        // A node that is alone on its host takes part in the exchange all the same: near providers
        // of other hosts exchange cards, and an exchange needs every node.
        const std::vector<std::byte> nothing(parts_.near_card_bytes);
        if (auto gathered = setup_.exchange(nothing, -1); !gathered) return gathered.error();
    }
    if (far_ != nullptr) {
        if (auto connected = far_->connect(); !connected) return connected;
        if (near_ != nullptr) {
            listener_.start("listens to other hosts", *far_, setup_.self,
                            {near_.get(), NodeId{near_rank_[setup_.self.value]}});
        }
    }
    connected_ = true;
    return {};
}

/// Also compares what the parts would compare: with some nodes refused by one of them, the others
/// would wait for them in the other.
Result<void> MixedProvider::find_hosts() {
    const auto self = "node " + std::to_string(setup_.self.value) + ": node ";
    near_rank_.assign(setup_.nodes, not_near);
    std::vector<std::uint64_t> hosts(setup_.nodes, parts_.host);
    wire::DatagramCard mine{};
    mine.host = parts_.host;
    mine.common = {.version = card_version,
                   .job_key = wire::siphash({setup_.job_key, setup_.job_key_high}, {}),
                   .node = setup_.self.value,
                   .nodes = setup_.nodes};
    for (const std::size_t bytes : region_bytes_) wire::add_region(mine.common, bytes);
    if (setup_.nodes > 1) {
        auto all = setup_.exchange(std::as_bytes(std::span(&mine, 1)), -1);
        if (!all) return all.error();
        for (std::uint32_t rank = 0; rank < setup_.nodes; ++rank) {
            wire::DatagramCard theirs;
            if (all->bytes.size() != setup_.nodes || all->bytes[rank].size() != sizeof theirs) {
                return Error{ErrorKind::refused,
                             self + std::to_string(rank) + " did not tell which host it is on"};
            }
            std::memcpy(static_cast<void*>(&theirs), all->bytes[rank].data(), sizeof theirs);
            if (auto text = wire::card_difference(mine.common, theirs.common, rank);
                !text.empty()) {
                return Error{ErrorKind::refused, self + std::to_string(rank) + " has " + text};
            }
            hosts[rank] = theirs.host;
        }
    }
    for (std::uint32_t rank = 0; rank < setup_.nodes; ++rank) {
        if (hosts[rank] != parts_.host) continue;
        near_rank_[rank] = static_cast<std::uint32_t>(near_nodes_.size());
        near_nodes_.push_back(NodeId{rank});
    }
    if (is_lone()) near_rank_[setup_.self.value] = not_near;
    return {};
}

Result<void> MixedProvider::make_parts() {
    if (!is_lone()) {
        if (auto made = make_near(); !made) return made;
    }
    if (near_nodes_.size() == setup_.nodes) return {};
    ProviderSetup far = setup_;
    far.host = parts_.host;
    if (near_ != nullptr) {
        far.memory = [this](std::uint32_t region) { return near_->local(RegionId{region}); };
        far.has_listener = true;
    }
    auto made = parts_.far(std::move(far));
    if (!made) return made.error();
    far_ = std::move(*made);
    return {};
}

Result<void> MixedProvider::make_near() {
    ProviderSetup near = setup_;
    near.self = NodeId{near_rank_[setup_.self.value]};
    near.nodes = static_cast<std::uint32_t>(near_nodes_.size());
    near.exchange = [this](Bytes mine, int fd) -> Result<ControlChannel::Gathered> {
        HIROBA_INVARIANT(mine.size() == parts_.near_card_bytes, "near card of %lu bytes",
                         mine.size());
        auto all = setup_.exchange(mine, fd);
        if (!all) return all;
        ControlChannel::Gathered ours;
        // Descriptors of other hosts' nodes never arrive; those that do are all to be owned.
        for (const NodeId node : near_nodes_) {
            ours.bytes.push_back(std::move(all->bytes[node.value]));
            ours.fds.push_back(all->fds[node.value]);
        }
        return ours;
    };
    auto made = parts_.near(std::move(near));
    if (!made) return made.error();
    near_ = std::move(*made);
    return {};
}

MixedProvider::Way MixedProvider::way_to(NodeId node) const noexcept {
    HIROBA_INVARIANT(node.value < near_rank_.size(), "node %u of %lu connected nodes", node.value,
                     near_rank_.size());
    const std::uint32_t near = near_rank_[node.value];
    return near == not_near ? Way{far_.get(), node} : Way{near_.get(), NodeId{near}};
}

// --- what users do -------------------------------------------------------------------------------

MutableBytes MixedProvider::local(RegionId region) noexcept { return own().local(region); }

std::byte* MixedProvider::mapped(NodeId node, RegionId region) noexcept {
    const Way way = way_to(node);
    return way.provider->mapped(way.node, region);  // the far one maps this node's own alone
}

Post MixedProvider::send(NodeId to, MessageKind kind, Urgency urgency,
                         std::span<const Bytes> parts) noexcept {
    const Way way = way_to(to);
    return way.provider->send(way.node, kind, urgency, parts);
}

Post MixedProvider::put(OpId id, NodeId to, RegionId region, std::uint64_t offset,
                        Bytes from) noexcept {
    const Way way = way_to(to);
    return way.provider->put(id, way.node, region, offset, from);
}

Post MixedProvider::get(OpId id, MutableBytes to, NodeId from, RegionId region,
                        std::uint64_t offset) noexcept {
    const Way way = way_to(from);
    return way.provider->get(id, to, way.node, region, offset);
}

Post MixedProvider::atomic(OpId id, AtomicOp op, NodeId at, RegionId region, std::uint64_t offset,
                           std::uint64_t operand, std::uint64_t expected,
                           std::uint64_t* old) noexcept {
    const Way way = way_to(at);
    return way.provider->atomic(id, op, way.node, region, offset, operand, expected, old);
}

// Requests to far peers that follow each other stay together.
template <class PostFar>
std::size_t MixedProvider::post_runs(std::span<Work> list, PostFar&& post_far) noexcept {
    const auto is_far = [&](const Work& work) { return way_to(work.peer).provider == far_.get(); };
    std::size_t taken = 0;
    while (taken < list.size()) {
        const bool far = is_far(list[taken]);
        std::size_t end = taken + 1;
        while (far && end < list.size() && is_far(list[end])) ++end;
        const std::span<Work> run = list.subspan(taken, end - taken);
        const std::size_t posted = far ? post_far(run) : Provider::post(run);
        taken += posted;
        if (posted < run.size()) break;
    }
    return taken;
}

std::size_t MixedProvider::post(std::span<Work> list) noexcept {
    return post_runs(list, [&](std::span<Work> run) { return far_->post(run); });
}

std::size_t MixedProvider::post_with_next(std::span<Work> list, bool waits) noexcept {
    return post_runs(list, [&](std::span<Work> run) { return far_->post_with_next(run, waits); });
}

// Near peers are mapped: nobody prepares kicks to them. Far ones have the same number there.
bool MixedProvider::prepare(PreparedKick& kick) noexcept {
    const Way way = way_to(kick.to);
    return way.provider == far_.get() && far_->prepare(kick);
}

Post MixedProvider::kick(const PreparedKick& kick, std::uint32_t offset, std::uint64_t value,
                         bool more) noexcept {
    return far_->kick(kick, offset, value, more);
}

void MixedProvider::peer_lost(NodeId peer) noexcept {
    const Way way = way_to(peer);
    way.provider->peer_lost(way.node);
}

bool MixedProvider::drained() noexcept {
    return !connected_ ||
           ((near_ == nullptr || near_->drained()) && (far_ == nullptr || far_->drained()));
}

std::size_t MixedProvider::poll(Arrivals& arrivals, std::size_t count_max) noexcept {
    if (!connected_) return 0;
    if (near_ == nullptr) return far_->poll(arrivals, count_max);
    listener_.polled();
    Renumbered renumbered{arrivals, near_nodes_};
    std::size_t events = near_->poll(renumbered, count_max);
    if (far_ != nullptr) events += far_->poll(arrivals, count_max);
    return events;
}

// --- sleep ---------------------------------------------------------------------------------------

// Threads sleep where the near provider's peers can wake them; nothing can sleep on that and on the
// far provider's device at once. So one thread sleeps at the far provider for all, and rings. A
// node that is alone on its host has no near provider, and its threads sleep at the far one
// themselves.
void MixedProvider::sleep(Sleeper role, std::uint64_t timeout_ns, bool (*ready)(void*),
                          void* argument) noexcept {
    if (!connected_) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return;
    }
    own().sleep(role, timeout_ns, ready, argument);
}

void MixedProvider::wake(NodeId node, Sleeper role) noexcept {
    if (!connected_) return;
    const Way way = way_to(node);
    way.provider->wake(way.node, role);
}

}  // namespace hiroba::net::mixed
