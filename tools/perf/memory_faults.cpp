// SPDX-License-Identifier: BSD-3-Clause
// Role: what the shared memory makes of one access that the page tables refuse.
// Invariant: no block lies beside another, and few in one part of memory, so that none comes along
// with another's miss; what is read is checked, and that each access was a fault.
#include <algorithm>
#include <cstring>
#include <span>

#include "base/clock.hpp"
#include "tools/perf/floors.hpp"
#include "tools/perf/memory_rig.hpp"
#include "tools/perf/tests.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr std::uint64_t sweep_blocks = 64;
/// Blocks from one to the next: at most three of 64 (docs/decisions/spread-misses.md).
constexpr std::uint64_t sweep_stride = 22;
constexpr std::uint64_t iterations_max = 1 << 12;
// Long against a sweep of misses: where nothing is mapped each is several round trips.
constexpr std::uint64_t compute_mapped_ns = 50'000'000, compute_far_ns = 1'000'000'000;

std::unique_ptr<MemoryRig> memory;  // of this process, between prepare and its end

using Access = std::uint64_t (*)(volatile std::uint64_t* block, std::uint64_t value);

std::uint64_t read_word(volatile std::uint64_t* block, std::uint64_t) { return block[0]; }
std::uint64_t write_word(volatile std::uint64_t* block, std::uint64_t value) {
    block[1] = value;
    return block[0];
}

/// What the partner of the measuring node does while that one takes its misses.
enum class Partner : std::uint8_t { waits, computes };

/// Blocks that the partner writes anew before each sweep, so that every access is a miss.
class MissSweep {
public:
    explicit MissSweep(MemoryRig& memory)
        : memory_(memory),
          rig_(memory.rig()),
          first_(rig_.self() / 2 * sweep_blocks * sweep_stride),
          compute_ns_(rig_.maps_peers() ? compute_mapped_ns : compute_far_ns),
          block_bytes_(memory.block_bytes()),
          raw_(memory.raw_pages(sweep_blocks)) {
        if (!rig_.maps_peers()) round_trip_ = make_ping_pong(rig_, 64, block_bytes_);
    }

    double shared(std::uint64_t iterations, Access access, Partner partner) {
        double spent_ns = 0;
        for (std::uint64_t sweeps = iterations / sweep_blocks; sweeps > 0;) {
            std::uint64_t took_ns = 0;
            const std::uint64_t number = rig_.next_number();
            for (std::uint64_t i = 0; follows() && i < sweep_blocks; ++i) {
                *word(block(i)) = number + i;
            }
            memory_.synchronize();
            if (follows() && partner == Partner::computes) compute();
            if (rig_.leads()) {
                const std::uint64_t faults = this->faults();
                const std::uint64_t begun_ns = now_ns();
                for (std::uint64_t i = 0; i < sweep_blocks; ++i) {
                    const std::uint64_t at = scattered(i);
                    wrong_ += access(word(block(at)), number) != number + at;
                }
                took_ns = now_ns() - begun_ns;
                if (rig_.has_partner()) hits_ += this->faults() - faults < sweep_blocks;
            }
            if (partner == Partner::computes && outlasts(took_ns)) continue;
            spent_ns += static_cast<double>(took_ns);
            rig_.collectives().barrier();
            --sweeps;
        }
        return spent_ns / static_cast<double>(iterations);
    }

    double floor(std::uint64_t iterations, Access access) {
        double spent_ns = 0;
        for (std::uint64_t sweep = 0; sweep < iterations / sweep_blocks; ++sweep) {
            const std::uint64_t number = rig_.next_number();
            for (std::uint64_t i = 0; follows() && i < sweep_blocks; ++i) {
                const std::uint64_t value = number + i;
                std::memcpy(rig_.landing_bytes() + i * block_bytes_, &value, sizeof value);
            }
            rig_.collectives().barrier();
            if (rig_.leads()) {
                spent_ns += raw_sweep(access, number);
            } else if (follows() && round_trip_) {
                round_trip_->follow(sweep_blocks);
            }
            rig_.collectives().barrier();
        }
        return spent_ns / static_cast<double>(iterations);
    }
    bool verified() const { return wrong_ == 0 && hits_ == 0; }

private:
    std::byte* block(std::uint64_t i) const { return memory_.block(first_ + i * sweep_stride); }
    std::uint64_t faults() const {
        const dsm::MemoryCounts counts = memory_.memory().counts();
        return counts.read_faults + counts.write_faults;
    }
    static volatile std::uint64_t* word(std::byte* block) {
        return reinterpret_cast<volatile std::uint64_t*>(block);
    }
    static std::uint64_t scattered(std::uint64_t i) { return i * 37 % sweep_blocks; }
    bool follows() const { return rig_.has_partner() && !rig_.leads(); }

    // Whether a partner had computed before the last miss was over: then the figure is of something
    // else, and the sweep is made again beside one that computes for longer. The same on all nodes.
    bool outlasts(std::uint64_t took_ns) {
        rig_.collectives().all_reduce(std::span{&took_ns, 1}, [](std::uint64_t a, std::uint64_t b) {
            return std::max(a, b);
        });
        if (took_ns <= compute_ns_) return false;
        compute_ns_ = 2 * took_ns;
        return true;
    }

    void compute() const {
        const std::uint64_t until_ns = now_ns() + compute_ns_;
        while (now_ns() < until_ns) __builtin_ia32_pause();
    }

    double raw_sweep(Access access, std::uint64_t number) {
        const std::byte* const from = rig_.mapped_landing(rig_.partner());
        raw_->drop_all();
        const RawPages::Handling handling{*raw_, [&](std::size_t index, std::byte* to) {
                                              if (round_trip_) {
                                                  round_trip_->lead(1);
                                              } else {
                                                  raw_copy(to, from + index * block_bytes_,
                                                           block_bytes_);
                                              }
                                          }};
        const std::uint64_t begun_ns = now_ns();
        for (std::uint64_t i = 0; i < sweep_blocks; ++i) {
            const std::uint64_t at = scattered(i);
            const bool right = access(word(raw_->page(at)), number) == number + at;
            wrong_ += !right && !round_trip_;  // datagrams bring no content
        }
        return static_cast<double>(now_ns() - begun_ns);
    }

    MemoryRig& memory_;
    Rig& rig_;
    std::uint64_t first_;
    std::uint64_t compute_ns_;
    std::size_t block_bytes_;
    std::unique_ptr<RawPages> raw_;
    std::unique_ptr<PingPong> round_trip_;
    std::uint64_t wrong_ = 0;
    std::uint64_t hits_ = 0;  ///< sweeps in which an access was no fault
};

Measured measure_miss(Rig& rig, Access access) {
    MissSweep sweep{prepared_memory()};
    Measured measured =
        rig.alternate([&](std::uint64_t n) { return sweep.floor(n, access); },
                      [&](std::uint64_t n) { return sweep.shared(n, access, Partner::waits); },
                      sweep_blocks, iterations_max);
    measured.verified = sweep.verified();
    return measured;
}

}  // namespace

Result<void> prepare_memory(Rig& rig) {
    auto made = MemoryRig::create(rig);
    if (!made) return made.error();
    memory = std::move(*made);
    return {};
}

MemoryRig& unattached_memory() { return *memory; }

MemoryRig& prepared_memory() {
    static const bool attached = (memory->attach(), true);
    static_cast<void>(attached);
    return *memory;
}

Measured measure_dsm_read_miss(Rig& rig) { return measure_miss(rig, read_word); }
Measured measure_dsm_write_miss(Rig& rig) { return measure_miss(rig, write_word); }

Measured measure_dsm_busy_home(Rig& rig) {
    MissSweep sweep{prepared_memory()};
    Measured measured = rig.alternate(
        [&](std::uint64_t n) { return sweep.shared(n, read_word, Partner::waits); },
        [&](std::uint64_t n) { return sweep.shared(n, read_word, Partner::computes); },
        sweep_blocks, sweep_blocks);
    measured.verified = sweep.verified();
    return measured;
}

Measured measure_dsm_first_write(Rig& rig) {
    MemoryRig& shared = prepared_memory();
    const auto raw = shared.raw_pages(sweep_blocks);
    const std::uint64_t first = rig.self() * sweep_blocks;
    std::uint64_t missed = 0;
    // One byte of each; noticed, for the release or the scan reports it.
    const auto write_all = [&](auto&& block_at) {
        const std::uint64_t begun_ns = now_ns();
        for (std::uint64_t i = 0; i < sweep_blocks; ++i) {
            auto* const byte = reinterpret_cast<volatile std::uint8_t*>(block_at(i * 37 % 64));
            *byte = static_cast<std::uint8_t>(*byte + 1);
        }
        return static_cast<double>(now_ns() - begun_ns);
    };
    const auto test = [&](std::uint64_t n) {
        double spent_ns = 0;
        for (std::uint64_t sweep = 0; sweep < n / sweep_blocks; ++sweep) {
            const std::uint64_t merged = shared.memory().counts().blocks_merged;
            spent_ns += write_all([&](std::uint64_t i) { return shared.block(first + i); });
            shared.synchronize();
            missed += shared.memory().counts().blocks_merged - merged != sweep_blocks;
        }
        return spent_ns / static_cast<double>(n);
    };
    const auto floor = [&](std::uint64_t n) {
        const RawPages::Handling handling{*raw, [](std::size_t, std::byte*) {}};
        for (std::uint64_t i = 0; i < sweep_blocks; ++i) {
            static_cast<void>(*reinterpret_cast<volatile std::uint8_t*>(raw->page(i)));
        }
        raw->collect();
        double spent_ns = 0;
        for (std::uint64_t sweep = 0; sweep < n / sweep_blocks; ++sweep) {
            spent_ns += write_all([&](std::uint64_t i) { return raw->page(i); });
            missed += raw->collect() != sweep_blocks;
        }
        return spent_ns / static_cast<double>(n);
    };
    test(sweep_blocks);  // brings the blocks here
    Measured measured = rig.alternate(floor, test, sweep_blocks, iterations_max);
    measured.verified = missed == 0;
    return measured;
}

}  // namespace hiroba::tools::perf_parts
