// SPDX-License-Identifier: BSD-3-Clause
#include "net/kick/board.hpp"

#include <array>
#include <cstring>
#include <mutex>
#include <string>

#include "base/fatal.hpp"
#include "net/provider/store_whole.hpp"

namespace hiroba::net::kick {
Result<std::unique_ptr<Board>> Board::create(Endpoint& endpoint, std::uint64_t job_key,
                                             std::size_t llcm_bytes, MessageKind kind) {
    llcm_bytes = round_up(llcm_bytes, page_bytes);
    const Result<RegionId> region = endpoint.provider().allocate(llcm_bytes);
    if (!region) return region.error();
    std::unique_ptr<Board> board(new Board(endpoint, job_key, *region, llcm_bytes, kind));
    endpoint.on(
        kind,
        [](void* context, NodeId from, Bytes body) noexcept {
            static_cast<Board*>(context)->land(from, body);
        },
        board.get());
    return board;
}

Board::Board(Endpoint& endpoint, std::uint64_t job_key, RegionId llcm, std::size_t llcm_bytes,
             MessageKind kind)
    : endpoint_(endpoint),
      self_(endpoint.self()),
      job_key_(job_key),
      kind_(kind),
      llcm_(llcm),
      llcm_bytes_(llcm_bytes),
      table_(job_key, endpoint.nodes()) {
    table_.expose(llcm, llcm_bytes);
}

void Board::attach() {
    Provider& provider = endpoint_.provider();
    const MutableBytes local = provider.local(llcm_);
    HIROBA_INVARIANT(local.size() == llcm_bytes_, "region %u has %lu bytes, registered were %lu",
                     llcm_.value, local.size(), llcm_bytes_);
    local_ = local.data();
    if (!provider.limits().maps_peers) return;
    bases_.reserve(nodes());
    for (std::uint32_t rank = 0; rank < nodes(); ++rank)
        bases_.push_back(provider.mapped(NodeId{rank}, llcm_));
}

Result<Offset> Board::reserve(std::size_t bytes, std::size_t alignment) {
    std::size_t place = round_up(reserved_, alignment);
    const bool fits_page = bytes <= page_bytes - place % page_bytes;
    if (!fits_page) place = round_up(place, page_bytes);
    if (bytes > llcm_bytes_ || place > llcm_bytes_ - bytes) {
        return Error{ErrorKind::refused, "kick: " + std::to_string(bytes) +
                                             " bytes of polled memory where " +
                                             std::to_string(llcm_bytes_ - reserved_) + " of " +
                                             std::to_string(llcm_bytes_) +
                                             " are left: make the board with more "
                                             "(Board::make's polled_bytes)"};
    }
    reserved_ = place + bytes;
    return Offset{place};
}

void Board::expose(RegionId region, std::uint64_t bytes) {
    const std::scoped_lock guard{latch_};
    table_.expose(region, bytes);
}

Result<Target> Board::target(NodeId node, RegionId region, std::uint64_t page_offset) {
    const std::scoped_lock guard{latch_};
    return table_.enter(node, region, page_offset);
}

Result<Header> Board::resolve(Target target) {
    const std::scoped_lock guard{latch_};
    const Seed* const seed = table_.find(target);
    if (seed == nullptr) {
        return Error{ErrorKind::refused,
                     "kick: target " + std::to_string(target.number()) + " is not registered"};
    }
    return cache_.find(target, [&] { return refill(*seed, target); });
}

Header Board::refill(const Seed& seed, Target target) noexcept {
    const Stamp& stamp = seed.stamp();
    Provider& provider = endpoint_.provider();
    std::byte* const base = stamp.rank == self() ? provider.local(stamp.region).data()
                            : provider.limits().maps_peers
                                ? provider.mapped(stamp.rank, stamp.region)
                                : nullptr;
    return {.page = base == nullptr ? nullptr : base + seed.page_offset(),
            .target = target.number(),
            .rank = stamp.rank.value,
            .region = stamp.region.value,
            .bytes = seed.bytes(),
            .page_offset = seed.page_offset()};
}

HeaderCache::Counts Board::header_counts() noexcept {
    const std::scoped_lock guard{latch_};
    return cache_.counts();
}

// --- where nothing is mapped ---------------------------------------------------------------------

wire::LandingBytes Board::stamp_for(NodeId node, RegionId region,
                                    std::uint64_t page_offset) const noexcept {
    return wire::encode_landing({job_key_, node.value, region.value, page_offset});
}

PreparedKick Board::prepare(const Header& header, std::size_t bytes) noexcept {
    PreparedKick kick{.to = NodeId{header.rank},
                      .region = RegionId{header.region},
                      .page_offset = header.page_offset,
                      .bytes = static_cast<std::uint16_t>(bytes)};
    if (header.page != nullptr) return kick;
    kick.native = endpoint_.provider().prepare(kick);
    if (kick.native) return kick;
    const wire::LandingBytes stamp = stamp_for(header);
    std::memcpy(kick.header, stamp.data(), sizeof stamp);
    return kick;
}

void Board::post(const PreparedKick& kick, std::uint32_t offset, std::uint64_t value,
                 bool more) noexcept {
    if (kick.native) return endpoint_.kick(kick, offset, value, more);
    wire::LandingBytes header;
    std::memcpy(header.data(), kick.header, sizeof header);
    post(kick.to, header, kick.page_offset + offset,
         std::as_bytes(std::span{&value, 1}).first(kick.bytes));
}

void Board::post_from_handler(const PreparedKick& kick, std::uint32_t offset,
                              std::uint64_t value) noexcept {
    Provider& provider = endpoint_.provider();
    if (kick.native &&
        endpoint_.post([&] { return provider.kick(kick, offset, value, false); }) != Post::again) {
        return;
    }
    wire::LandingBytes header = stamp_for(kick.to, kick.region, kick.page_offset);
    post(kick.to, header, kick.page_offset + offset,
         std::as_bytes(std::span{&value, 1}).first(kick.bytes));
}

// Messages, not puts: a provider promises no order among puts, and kicks promise one. Its queue is
// the ring of credits: nothing is looked at per send until it is full.
void Board::post(NodeId to, wire::LandingBytes& header, std::uint64_t offset,
                 Bytes bytes) noexcept {
    wire::patch_landing_offset(header, offset);
    const std::array<Bytes, 2> parts{Bytes(header), bytes};
    endpoint_.send(to, kind_, Urgency::when_polled, parts);
}

bool Board::may_land(const wire::Landing& landing, std::size_t bytes) const noexcept {
    const std::uint64_t region_bytes = table_.exposed_bytes(RegionId{landing.region});
    return landing.job_key == job_key_ && landing.rank == endpoint_.self().value && bytes > 0 &&
           landing.offset <= region_bytes && bytes <= region_bytes - landing.offset;
}

// Write on the fly: from the header straight to memory, no translation but the region's base.
void Board::land(NodeId from, Bytes body) noexcept {
    wire::Landing landing;
    const bool whole = wire::decode_landing(body, landing);
    const Bytes bytes = whole ? body.subspan(sizeof landing) : Bytes{};
    if (!whole || !may_land(landing, bytes.size())) {
        if (refused_.fetch_add(1, std::memory_order_relaxed) == 0) {
            say("kick: %lu bytes from node %u for offset %lu of region %u of node %u, job %lx, "
                "were refused; such bytes are counted and not written",
                bytes.size(), from.value, landing.offset, landing.region, landing.rank,
                landing.job_key);
        }
        return;
    }
    std::byte* const to =
        endpoint_.provider().local(RegionId{landing.region}).data() + landing.offset;
    if (landing.offset % bytes.size() == 0 && store_whole(to, bytes)) return;
    std::memcpy(to, bytes.data(), bytes.size());
}

}  // namespace hiroba::net::kick
