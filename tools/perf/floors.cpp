// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/floors.hpp"

#include <atomic>
#include <cstring>

#include "tools/perf/datagrams.hpp"

namespace hiroba::tools::perf_parts {
namespace {

std::uint64_t word_at(const std::byte* place) {
    // Acquire, pairs with the partner's store in raw_copy(), which no compiler moves.
    auto* word = const_cast<std::uint64_t*>(reinterpret_cast<const std::uint64_t*>(place));
    return std::atomic_ref<std::uint64_t>(*word).load(std::memory_order_acquire);
}

class MemoryPingPong final : public PingPong {
public:
    MemoryPingPong(Rig& rig, std::size_t bytes)
        : rig_(rig),
          bytes_(bytes),
          mine_(rig.landing_bytes()),
          theirs_(rig.mapped_landing(rig.partner())) {}

    void lead(std::uint64_t iterations) override { lead_by_turns(rig_, *this, iterations); }
    void follow(std::uint64_t iterations) override { follow_by_turns(rig_, *this, iterations); }

    void give(std::uint64_t number) {
        mark(rig_.source_bytes(), bytes_, number);
        raw_copy(theirs_, rig_.source_bytes(), bytes_);
    }
    void take(std::uint64_t number) {
        rig_.spin_until([&] { return is_marked(mine_, bytes_, number); });
    }

private:
    Rig& rig_;
    std::size_t bytes_;
    std::byte* mine_;
    std::byte* theirs_;
};

class MemoryExchange final : public RawExchange {
public:
    MemoryExchange(Rig& rig, std::size_t bytes)
        : rig_(rig), bytes_(bytes), place_bytes_(round_up(8 + bytes, cache_line_bytes)) {}

    bool exchange(const std::byte* mine, std::byte* all) override {
        const std::uint32_t nodes = rig_.plan().nodes;
        ++number_;
        for (std::uint32_t rank = 0; rank < nodes; ++rank) {
            if (rank == rig_.self()) continue;
            std::byte* place = rig_.mapped_landing(NodeId{rank}) + offset(rig_.self());
            if (bytes_ != 0) raw_copy(place + 8, mine, bytes_);
            word(place).store(number_, std::memory_order_release);  // pairs with the load below
        }
        for (std::uint32_t rank = 0; rank < nodes; ++rank) {
            const std::byte* from = mine;
            if (rank != rig_.self()) {
                std::byte* place = rig_.landing_bytes() + offset(rank);
                rig_.spin_until(
                    [&] { return word(place).load(std::memory_order_acquire) == number_; });
                from = place + 8;
            }
            if (bytes_ != 0) raw_copy(all + rank * bytes_, from, bytes_);
        }
        return true;
    }

private:
    static std::atomic_ref<std::uint64_t> word(std::byte* place) {
        return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(place));
    }
    std::size_t offset(std::uint32_t giver) const {
        return (std::size_t{2} * giver + number_ % 2) * place_bytes_;
    }
    Rig& rig_;
    std::size_t bytes_;
    std::size_t place_bytes_;
    std::uint64_t number_ = 0;
};

}  // namespace

void mark(std::byte* place, std::size_t bytes, std::uint64_t number) {
    std::memcpy(place, &number, 8);
    if (bytes > 8) std::memcpy(place + bytes - 8, &number, 8);
}

bool is_marked(const std::byte* place, std::size_t bytes, std::uint64_t number) {
    if (word_at(place) != number) return false;
    if (bytes == 8) return true;
    std::uint64_t last;
    std::memcpy(&last, place + bytes - 8, 8);
    asm volatile("" ::: "memory");
    return last == number;
}

std::unique_ptr<PingPong> make_ping_pong(Rig& rig, std::size_t there_bytes,
                                         std::size_t back_bytes) {
    if (!rig.maps_peers()) return make_datagram_ping_pong(rig, there_bytes, back_bytes);
    return std::make_unique<MemoryPingPong>(rig, std::max(there_bytes, back_bytes));
}

std::unique_ptr<RawExchange> make_raw_exchange(Rig& rig, std::size_t bytes) {
    if (!rig.maps_peers()) return make_datagram_exchange(rig, bytes);
    return std::make_unique<MemoryExchange>(rig, bytes);
}

}  // namespace hiroba::tools::perf_parts
