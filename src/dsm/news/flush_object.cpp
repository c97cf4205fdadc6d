// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/news/flush_object.hpp"

#include <algorithm>
#include <cstring>

#include "base/fatal.hpp"
#include "base/latch.hpp"
#include "dsm/messages.hpp"

namespace hiroba::dsm {

namespace {
using Access = gas::Segment::Access;
// As much news as are fetched along with the lock, before anybody knows how many there are.
constexpr std::size_t usual_news_bytes = 1024;
}  // namespace

Result<gas::Segment> FlushObject::allocate(net::Endpoint& endpoint, std::size_t news_bytes_max) {
    return gas::Segment::allocate(endpoint, header_offset + sizeof(Header) + news_bytes_max);
}

FlushObject::FlushObject(net::Endpoint& endpoint, gas::Segment segment, std::size_t news_bytes_max)
    : endpoint_(endpoint), segment_(std::move(segment)), buffer_(sizeof(Header) + news_bytes_max) {
    endpoint.on(message::flushed, &FlushObject::on_flushed, this);
}

void FlushObject::on_flushed(void* context, NodeId, Bytes body) noexcept {
    auto& object = *static_cast<FlushObject*>(context);
    Version version = 0;
    HIROBA_INVARIANT(body.size() == sizeof version, "flushed of %lu bytes", body.size());
    std::memcpy(&version, body.data(), sizeof version);
    // Relaxed: only the one poller stores, and what was flushed is read under the lock.
    if (version > object.told()) object.told_.store(version, std::memory_order_relaxed);
}

bool FlushObject::newer_than(Version seen) noexcept {
    if (is_mapped()) return segment_.load(header_at) != seen;
    return told() > seen;
}

/// What is read together with the lock.
MutableBytes FlushObject::first_bytes() noexcept {
    const std::size_t guess = sizeof(Header) + (is_mapped() ? 0 : usual_news_bytes);
    return MutableBytes{buffer_}.first(std::min(guess, buffer_.size()));
}

// With the lock.
FlushObject::Content FlushObject::content(Version seen) noexcept {
    const MutableBytes all{buffer_}, first = first_bytes();
    Header header;
    std::memcpy(&header, all.data(), sizeof header);
    if (header.version == seen) return {seen, {}};
    const std::size_t bytes = sizeof header + header.news_bytes;
    if (bytes > first.size()) {
        segment_.get({keeper, header_offset + first.size()},
                     all.subspan(first.size(), bytes - first.size()));
    }
    return {header.version, all.subspan(sizeof header, header.news_bytes)};
}

/// Takes the lock and reads the object in one exchange. Where it returns false, what was read is
/// worth nothing.
bool FlushObject::try_lock() noexcept {
    Access accesses[] = {
        Access::compare_swap(segment_, lock_offset, 0, endpoint_.self().value + std::uint64_t{1}),
        Access::get(segment_, header_offset, first_bytes())};
    gas::Segment::in_order(keeper, accesses);
    return accesses[0].found == 0;
}

void FlushObject::unlock() noexcept { segment_.store({keeper, lock_offset}, 0); }

void FlushObject::unlock_with(Version version, std::size_t bytes) noexcept {
    const Header header{version, bytes};
    std::memcpy(buffer_.data(), &header, sizeof header);
    // The version goes last, in case it is looked at without the lock.
    const MutableBytes all{buffer_};
    Access accesses[] = {
        Access::put(segment_, header_offset + sizeof(Version),
                    all.subspan(sizeof(Version), sizeof header - sizeof(Version) + bytes)),
        Access::store(segment_, header_offset, version), Access::store(segment_, lock_offset, 0)};
    gas::Segment::in_order(keeper, accesses);
    tell_who_cannot_look(version);
}

// Whether a node can look is known on the keeper's host alone; elsewhere this node tells all.
void FlushObject::tell_who_cannot_look(Version version) noexcept {
    const Bytes body = std::as_bytes(std::span{&version, 1});
    for (std::uint32_t node = 0; node < endpoint_.nodes(); ++node) {
        if (node == endpoint_.self().value) continue;
        const bool looks =
            is_mapped() && segment_.reach({NodeId{node}, header_offset}, 8) != nullptr;
        if (looks) continue;
        endpoint_.send(NodeId{node}, message::flushed, net::Urgency::when_polled, {&body, 1});
    }
}

}  // namespace hiroba::dsm
