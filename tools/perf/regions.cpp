// SPDX-License-Identifier: BSD-3-Clause
// Role: what OpenMP's fork, barrier and join take beside the scans and the round trip they need.
// Invariant: one thread of the team on each node. On node 0 that is whoever measures; elsewhere a
// thread that runs regions to the end, while whoever measures sleeps and polls nothing.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/clock.hpp"
#include "base/thread_context.hpp"
#include "dsm/heap/heap.hpp"
#include "omp/omp.hpp"
#include "tools/perf/floors.hpp"
#include "tools/perf/memory_rig.hpp"
#include "tools/perf/tests.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr std::uint64_t iterations_max = 1 << 14;

double ns_since(std::uint64_t begun_ns) { return static_cast<double>(now_ns() - begun_ns); }

/// The program's side of a region, as a compiler writes it: a struct of what is shared, on the
/// stack of the initial thread. Here it is the first block of the shared memory.
struct Shared {
    const std::uint64_t* value;
};

class Regions {
public:
    Regions(Rig& rig, MemoryRig& memory) : rig_(rig) {
        auto heap = dsm::Heap::create(rig.endpoint(), memory.map(), memory.memory());
        if (!heap) die(exit_environment, "%s", heap.error().text.c_str());
        heap_ = std::move(*heap);
        auto runtime = omp::Runtime::create({.endpoint = &rig.endpoint(),
                                             .memory = &memory.memory(),
                                             .locks = &memory.locks(),
                                             .heap = heap_.get(),
                                             .board = &rig.board()});
        if (!runtime) die(exit_environment, "%s", runtime.error().text.c_str());
        runtime_ = std::move(*runtime);
        only = this;
    }
    void attach() {
        heap_->attach();
        runtime_->attach();
        rig_.collectives().barrier();
        if (rig_.self() == 0) {
            runtime_->become_initial_thread();
        } else {
            worker_ = std::thread{[this] { work(); }};
        }
    }
    /// The end of the program, for the team; the nodes still talk.
    ~Regions() {
        if (rig_.self() == 0) runtime_->quit();
        if (worker_.joinable()) worker_.join();
    }

    omp::Runtime& runtime() { return *runtime_; }
    /// Node 0 times `count` operations that `make(count)` makes on the initial thread; the others
    /// wait until they are over. Collective.
    template <class Make>
    double batch(std::uint64_t count, Make&& make) {
        ++batches_;
        if (rig_.self() != 0) {
            std::unique_lock lock{latch_};
            over_.wait(lock, [this] { return batches_over_ == batches_; });
            return 0;
        }
        const double spent_ns = make(count);
        runtime_->parallel([](void*) { only->end_batch(); }, nullptr, 0);
        return spent_ns / static_cast<double>(count);
    }

    static inline Regions* only = nullptr;  ///< of this process; for bodies of regions
    std::uint64_t ran = 0;                  ///< bodies, on this node
    std::uint64_t read = 0;                 ///< what bodies have read
    double spent_ns = 0;

private:
    void work() {
        dsm::give_alternate_stack();
        this_thread().global_thread = rig_.self();
        runtime_->work(0);
    }
    void end_batch() {
        if (rig_.self() == 0) return;
        const std::scoped_lock lock{latch_};
        ++batches_over_;
        over_.notify_one();
    }

    Rig& rig_;
    std::unique_ptr<dsm::Heap> heap_;
    std::unique_ptr<omp::Runtime> runtime_;
    std::thread worker_;
    std::uint64_t batches_ = 0;
    std::mutex latch_;  ///< of batches_over_
    std::condition_variable over_;
    std::uint64_t batches_over_ = 0;
};

std::unique_ptr<Regions> regions;

Regions& prepared_regions() {
    static const bool attached = (prepared_memory(), regions->attach(), true);
    static_cast<void>(attached);
    return *regions;
}

/// Bare pages that are readable and tracked, and the raw round trip: what is left of a region.
class Floor {
public:
    Floor(Rig& rig, MemoryRig& memory, std::uint64_t blocks)
        : rig_(rig), raw_(memory.raw_pages(blocks)), round_trip_(make_ping_pong(rig, 64, 64)) {
        const RawPages::Handling handling{*raw_, [](std::size_t, std::byte*) {}};
        for (std::uint64_t i = 0; i < blocks; ++i) {
            static_cast<void>(*reinterpret_cast<volatile std::byte*>(raw_->page(i)));
        }
        raw_->collect();
    }
    /// `scans` that cannot be made at once, and one message there and one back.
    double run(std::uint64_t count, int scans) {
        const std::uint64_t begun_ns = now_ns();
        for (std::uint64_t i = 0; i < count; ++i) {
            for (int scan = 0; rig_.leads() && scan < scans; ++scan) wrong_ += raw_->collect();
            if (rig_.leads()) {
                round_trip_->lead(1);
            } else if (rig_.has_partner()) {
                round_trip_->follow(1);
            }
        }
        return ns_since(begun_ns) / static_cast<double>(count);
    }
    bool verified() const { return wrong_ == 0; }

private:
    Rig& rig_;
    std::unique_ptr<RawPages> raw_;
    std::unique_ptr<PingPong> round_trip_;
    std::uint64_t wrong_ = 0;
};

/// Makes --bytes readable here, behind the first block, and forgets who wrote them.
std::uint64_t track(Rig& rig, MemoryRig& memory) {
    const std::uint64_t blocks = std::max<std::uint64_t>(1, rig.bytes() / memory.block_bytes());
    for (std::uint64_t i = 0; i <= blocks; ++i) {
        static_cast<void>(*reinterpret_cast<volatile std::byte*>(memory.block(i)));
    }
    memory.synchronize();
    return blocks;
}

void empty_body(void*) { ++Regions::only->ran; }
void reading_body(void* data) {
    ++Regions::only->ran;
    Regions::only->read += *static_cast<const Shared*>(data)->value;
}

double empty_regions(Regions& it, std::uint64_t count) {
    return it.batch(count, [&](std::uint64_t n) {
        const std::uint64_t begun_ns = now_ns();
        for (std::uint64_t i = 0; i < n; ++i) it.runtime().parallel(&empty_body, nullptr, 0);
        return ns_since(begun_ns);
    });
}

}  // namespace

Result<void> prepare_regions(Rig& rig) {
    if (auto prepared = prepare_memory(rig); !prepared) return prepared;
    regions = std::make_unique<Regions>(rig, unattached_memory());
    rig.at_end([] { regions.reset(); });
    return {};
}

Measured measure_omp_fork_join(Rig& rig) {
    Regions& it = prepared_regions();
    MemoryRig& memory = prepared_memory();
    Floor floor{rig, memory, track(rig, memory)};
    std::uint64_t wanted = it.ran;
    Measured measured = rig.alternate([&](std::uint64_t n) { return floor.run(n, 2); },
                                      [&](std::uint64_t n) {
                                          wanted += n;
                                          return empty_regions(it, n);
                                      },
                                      8, iterations_max);
    measured.verified = floor.verified() && it.ran == wanted;
    return measured;
}

Measured measure_omp_barrier(Rig& rig) {
    Regions& it = prepared_regions();
    MemoryRig& memory = prepared_memory();
    Floor floor{rig, memory, track(rig, memory)};
    static std::uint64_t passed;
    const std::uint64_t before = passed;
    std::uint64_t wanted = 0;
    // The barriers are inside one region, and so is the clock. How many comes with the fork.
    const auto body = [](void* count) {
        Regions& it = *Regions::only;
        it.runtime().barrier();
        const std::uint64_t begun_ns = now_ns();
        const auto barriers = reinterpret_cast<std::uintptr_t>(count);
        for (std::uint64_t i = 0; i < barriers; ++i) it.runtime().barrier();
        it.spent_ns = ns_since(begun_ns);
        passed += barriers;
    };
    Measured measured =
        rig.alternate([&](std::uint64_t n) { return floor.run(n, 1); },
                      [&](std::uint64_t n) {
                          wanted += n;
                          return it.batch(n, [&](std::uint64_t barriers) {
                              it.runtime().parallel(body, reinterpret_cast<void*>(barriers), 0);
                              return it.spent_ns;
                          });
                      },
                      8, iterations_max);
    measured.verified = floor.verified() && passed - before == wanted;
    return measured;
}

Measured measure_omp_shared_local(Rig& rig) {
    Regions& it = prepared_regions();
    MemoryRig& memory = prepared_memory();
    track(rig, memory);
    auto& shared = *reinterpret_cast<Shared*>(memory.block(0));
    auto& local = *reinterpret_cast<std::uint64_t*>(memory.block(0) + 64);
    if (rig.self() == 0) local = 3;
    memory.synchronize();
    const std::uint64_t before = it.read;
    std::uint64_t wanted = 0;
    Measured measured =
        rig.alternate([&](std::uint64_t n) { return empty_regions(it, n); },
                      [&](std::uint64_t n) {
                          wanted += 3 * n;
                          return it.batch(n, [&](std::uint64_t times) {
                              const std::uint64_t begun_ns = now_ns();
                              for (std::uint64_t i = 0; i < times; ++i) {
                                  // As compilers do before each region; volatile, since they can't
                                  // know either.
                                  const_cast<const std::uint64_t* volatile&>(shared.value) = &local;
                                  it.runtime().parallel(&reading_body, &shared, 0);
                              }
                              return ns_since(begun_ns);
                          });
                      },
                      8, iterations_max);
    measured.verified = it.read - before == wanted;
    return measured;
}

}  // namespace hiroba::tools::perf_parts
