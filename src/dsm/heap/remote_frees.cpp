// SPDX-License-Identifier: BSD-3-Clause
// Role: the two queues of remote frees; each swaps two growing arrays, so that neither side waits
// for the other's work.
#include "dsm/heap/remote_frees.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/fatal.hpp"

namespace hiroba::dsm {
namespace {

constexpr std::size_t first_capacity_bytes = 64 * 1024;

template <class T>
void make_room(SparseArray<T>& array, std::size_t count) noexcept {
    if (count <= array.size()) return;
    const std::size_t wanted =
        std::max({count, array.size() * 2, first_capacity_bytes / sizeof(T)});
    HIROBA_INVARIANT(array.grow(wanted), "no memory for %lu bytes of remote frees",
                     static_cast<unsigned long>(wanted * sizeof(T)));
}

struct Stored {
    std::uint32_t from;
    std::uint32_t body_bytes;
};

}  // namespace

void OutgoingFrees::add(std::uintptr_t address) noexcept {
    std::lock_guard guard{latch_};
    const std::size_t count = count_.load(std::memory_order_relaxed);
    make_room(waiting_, count + 1);
    waiting_[count] = address;
    count_.store(count + 1, std::memory_order_relaxed);
}

std::span<const std::uintptr_t> OutgoingFrees::seal() noexcept {
    std::lock_guard guard{latch_};
    waiting_.swap(sealed_);
    return {sealed_.data(), count_.exchange(0, std::memory_order_relaxed)};
}

void ArrivedFrees::add(NodeId from, Bytes body) noexcept {
    RemoteFreeHeader header;
    HIROBA_INVARIANT(body.size() >= sizeof header, "remote free of %lu bytes from node %u",
                     static_cast<unsigned long>(body.size()), from.value);
    std::memcpy(&header, body.data(), sizeof header);
    HIROBA_INVARIANT(body.size() == sizeof header + round_up(header.news_bytes, 8) +
                                        std::size_t{header.count} * sizeof(std::uintptr_t),
                     "remote free of %lu bytes from node %u says %u bytes of news and %u blocks",
                     static_cast<unsigned long>(body.size()), from.value, header.news_bytes,
                     header.count);

    const Stored stored{from.value, static_cast<std::uint32_t>(body.size())};
    std::lock_guard guard{latch_};
    const std::size_t at = bytes_.load(std::memory_order_relaxed);
    make_room(waiting_, at + sizeof stored + body.size());
    std::memcpy(waiting_.data() + at, &stored, sizeof stored);
    std::memcpy(waiting_.data() + at + sizeof stored, body.data(), body.size());
    bytes_.store(at + sizeof stored + body.size(), std::memory_order_relaxed);
}

void ArrivedFrees::take() noexcept {
    std::lock_guard guard{latch_};
    waiting_.swap(taken_);
    taken_bytes_ = bytes_.exchange(0, std::memory_order_relaxed);
    at_ = 0;
}

std::optional<ArrivedFrees::Batch> ArrivedFrees::next() noexcept {
    if (at_ == taken_bytes_) return std::nullopt;
    Stored stored;
    RemoteFreeHeader header;
    const std::byte* body = taken_.data() + at_ + sizeof stored;
    std::memcpy(&stored, taken_.data() + at_, sizeof stored);
    std::memcpy(&header, body, sizeof header);
    at_ += sizeof stored + stored.body_bytes;
    const std::byte* addresses = body + sizeof header + round_up(header.news_bytes, 8);
    return Batch{NodeId{stored.from},
                 {body + sizeof header, header.news_bytes},
                 {reinterpret_cast<const std::uintptr_t*>(addresses), header.count}};
}

}  // namespace hiroba::dsm
