// SPDX-License-Identifier: BSD-3-Clause
// Role: see later_memory.hpp.
#include "net/later_memory.hpp"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <mutex>

#include "base/fatal.hpp"

namespace hiroba::net {
namespace {

constexpr std::uint64_t region_bytes_max = std::uint64_t{32} << 30;
/// What all nodes have together: each may map all the others' regions.
constexpr std::uint64_t job_bytes_max = std::uint64_t{4} << 40;

Error refused(std::string text) { return {ErrorKind::refused, std::move(text)}; }

std::uint64_t region_bytes(std::uint32_t nodes) {
    std::uint64_t bytes = std::min(region_bytes_max, job_bytes_max / nodes);
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        bytes = std::min<std::uint64_t>(bytes, limit.rlim_cur / 16 / nodes);
    return bytes / (2 * page_bytes) * (2 * page_bytes);
}

/// What a node brings to a collective call: everything has to be equal.
struct Brought {
    std::uint64_t bytes;
    std::uint64_t handle;
    std::uint64_t place;  ///< none where there is no room
};
constexpr std::uint64_t none = ~std::uint64_t{0};

}  // namespace

// --- free ranges ---------------------------------------------------------------------------------

FreeRanges::FreeRanges(std::uint64_t first, std::uint64_t bytes) {
    if (bytes != 0) free_.emplace(first, bytes);
}

std::optional<std::uint64_t> FreeRanges::take(std::uint64_t bytes) {
    const auto fits = [&](const auto& range) { return range.second >= bytes; };
    const auto found = std::find_if(free_.begin(), free_.end(), fits);
    if (found == free_.end()) return {};
    const auto [first, room] = *found;
    free_.erase(found);
    if (room != bytes) free_.emplace(first + bytes, room - bytes);
    taken_.emplace(first, bytes);
    return first;
}

std::uint64_t FreeRanges::taken_at(std::uint64_t first) const noexcept {
    const auto found = taken_.find(first);
    return found == taken_.end() ? 0 : found->second;
}

void FreeRanges::give_back(std::uint64_t first) {
    const auto taken = taken_.find(first);
    HIROBA_INVARIANT(taken != taken_.end(), "nothing was taken at %lu", first);
    auto here = free_.emplace(first, taken->second).first;
    taken_.erase(taken);
    const auto next = std::next(here);
    if (next != free_.end() && here->first + here->second == next->first) {
        here->second += next->second;
        free_.erase(next);
    }
    if (here == free_.begin()) return;
    const auto before = std::prev(here);
    if (before->first + before->second != here->first) return;
    before->second += here->second;
    free_.erase(here);
}

// --- the region ----------------------------------------------------------------------------------

// Its atomics are the processors': a node's threads swap words of 16 bytes there.
Result<std::unique_ptr<LaterMemory>> LaterMemory::make(Async& async, ServedMemory& served) {
    const std::uint64_t bytes = region_bytes(async.endpoint().nodes());
    std::unique_ptr<LaterMemory> made(new LaterMemory(async, served, bytes));
    if (bytes == 0) return made;
    Provider& provider = async.endpoint().provider();
    const Result<RegionId> region = provider.allocate(bytes);
    if (!region) return region.error();
    provider.processor_atomics(*region);
    made->region_ = *region;
    return made;
}

LaterMemory::LaterMemory(Async& async, ServedMemory& served, std::uint64_t bytes)
    : async_(async),
      served_(served),
      self_(async.endpoint().self()),
      bytes_(bytes),
      peers_(async.endpoint().nodes(), nullptr),
      of_all_(0, bytes / 2),
      own_(bytes / 2, bytes / 2) {}

void LaterMemory::attach() {
    if (bytes_ == 0) return;
    Provider& provider = async_.endpoint().provider();
    local_ = provider.local(region_).data();
    if (!provider.limits().maps_peers) return;
    for (std::uint32_t rank = 0; rank < peers_.size(); ++rank)
        peers_[rank] = provider.mapped(NodeId{rank}, region_);
}

// Memory that peers map is a file's, which gives its pages back; the other sort is this process's
// own, and refuses that with EINVAL. What a device has pinned stays.
void LaterMemory::clear(std::uint64_t first, std::uint64_t bytes) noexcept {
    std::byte* const at = local_ + first;
    if (async_.endpoint().provider().limits().pins_memory) {
        std::memset(at, 0, bytes);
        return;
    }
    if (madvise(at, bytes, MADV_REMOVE) == 0) return;
    HIROBA_INVARIANT(errno == EINVAL && madvise(at, bytes, MADV_DONTNEED) == 0,
                     "madvise of %lu bytes at %p: errno %d", bytes, static_cast<void*>(at), errno);
}

std::string LaterMemory::of_room() const {
    return " of the " + std::to_string(bytes_ / 2) +
           " there are after connect(); free some, or allocate it before" +
           (bytes_ < region_bytes_max ? " (see ulimit -v)" : "");
}

// --- together ------------------------------------------------------------------------------------

Result<Handle> LaterMemory::allocate(std::uint64_t bytes, Collectives& collectives) {
    const std::uint64_t whole = round_up(bytes, page_bytes);
    Brought mine{bytes, Handle::none, none};
    Result<Handle> made = Handle{};
    {
        const std::scoped_lock guard{latch_};
        const auto place = whole >= bytes ? of_all_.take(whole) : std::nullopt;
        if (place) {
            made = async_.register_later({.region = region_,
                                          .base = *place,
                                          .bytes = bytes,
                                          .local = local_ + *place,
                                          .peers = peers_.data()});
            if (!made) return made.error();
            places_.emplace(made->value, *place);
            mine = {bytes, made->value, *place};
        }
    }
    std::vector<Brought> all(peers_.size());
    collectives.all_gather(std::as_bytes(std::span(&mine, 1)),
                           std::as_writable_bytes(std::span(all)));
    const auto differs = std::find_if(all.begin(), all.end(), [&](const Brought& each) {
        return each.bytes != mine.bytes || each.handle != mine.handle || each.place != mine.place;
    });
    if (differs == all.end() && mine.place != none) return made;
    if (mine.place != none) {
        const std::scoped_lock guard{latch_};
        places_.erase(made->value);
        async_.deregister(*made);
        of_all_.give_back(mine.place);
    }
    if (differs == all.end())
        return refused("no room for " + std::to_string(bytes) + " bytes on every node" + of_room());
    return refused("node " + std::to_string(differs - all.begin()) + " allocates " +
                   std::to_string(differs->bytes) + " bytes, node " + std::to_string(self_.value) +
                   " " + std::to_string(bytes) +
                   ". Make the same calls in the same order on every node");
}

// Every node comes here when it is done with the memory, and clears its own part before it comes
// to the next collective: so no request meets memory that is being cleared.
Result<void> LaterMemory::free(Handle handle, Collectives& collectives) {
    Brought mine{0, handle.value, none};
    {
        const std::scoped_lock guard{latch_};
        const auto found = places_.find(handle.value);
        if (found != places_.end()) mine.place = found->second;
    }
    std::vector<Brought> all(peers_.size());
    collectives.all_gather(std::as_bytes(std::span(&mine, 1)),
                           std::as_writable_bytes(std::span(all)));
    const auto differs = std::find_if(
        all.begin(), all.end(), [&](const Brought& each) { return each.handle != mine.handle; });
    if (differs != all.end())
        return refused("node " + std::to_string(differs - all.begin()) + " frees handle " +
                       std::to_string(differs->handle) + ", node " + std::to_string(self_.value) +
                       " handle " + std::to_string(handle.value) +
                       ". Make the same calls in the same order on every node");
    if (mine.place == none)
        return refused("handle " + std::to_string(handle.value) +
                       " is not of memory allocated after connect()");
    const std::scoped_lock guard{latch_};
    async_.deregister(handle);
    places_.erase(handle.value);
    clear(mine.place, of_all_.taken_at(mine.place));
    of_all_.give_back(mine.place);
    return {};
}

// --- by one node ---------------------------------------------------------------------------------

Result<ExposedMemory> LaterMemory::expose(std::uint64_t bytes) {
    if (bytes == 0) return refused("memory of 0 bytes: expose 1 or more");
    const std::uint64_t whole = round_up(bytes, page_bytes);
    const std::scoped_lock guard{latch_};
    const auto place = whole >= bytes ? own_.take(whole) : std::nullopt;
    if (!place) return refused("no room to expose " + std::to_string(bytes) + " bytes" + of_room());
    return ExposedMemory{self_, false, *place, bytes};
}

Result<ExposedMemory> LaterMemory::expose(MutableBytes own) {
    if (own.empty()) return refused("memory of 0 bytes: expose 1 or more");
    const std::uint64_t number = served_.expose(own);
    const std::scoped_lock guard{latch_};
    served_own_.emplace(number, own);
    return ExposedMemory{self_, true, number, own.size()};
}

Result<void> LaterMemory::withdraw(const ExposedMemory& memory) {
    const auto no = [&](const std::string& why) {
        return refused("memory number " + std::to_string(memory.number) + " of node " +
                       std::to_string(memory.node.value) + why);
    };
    if (memory.node != self_) return no(" is withdrawn by that node alone");
    const std::scoped_lock guard{latch_};
    if (memory.is_served) {
        served_own_.erase(memory.number);
        if (!served_.withdraw(memory.number)) return no(" is not exposed");
        return {};
    }
    const std::uint64_t bytes = own_.taken_at(memory.number);
    if (bytes == 0) return no(" is not exposed");
    clear(memory.number, bytes);
    own_.give_back(memory.number);
    return {};
}

Result<Handle> LaterMemory::attach_to(const ExposedMemory& memory) {
    const auto no = [&](const std::string& why) {
        return refused("memory number " + std::to_string(memory.number) + " of node " +
                       std::to_string(memory.node.value) + why);
    };
    if (memory.node.value >= peers_.size())
        return no(": there are " + std::to_string(peers_.size()) + " nodes");
    if (memory.bytes == 0) return no(" of 0 bytes: it is none that a node has exposed");
    Async::Later later{.base = memory.number,
                       .bytes = memory.bytes,
                       .owner = memory.node,
                       .is_served = memory.is_served};
    const std::scoped_lock guard{latch_};
    if (memory.is_served) {
        const auto own = served_own_.find(memory.number);
        if (memory.node == self_ && own != served_own_.end()) later.local = own->second.data();
    } else {
        const bool is_there = memory.number >= bytes_ / 2 && memory.number < bytes_ &&
                              memory.bytes <= bytes_ - memory.number &&
                              memory.number % page_bytes == 0;
        if (!is_there) return no(" is none that a node has exposed");
        later.region = region_;
        later.peers = peers_.data();
        if (memory.node == self_) later.local = local_ + memory.number;
    }
    if (memory.node == self_ &&
        (later.local == nullptr || (!memory.is_served && own_.taken_at(memory.number) == 0)))
        return no(" is not exposed");
    return async_.register_later(later);
}

}  // namespace hiroba::net
