// SPDX-License-Identifier: BSD-3-Clause
// Role: see node.hpp. First the life, then memory, then access.
#include "acp/node.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "acp/refusal.hpp"
#include "base/fatal.hpp"
#include "base/service_thread.hpp"
#include "base/settings.hpp"

namespace hiroba::acp {
namespace {

constexpr std::uint64_t starter_bytes_min = 1024;

/// Whether the first or the last page is not mapped. Two calls of the kernel, of any size.
bool is_unmapped(const void* first, std::uint64_t bytes) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(first);
    if (begin == 0 || bytes == 0 || bytes - 1 > ~begin) return false;  // refused by the table
    const auto is_absent = [](std::uintptr_t at) {
        unsigned char resident = 0;
        void* const page = reinterpret_cast<void*>(at / page_bytes * page_bytes);
        return ::mincore(page, page_bytes, &resident) != 0 && errno == ENOMEM;
    };
    const int kept = errno;
    const bool is_any = is_absent(begin) || is_absent(begin + bytes - 1);
    errno = kept;
    return is_any;
}

/// Another life is another job to the provider: a datagram of the last one is foreign.
net::JobInfo job_of_life(net::JobInfo job, std::uint64_t number) {
    job.job_key_high ^= number * 0x9e3779b97f4a7c15u;
    return job;
}

Result<std::uint64_t> starter_size() {
    auto bytes = setting_number("HIROBA_ACP_STARTER");
    if (!bytes) return bytes;
    if (*bytes < starter_bytes_min || *bytes >> gas::AddressLayout::offset_bits != 0) {
        return Error{ErrorKind::usage, "HIROBA_ACP_STARTER=" + std::to_string(*bytes) +
                                           ": starter memory has 1024 bytes to 32G"};
    }
    return bytes;
}

/// The devices of colors 1 and up, which all ranks must have alike.
Result<net::FurtherDevices> further_devices(const net::JobInfo& job, net::ControlChannel& control) {
    net::FurtherDevices further{.all = {}, .setting = "HIROBA_ACP_DEVICES"};
    const std::string_view text = setting("HIROBA_ACP_DEVICES");
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view name = text.substr(at, text.find(',', at) - at);
        const auto color = static_cast<std::uint32_t>(further.all.size() + 1);
        if (name.empty() || color == gas::AddressLayout::colors_max) {
            return Error{ErrorKind::usage, "HIROBA_ACP_DEVICES=" + std::string(text) +
                                               ": 1 to 3 names of devices with commas between"};
        }
        further.all.push_back({gas::delegation_kind(color), std::string(name)});
        at += name.size() + 1;
    }
    const std::uint64_t mine = further.all.size();
    auto all = control.all_gather(std::as_bytes(std::span(&mine, 1)), -1);
    if (!all) return all.error();
    for (std::size_t node = 0; node < all->bytes.size(); ++node) {
        std::uint64_t theirs = 0;
        std::memcpy(&theirs, all->bytes[node].data(), sizeof theirs);
        if (theirs == mine) continue;
        return Error{ErrorKind::usage,
                     "HIROBA_ACP_DEVICES: rank " + std::to_string(job.self.value) + " has " +
                         std::to_string(mine) + " further devices, rank " + std::to_string(node) +
                         " has " + std::to_string(theirs) + ". Give all as many"};
    }
    return further;
}

std::uint32_t colors_of(const net::FurtherDevices& further) {
    return static_cast<std::uint32_t>(further.all.size()) + 1;
}

/// Sets the new rank of each process; refused unless each rank is there once.
Result<RankNumbers> gather_ranks(net::ControlChannel& control, std::int64_t mine) {
    auto all = control.all_gather(std::as_bytes(std::span(&mine, 1)), -1);
    if (!all) return all.error();
    const auto nodes = static_cast<std::uint32_t>(all->bytes.size());
    constexpr std::uint32_t none = ~std::uint32_t{0};
    RankNumbers ranks{std::vector<std::uint32_t>(nodes), std::vector<std::uint32_t>(nodes, none)};
    for (std::uint32_t node = 0; node < nodes; ++node) {
        std::int64_t rank = -1;
        HIROBA_INVARIANT(all->bytes[node].size() == sizeof rank, "new rank of %lu bytes",
                         all->bytes[node].size());
        std::memcpy(&rank, all->bytes[node].data(), sizeof rank);
        const bool fits = rank >= 0 && rank < static_cast<std::int64_t>(nodes);
        if (!fits || ranks.node_of_rank[static_cast<std::size_t>(rank)] != none) {
            return refused(
                "the new ranks are no permutation: " + std::to_string(rank) + " is " +
                (fits ? "wanted by two" : "outside the job of " + std::to_string(nodes)));
        }
        ranks.node_of_rank[static_cast<std::size_t>(rank)] = node;
        ranks.rank_of_node[node] = static_cast<std::uint32_t>(rank);
    }
    return ranks;
}

}  // namespace

// --- life ----------------------------------------------------------------------------------------

Node::Node(std::unique_ptr<net::Endpoint> endpoint, net::ControlChannel& control,
           gas::Segment starter, std::unique_ptr<net::kick::Board> board, Life life,
           std::uint32_t colors)
    : control_(control),
      endpoint_(std::move(endpoint)),
      life_number_(life.number),
      colors_(colors),
      ranks_(std::move(life.ranks)),
      memory_(endpoint_->self(), endpoint_->nodes(), std::move(starter)),
      delegate_(*endpoint_, memory_, hooks(), colors),
      station_(*endpoint_, life.last_handle),
      heap_(*endpoint_, memory_),
      channels_(*endpoint_),
      board_(std::move(board)) {}

Result<std::unique_ptr<Node>> Node::open(const net::JobInfo& job, net::ControlChannel& control,
                                         Life life) {
    const auto starter_bytes = starter_size();
    if (!starter_bytes) return starter_bytes.error();
    const auto further = further_devices(job, control);
    if (!further) return further.error();
    auto endpoint = net::Endpoint::open(job_of_life(job, life.number), control, *further);
    if (!endpoint) return endpoint.error();
    auto starter = gas::Segment::allocate(**endpoint, *starter_bytes, true);
    if (!starter) return starter.error();
    auto board = net::kick::Board::create(**endpoint, job.job_key, page_bytes);
    if (!board) return board.error();
    const auto meeting_place = net::kick::Barrier::reserve(**board);
    if (!meeting_place) return meeting_place.error();
    auto node =
        std::unique_ptr<Node>(new Node(std::move(*endpoint), control, std::move(*starter),
                                       std::move(*board), std::move(life), colors_of(*further)));
    if (auto connected = node->endpoint_->connect(); !connected) return connected.error();
    node->memory_.attach();
    node->board_->attach();
    auto barrier = net::kick::Barrier::open(*node->board_, *meeting_place);
    if (!barrier) return barrier.error();
    node->barrier_.emplace(std::move(*barrier));
    node->service_ = start_service_thread("serves other nodes",
                                          [served = node.get()] { served->endpoint_->serve(); });
    if (auto met = control.barrier(); !met) return met.error();
    return node;
}

void Node::sync() {
    delegate_.flush(gas::CommandBatcher::When::now);  // others may wait for it
    const std::scoped_lock guard{one_at_a_time_};
    barrier_->arrive_and_wait();
}

Node::~Node() {
    if (!service_.joinable()) return;
    endpoint_->stop();
    service_.join();
}

Result<Life> Node::leave() {
    complete(handle_all);
    if (auto met = control_.barrier(); !met) return met.error();
    return go({});
}

Result<Life> Node::leave_for_reset(std::int64_t rank) {
    complete(handle_all);
    auto ranks = gather_ranks(control_, rank);
    if (!ranks) return ranks.error();
    return go(std::move(*ranks));
}

/// The commands of all ranks are complete. Their last answers were acknowledged or are not waited
/// for.
Result<Life> Node::go(RankNumbers ranks) {
    endpoint_->stop();
    service_.join();
    return Life{life_number_ + 1, station_.last_handle(), std::move(ranks)};
}

gas::DelegateHooks Node::hooks() noexcept { return {this, &Node::on_finished, &Node::on_refused}; }

void Node::on_finished(void* self, std::uint64_t token, std::uint64_t bytes) noexcept {
    auto& node = *static_cast<Node*>(self);
    node.station_.finished(node.delegate_, token, bytes);
}

/// The interface cannot tell the caller of it: the caller has its handle already.
void Node::on_refused(void* self, const gas::RefusedAccess& access) noexcept {
    auto& node = *static_cast<Node*>(self);
    const gas::AddressParts parts = node.memory_.layout().parts(access.address);
    const std::string part = node.memory_.table().describe(parts.place, parts.color, access.bytes);
    if (!part.empty()) {
        die(exit_program, "rank %u: an access of rank %u to %s here goes past its end", node.rank(),
            node.rank_of(access.origin), part.c_str());
    }
    die(exit_program,
        "rank %u: an access of rank %u to %lu bytes here failed: global address 0x%lx %s. Keep "
        "memory registered until accesses to it are complete",
        node.rank(), node.rank_of(access.origin), access.bytes, access.address, access.why);
}

// --- memory --------------------------------------------------------------------------------------

Result<NodeId> Node::node_of(std::int64_t rank) const {
    if (rank < 0 || rank >= static_cast<std::int64_t>(ranks())) {
        return refused("rank " + std::to_string(rank) + " of a job of " + std::to_string(ranks()));
    }
    const auto index = static_cast<std::uint32_t>(rank);
    return NodeId{ranks_.node_of_rank.empty() ? index : ranks_.node_of_rank[index]};
}

Result<std::uint64_t> Node::starter_address(std::int64_t rank) const {
    const auto node = node_of(rank);
    if (!node) return node.error();
    return memory_.symmetric_address(*node);
}

Result<std::uint64_t> Node::register_memory(void* first, std::uint64_t bytes, std::int64_t color) {
    if (color < 0 || color >= colors_) {
        return refused("color " + std::to_string(color) + "; there are " + std::to_string(colors_) +
                       " (HIROBA_ACP_DEVICES names devices beside the job's)");
    }
    if (is_unmapped(first, bytes)) {
        return refused("memory at " + hexadecimal(reinterpret_cast<std::uintptr_t>(first)) +
                       " of " + std::to_string(bytes) + " bytes is not mapped in this process");
    }
    return memory_.table().add(first, bytes, static_cast<std::uint32_t>(color));
}

Result<void> Node::unregister_memory(std::uint64_t key) {
    gas::Registration* const memory = memory_.table().remove(key);
    if (memory == nullptr) return refused("key " + hexadecimal(key) + " is not registered here");
    if (memory->count != 0) return {};
    delegate_.flush(gas::CommandBatcher::When::now);
    endpoint_->wait_until(
        [memory] { return memory->idle() && gas::RegistrationTable::is_unannounced(*memory); });
    memory_.table().forget(memory);
    return {};
}

Result<std::uint64_t> Node::address_of(std::uint64_t key, const void* byte) const {
    const std::uint64_t address = memory_.table().address_of(key, byte);
    if (address != 0) return address;
    return refused("key " + hexadecimal(key) + " is not registered here, or has no byte at " +
                   hexadecimal(reinterpret_cast<std::uintptr_t>(byte)));
}

Result<std::uint64_t> Node::allocate(std::uint64_t bytes, std::int64_t rank) {
    const auto at = node_of(rank);
    if (!at) return at.error();
    delegate_.flush(gas::CommandBatcher::When::now);
    auto block = heap_.allocate(*at, bytes);
    if (block) return block;
    return Error{block.error().kind, "rank " + std::to_string(rank) + " has no memory left for " +
                                         std::to_string(bytes) + " bytes"};
}

Result<void> Node::release(std::uint64_t address) {
    const auto rank = rank_of_address(address);
    if (!rank) return rank.error();
    delegate_.flush(gas::CommandBatcher::When::now);
    return heap_.release(memory_.layout().parts(address).node, address);
}

Result<void*> Node::local(std::uint64_t address) {
    gas::ResolvedAddress place = memory_.resolve(address, 1);
    if (place.fault != gas::AddressFault::none) return bad_address("ga", address, 1, place.fault);
    void* const at = place.reach;
    place.release();
    if (place.node == endpoint_->self()) return at;
    return refused("global address " + hexadecimal(address) + " is of rank " +
                   std::to_string(rank_of(place.node)) + ", not of this one");
}

Result<std::uint32_t> Node::rank_of_address(std::uint64_t address) const {
    const gas::AddressLayout& layout = memory_.layout();
    if (!layout.is_address(address)) {
        return refused("global address " + hexadecimal(address) + " names no memory");
    }
    return rank_of(layout.parts(address).node);
}

Result<std::uint32_t> Node::color_of_address(std::uint64_t address) const {
    const auto rank = rank_of_address(address);
    const std::uint32_t color = memory_.layout().parts(address).color;
    if (!rank) return rank.error();
    if (color >= colors_) {
        return refused("global address " + hexadecimal(address) + " has color " +
                       std::to_string(color) + "; there are " + std::to_string(colors_));
    }
    return color;
}

// --- channels ------------------------------------------------------------------------------------

Result<Channels::Id> Node::create_channel(std::int64_t sender, std::int64_t receiver) {
    const auto from = node_of(sender), to = node_of(receiver);
    if (!from) return from.error();
    if (!to) return to.error();
    const bool is_one = (*from == endpoint_->self()) != (*to == endpoint_->self());
    if (is_one) return channels_.create(*from, *to);
    return refused("rank " + std::to_string(rank()) + " is not one end of a channel from rank " +
                   std::to_string(sender) + " to rank " + std::to_string(receiver));
}

Result<std::uint64_t> Node::wait_for_channel(Channels::Id request) {
    delegate_.flush(gas::CommandBatcher::When::now);  // others may wait for it
    return channels_.wait(request);
}

// --- access --------------------------------------------------------------------------------------

Error Node::bad_address(const char* argument, std::uint64_t address, std::uint64_t bytes,
                        gas::AddressFault fault) const {
    std::string text = std::string(argument) + ": global address " + hexadecimal(address) + " of " +
                       std::to_string(bytes) + " bytes " + gas::text_of(fault);
    const gas::AddressParts parts = memory_.layout().parts(address);
    const bool is_here =
        fault == gas::AddressFault::unregistered && parts.node == endpoint_->self();
    const std::string part =
        is_here ? memory_.table().describe(parts.place, parts.color, bytes) : std::string();
    return refused(part.empty() ? text : text + ": it is " + part);
}

/// False for what is no handle.
bool Node::understand(std::int64_t order, Order& understood) const noexcept {
    if (order == handle_null) [[likely]]
        return true;
    if (order == handle_all || order == handle_continue) {
        understood.kind = order == handle_all ? Order::Kind::everything : Order::Kind::previous;
        return true;
    }
    const auto handle = static_cast<std::uint64_t>(order);
    // Never issued: nothing to wait for.
    if (order > 0 && handle <= station_.last_handle()) understood = {Order::Kind::up_to, handle};
    return order > 0;
}

std::int64_t Node::try_registered(const Access& access, std::byte* dst, std::byte* src) noexcept {
    std::int64_t handle = 0;
    memory_.with_remembered(
        access.dst, dst, access.src, src, access.bytes, [&](std::byte* to, std::byte* from) {
            handle = static_cast<std::int64_t>(station_.submit_here(access, to, from));
        });
    return handle;
}

std::int64_t Node::try_any_access(const Access& access, std::int64_t order) {
    Order understood;
    if (!understand(order, understood) || !is_aligned(access)) [[unlikely]]
        return 0;
    gas::ResolvedAddress dst = memory_.resolve(access.dst, access.bytes);
    gas::ResolvedAddress src = memory_.resolve(access.src, access.bytes);
    const bool are_good =
        dst.fault == gas::AddressFault::none && src.fault == gas::AddressFault::none;
    if (!are_good) [[unlikely]] {
        dst.release();
        src.release();
        return 0;
    }
    return static_cast<std::int64_t>(station_.submit(delegate_, access, dst, src, understood));
}

Error Node::why_refused(const Access& access, std::int64_t order) {
    Order understood;
    if (!understand(order, understood)) {
        return refused("order: " + std::to_string(order) + " is no handle");
    }
    for (const auto& [name, address] : {std::pair{"dst", access.dst}, {"src", access.src}}) {
        if (access.is_atomic && address % access.width != 0) {
            return refused(std::string(name) + ": global address " + hexadecimal(address) +
                           " is no multiple of the " + std::to_string(access.width) +
                           " bytes of the atomic");
        }
        gas::ResolvedAddress place = memory_.resolve(address, access.bytes);
        place.release();
        if (place.fault != gas::AddressFault::none) {
            return bad_address(name, address, access.bytes, place.fault);
        }
    }
    return refused("another thread ended a registration meanwhile");
}

bool Node::is_incomplete(std::int64_t handle) {
    return station_.is_incomplete(delegate_, handle_to_wait_for(handle));
}

}  // namespace hiroba::acp
