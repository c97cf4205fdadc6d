// SPDX-License-Identifier: BSD-3-Clause
// Role: what the shared memory makes of synchronization: releases, barriers, hand-overs.
// Invariant: every batch is collective; a node without a partner takes part in barriers only.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "tools/perf/floors.hpp"
#include "tools/perf/memory_rig.hpp"
#include "tools/perf/tests.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr std::uint64_t handovers_max = 1 << 10;
/// After so many memory that is only read is left out of scans (docs/decisions/quiet-chunks.md).
constexpr unsigned barriers_to_settle = 2048;

double ns_since(std::uint64_t begun_ns) { return static_cast<double>(now_ns() - begun_ns); }

bool follows(const Rig& rig) { return rig.has_partner() && !rig.leads(); }

volatile std::uint64_t* word(std::byte* at) {
    return reinterpret_cast<volatile std::uint64_t*>(at);
}

// --- releases ------------------------------------------------------------------------------------

/// Changes `block` as --change says; two numbers in a row leave different bytes.
void change_block(std::byte* block, std::size_t bytes, Change change, std::uint64_t number) {
    const auto value = static_cast<unsigned char>(number);
    if (change == Change::page) {
        std::memset(block, value, bytes);
        return;
    }
    const std::size_t end = change == Change::byte ? 1 : bytes;
    for (std::size_t at = 0; at < end; at += 8) block[at] = std::byte{value};
}

class ReleaseBatch {
public:
    ReleaseBatch(Rig& rig, MemoryRig& memory)
        : rig_(rig),
          memory_(memory),
          block_bytes_(memory.block_bytes()),
          blocks_(std::max<std::uint64_t>(1, rig.bytes() / block_bytes_)),
          first_(rig.self() / 2 * blocks_),
          raw_(memory.raw_pages(blocks_)) {
        if (!rig.maps_peers()) round_trip_ = make_ping_pong(rig, 64, 64);
    }
    std::uint64_t blocks() const { return blocks_; }

    double test(std::uint64_t iterations) {
        double spent_ns = 0;
        for (std::uint64_t round = 0; round < iterations / blocks_; ++round) {
            last_ = rig_.next_number();
            if (elsewhere()) move_home();
            if (rig_.leads())
                change_all([&](std::uint64_t i) { return memory_.block(first_ + i); });
            rig_.collectives().barrier();
            const std::uint64_t begun_ns = now_ns();
            if (rig_.leads()) memory_.release();
            spent_ns += ns_since(begun_ns);
            memory_.synchronize();
        }
        return spent_ns / static_cast<double>(iterations);
    }

    double floor(std::uint64_t iterations) {
        double spent_ns = 0;
        for (std::uint64_t round = 0; round < iterations / blocks_; ++round) {
            last_raw_ = rig_.next_number();
            if (rig_.leads()) spent_ns += raw_release();
            if (follows(rig_) && round_trip_ && elsewhere()) round_trip_->follow(blocks_);
            rig_.collectives().barrier();
        }
        return spent_ns / static_cast<double>(iterations);
    }

    /// All nodes see what the last release told of.
    bool verified() {
        bool right = true;
        for (std::uint64_t i = 0; rig_.has_partner() && i < blocks_; ++i) {
            right = right && *memory_.block(first_ + i) == static_cast<std::byte>(last_);
        }
        return right && missed_ == 0;
    }

private:
    bool elsewhere() const { return rig_.plan().home == Home::elsewhere; }

    /// The partner merges last, and this node has its bytes.
    void move_home() {
        for (std::uint64_t i = 0; follows(rig_) && i < blocks_; ++i) {
            *word(memory_.block(first_ + i) + block_bytes_ - 8) = last_;
        }
        memory_.synchronize();
    }
    template <class BlockAt>
    void change_all(BlockAt&& block_at) {
        for (std::uint64_t i = 0; i < blocks_; ++i) {
            change_block(block_at(i), block_bytes_, rig_.plan().change, last_);
        }
    }
    double raw_release() {
        const RawPages::Handling handling{*raw_, [](std::size_t, std::byte*) {}};
        for (std::uint64_t i = 0; i < blocks_; ++i) {
            change_block(raw_->page(i), block_bytes_, rig_.plan().change, last_raw_);
        }
        std::byte* const theirs = rig_.mapped_landing(rig_.partner());
        const std::uint64_t begun_ns = now_ns();
        missed_ += raw_->collect() != blocks_;
        for (std::uint64_t i = 0; i < blocks_; ++i) {
            if (elsewhere() && round_trip_) round_trip_->lead(1);
            if (elsewhere() && !round_trip_) {
                auto* const line = reinterpret_cast<std::uint64_t*>(theirs + i * cache_line_bytes);
                std::uint64_t free = *line;
                std::atomic_ref{*line}.compare_exchange_strong(free, last_raw_);
            }
            raw_copy(raw_->twin(i), raw_->page(i), block_bytes_);
        }
        return ns_since(begun_ns);
    }

    Rig& rig_;
    MemoryRig& memory_;
    std::size_t block_bytes_;
    std::uint64_t blocks_, first_;
    std::unique_ptr<RawPages> raw_;
    std::unique_ptr<PingPong> round_trip_;
    std::uint64_t last_ = 0, last_raw_ = 0, missed_ = 0;
};

// --- hand-overs ----------------------------------------------------------------------------------

/// One block that two nodes write in turn.
class Handover {
public:
    Handover(Rig& rig, MemoryRig& memory)
        : rig_(rig),
          memory_(memory),
          words_(word(memory.block(rig.self() / 2))),
          raw_(memory.raw_pages(1)),
          raw_exchange_(make_raw_exchange(rig, sizeof(std::uint64_t))),
          line_(rig.plan().nodes) {}

    /// The floor of steps by barriers: who writes looks what it has written, copies the page, and
    /// gives its word to the others.
    double bare_steps(std::uint64_t iterations, bool both) {
        const RawPages::Handling handling{*raw_, [](std::size_t, std::byte*) {}};
        const std::uint64_t begun_ns = now_ns();
        for (std::uint64_t i = 0; i < iterations; ++i) {
            const std::uint64_t number = rig_.next_number();
            if (both || rig_.leads() == (i % 2 == 0)) {
                *word(raw_->page(0)) = number;
                wrong_ += raw_->collect() != 1;
                raw_copy(raw_->twin(0), raw_->page(0), memory_.block_bytes());
            }
            raw_exchange_->exchange(reinterpret_cast<const std::byte*>(&number),
                                    reinterpret_cast<std::byte*>(line_.data()));
            raw_copy(raw_->twin(0), reinterpret_cast<const std::byte*>(line_.data()), 8);
        }
        return ns_since(begun_ns) / static_cast<double>(iterations);
    }
    double bare_turns(std::uint64_t iterations) { return bare_steps(iterations, false); }
    double bare_together(std::uint64_t iterations) { return bare_steps(iterations, true); }

    /// The floor of a lock: a read miss and a release of one block, each timed by itself.
    double parts(std::uint64_t iterations) {
        double spent_ns = 0;
        for (std::uint64_t i = 0; i < iterations; ++i) {
            const std::uint64_t number = rig_.next_number();
            if (follows(rig_)) words_[2] = number;
            memory_.synchronize();
            if (rig_.leads()) {
                const std::uint64_t begun_ns = now_ns();
                wrong_ += words_[2] != number;
                const std::uint64_t missed_ns = now_ns();
                words_[2] = ~number;  // unlike the next number, or there were nothing to tell
                const std::uint64_t written_ns = now_ns();
                memory_.release();
                spent_ns += ns_since(written_ns) + static_cast<double>(missed_ns - begun_ns);
            }
            memory_.synchronize();
        }
        return spent_ns / static_cast<double>(iterations);
    }

    /// One word there and back: each writes it in its turn, and the other reads it.
    double ping_pong(std::uint64_t iterations) {
        const std::uint64_t begun_ns = now_ns();
        for (std::uint64_t i = 0; i < iterations; ++i) {
            const std::uint64_t number = rig_.next_number();
            const bool writes = rig_.has_partner() && rig_.leads() == (i % 2 == 0);
            if (writes) words_[0] = number;
            memory_.synchronize(dsm::Others::stopped);
            wrong_ += rig_.has_partner() && words_[0] != number;
        }
        return ns_since(begun_ns) / static_cast<double>(iterations);
    }

    /// Both write words of their own, which lie in one block.
    double false_sharing(std::uint64_t iterations) {
        const std::uint64_t begun_ns = now_ns();
        for (std::uint64_t i = 0; i < iterations; ++i) {
            const std::uint64_t number = rig_.next_number();
            const std::size_t mine = rig_.leads() ? 8 : 9;
            if (rig_.has_partner()) words_[mine] = number;
            memory_.synchronize(dsm::Others::stopped);
            // The partner may be a step ahead, not more: it waits for this node in the next one.
            wrong_ += rig_.has_partner() && words_[17 - mine] - number > 1;
        }
        return ns_since(begun_ns) / static_cast<double>(iterations);
    }

    /// Both count up one word under one lock, as fast as they get it.
    double lock(std::uint64_t iterations) {
        const auto key = reinterpret_cast<std::uintptr_t>(words_);
        const std::uint64_t begun_ns = now_ns();
        for (std::uint64_t i = 0; rig_.has_partner() && i < iterations; ++i) {
            memory_.locks().lock(key);
            words_[16] = words_[16] + 1;
            memory_.locks().unlock(key);
        }
        locked_ += 2 * iterations;
        rig_.collectives().barrier();
        return ns_since(begun_ns) / static_cast<double>(2 * iterations);
    }
    bool counted() {
        memory_.synchronize();
        return !rig_.has_partner() || words_[16] == locked_;
    }
    bool verified() const { return wrong_ == 0; }

private:
    Rig& rig_;
    MemoryRig& memory_;
    volatile std::uint64_t* words_;
    std::unique_ptr<RawPages> raw_;
    std::unique_ptr<RawExchange> raw_exchange_;
    std::vector<std::uint64_t> line_;
    std::uint64_t wrong_ = 0;
    std::uint64_t locked_ = 0;
};

using HandoverBatch = double (Handover::*)(std::uint64_t);

Measured measure_handover(Rig& rig, HandoverBatch floor, HandoverBatch test) {
    static Handover handover{rig, prepared_memory()};
    Measured measured =
        rig.alternate([&](std::uint64_t n) { return (handover.*floor)(n); },
                      [&](std::uint64_t n) { return (handover.*test)(n); }, 2, handovers_max);
    measured.verified = handover.verified() && handover.counted();
    return measured;
}

}  // namespace

Measured measure_dsm_release(Rig& rig) {
    MemoryRig& memory = prepared_memory();
    ReleaseBatch batch{rig, memory};
    Measured measured = rig.alternate([&](std::uint64_t n) { return batch.floor(n); },
                                      [&](std::uint64_t n) { return batch.test(n); },
                                      batch.blocks(), batch.blocks() * 8);
    measured.verified = batch.verified();
    return measured;
}

// A barrier as a program's, in which no call of the system is made: the floor has none either.
Measured measure_dsm_clean_barrier(Rig& rig) {
    MemoryRig& memory = prepared_memory();
    const std::uint64_t blocks = std::max<std::uint64_t>(1, rig.bytes() / memory.block_bytes());
    const auto raw_exchange = make_raw_exchange(rig, 0);
    for (std::uint64_t i = 0; i < blocks; ++i) static_cast<void>(*word(memory.block(i)));
    for (unsigned i = 0; i < barriers_to_settle; ++i) memory.synchronize(dsm::Others::stopped);

    Measured measured = rig.alternate(
        [&](std::uint64_t n) {
            const std::uint64_t begun_ns = now_ns();
            for (std::uint64_t i = 0; i < n; ++i) raw_exchange->exchange(nullptr, nullptr);
            return ns_since(begun_ns) / static_cast<double>(n);
        },
        [&](std::uint64_t n) {
            const std::uint64_t begun_ns = now_ns();
            for (std::uint64_t i = 0; i < n; ++i) memory.synchronize(dsm::Others::stopped);
            return ns_since(begun_ns) / static_cast<double>(n);
        },
        1, 1 << 12);
    // Clean to the end: nobody merged, nobody lost a block.
    const std::uint64_t faults = memory.memory().counts().read_faults;
    for (std::uint64_t i = 0; i < blocks; ++i) static_cast<void>(*word(memory.block(i)));
    measured.verified = memory.memory().counts().read_faults == faults;
    return measured;
}

Measured measure_dsm_ping_pong(Rig& rig) {
    return measure_handover(rig, &Handover::bare_turns, &Handover::ping_pong);
}
Measured measure_dsm_false_sharing(Rig& rig) {
    return measure_handover(rig, &Handover::bare_together, &Handover::false_sharing);
}
Measured measure_dsm_lock_handover(Rig& rig) {
    return measure_handover(rig, &Handover::parts, &Handover::lock);
}

}  // namespace hiroba::tools::perf_parts
