// SPDX-License-Identifier: BSD-3-Clause
// Role: a random program (random_program.hpp) on real nodes: processes, page tables, the provider
// and the fault engine that the settings name. All nodes on one host: what the program must see
// lies in memory of the machine, apart from the memory tested.
// Usage: hiroba run --spmd -n N memory_program SEED [STEPS [flusher]]
//   flusher  another thread of each node flushes all the time, which is always legal
// Status 1: a wrong value, a race report, or EFAULT for a pinned buffer.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <barrier>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.hpp"
#include "base/settings.hpp"
#include "base/thread_context.hpp"
#include "memory_programs/news_exchange.hpp"
#include "memory_programs/random_program.hpp"
#include "net/bootstrap/job.hpp"

namespace hiroba::sim_test {
namespace {

using dsm::Others;
using Oracle = RandomProgram::Oracle;

template <class T>
T must(Result<T> result) {
    if (!result) die(exit_environment, "%s", result.error().text.c_str());
    return std::move(*result);
}
void must(Result<void> result) {
    if (!result) die(exit_environment, "%s", result.error().text.c_str());
}

/// Zeroed memory of the machine that every node of the job maps; its name goes when all have it.
/// Tests that look for what jobs leave behind (kill_runs.py) run meanwhile: it is not hiroba's.
Oracle& map_oracle(const net::JobInfo& job, net::ControlChannel& control) {
    const std::string name = "/memory-program-oracle-" + std::to_string(job.job_key);
    const int fd = ::shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ::ftruncate(fd, sizeof(Oracle)) != 0) std::abort();
    void* const at = ::mmap(nullptr, sizeof(Oracle), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) std::abort();
    ::close(fd);
    must(control.barrier());
    if (job.self.value == 0) ::shm_unlink(name.c_str());
    return *static_cast<Oracle*>(at);
}

dsm::SpaceShape shape_of(std::uint32_t nodes, std::uint32_t threads, std::size_t block_bytes) {
    dsm::SpaceShape shape;
    shape.nodes = nodes;
    shape.threads_per_node = threads;
    shape.stack_bytes = 2 * block_bytes;
    shape.early_bytes = block_bytes;
    shape.heap_bytes = 4 * block_bytes;
    shape.block_bytes = block_bytes;
    return shape;
}

/// This process.
class RealNode final : public ProgramNode {
public:
    RealNode(const net::JobInfo& job, net::ControlChannel& control, const DrawnMemory& drawn)
        : random_(job.self.value + 1),
          threads_(job.self.value == 0 ? drawn.threads_of_first : 1),
          local_(threads_) {
        auto engine = must(dsm::make_fault_engine(setting("HIROBA_FAULT_ENGINE")));
        map_.emplace(shape_of(job.nodes, drawn.threads_of_first, engine->facts().block_bytes));
        endpoint_ = must(net::Endpoint::open(job, control));
        memory_ =
            must(dsm::SharedMemory::create(*endpoint_, *map_, std::move(engine), drawn.memory));
        payer_ = std::make_unique<dsm::DebtPayer>(*endpoint_);
        locks_ = must(dsm::LockTable::create(*endpoint_, *memory_, *payer_));
        news_ = std::make_unique<NewsExchange>(*endpoint_, *memory_);
        must(endpoint_->connect());
        locks_->attach();
        must(memory_->attach({}));
        memory_->on_race(
            [](void* races, std::uintptr_t, std::uint32_t, NodeId, NodeId) noexcept {
                ++*static_cast<std::atomic<std::uint64_t>*>(races);
            },
            &races_);
        if (::pipe(pipe_) != 0) std::abort();
        service_ = std::thread([this] { endpoint_->serve(); });
        payer_->start();
        must(control.barrier());
    }
    RealNode(const RealNode&) = delete;
    RealNode& operator=(const RealNode&) = delete;
    ~RealNode() override {
        endpoint_->drain(1'000'000'000);
        endpoint_->stop();
        service_.join();
    }

    const dsm::AddressMap& map() const { return *map_; }
    std::uint64_t races() const { return races_; }

    NodeId self() const noexcept override { return endpoint_->self(); }
    dsm::SharedMemory& memory() noexcept override { return *memory_; }
    dsm::LockTable& locks() noexcept override { return *locks_; }
    std::uint64_t time_ns() noexcept override { return now_ns(); }

    std::uint64_t load(std::uintptr_t address, std::size_t bytes) noexcept override {
        switch (bytes) {
            case 1: return *reinterpret_cast<const volatile std::uint8_t*>(address);
            case 2: return *reinterpret_cast<const volatile std::uint16_t*>(address);
            case 4: return *reinterpret_cast<const volatile std::uint32_t*>(address);
            default: return *reinterpret_cast<const volatile std::uint64_t*>(address);
        }
    }
    void store(std::uintptr_t address, std::size_t bytes, std::uint64_t value) noexcept override {
        switch (bytes) {
            case 1: return put<std::uint8_t>(address, value);
            case 2: return put<std::uint16_t>(address, value);
            case 4: return put<std::uint32_t>(address, value);
            default: return put<std::uint64_t>(address, value);
        }
    }

    void lend_to_kernel(std::uintptr_t, bool) noexcept override {}
    bool kernel_fills(std::uintptr_t address, std::size_t bytes,
                      std::uint64_t value) noexcept override {
        const std::scoped_lock guard{pipe_latch_};
        if (::write(pipe_[1], &value, bytes) != static_cast<ssize_t>(bytes)) return false;
        return drained(unless_hidden([&] {
                           return ::read(pipe_[0], reinterpret_cast<void*>(address), bytes);
                       }),
                       bytes);
    }
    bool kernel_reads(std::uintptr_t address, std::size_t bytes,
                      std::uint64_t& value) noexcept override {
        const std::scoped_lock guard{pipe_latch_};
        value = 0;
        const auto sent = unless_hidden(
            [&] { return ::write(pipe_[1], reinterpret_cast<const void*>(address), bytes); });
        return sent == static_cast<ssize_t>(bytes) && ::read(pipe_[0], &value, bytes) == sent;
    }

    void barrier(std::uint32_t) noexcept override {
        meet([&] { news_->barrier(at_release()); });
    }
    void serial(std::uint32_t, const std::function<void()>& alone) noexcept override {
        meet([&] { news_->serial(at_release(), alone); });
    }

private:
    template <class Word>
    static void put(std::uintptr_t address, std::uint64_t value) noexcept {
        *reinterpret_cast<volatile Word*>(address) = static_cast<Word>(value);
    }
    /// The kernel's scan for written pages hides a mapped page for an instant, and then refuses
    /// (docs/decisions/refused-calls.md). No thread maps it here: a page that is not mapped stays
    /// refused.
    template <class Call>
    ssize_t unless_hidden(Call&& call) noexcept {
        constexpr int attempts_max = 3;
        for (int attempt = 1;; ++attempt) {
            const ssize_t result = call();
            if (result >= 0 || errno != EFAULT || attempt == attempts_max) return result;
        }
    }
    /// What a read that failed has left in the pipe must not be the next one's.
    bool drained(ssize_t got, std::size_t bytes) noexcept {
        std::uint64_t rest = 0;
        if (got == static_cast<ssize_t>(bytes)) return true;
        return ::read(pipe_[0], &rest, bytes) < 0;
    }
    /// One of the node's threads does it, the others wait: before, and behind.
    template <class Work>
    void meet(Work&& work) noexcept {
        const std::uint32_t come = come_.fetch_add(1);
        local_.arrive_and_wait();
        if (come % threads_ == 0) work();
        local_.arrive_and_wait();
    }
    Others at_release() noexcept { return random_.happens(50) ? Others::stopped : Others::running; }

    Random random_;
    std::uint32_t threads_;
    std::barrier<> local_;
    std::atomic<std::uint32_t> come_{0};
    std::optional<dsm::AddressMap> map_;
    std::unique_ptr<net::Endpoint> endpoint_;
    std::unique_ptr<dsm::SharedMemory> memory_;
    std::unique_ptr<dsm::DebtPayer> payer_;
    std::unique_ptr<dsm::LockTable> locks_;
    std::unique_ptr<NewsExchange> news_;
    std::thread service_;
    std::atomic<std::uint64_t> races_{0};
    Latch pipe_latch_;
    int pipe_[2] = {-1, -1};
};

int run(std::uint64_t seed, std::uint32_t steps, bool flushes) {
    const net::JobInfo job = must(net::read_job_info());
    net::ControlChannel control(job);
    Random random{seed * 2 + 1};
    const DrawnMemory drawn = draw_memory(random);
    Oracle& oracle = map_oracle(job, control);
    RealNode node{job, control, drawn};
    // The others learn of the end from the launcher.
    const auto failed = [](const std::string& what) {
        std::fprintf(stderr, "%s\n", what.c_str());
        std::_Exit(1);
    };
    RandomProgram program{seed,       {.nodes = job.nodes, .steps = steps},
                          random,     drawn.threads_of_first,
                          node.map(), oracle,
                          failed};

    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (std::uint32_t thread = 0; thread < program.threads(); ++thread) {
        if (program.node_of(thread) != job.self.value) continue;
        threads.emplace_back([&, thread] {
            dsm::give_alternate_stack();
            this_thread().global_thread = thread;
            program.live(thread, node);
        });
    }
    std::thread flusher;
    if (flushes) {
        flusher = std::thread([&] {
            dsm::give_alternate_stack();
            while (!over) {
                node.memory().flush();
                std::this_thread::yield();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    over = true;
    if (flusher.joinable()) flusher.join();
    must(control.barrier());  // nodes answer each other until all are through
    control.report_leaving();
    if (node.races() > 0) failed(std::to_string(node.races()) + " races of a program without any");
    const dsm::MemoryCounts counts = node.memory().counts();
    std::printf("node %u of %u, %zu threads: seed %lu right; %lu faults, %lu merges, %lu atomics\n",
                job.self.value, job.nodes, threads.size(), seed,
                counts.read_faults + counts.write_faults, counts.blocks_merged, counts.atomics);
    return 0;
}

}  // namespace
}  // namespace hiroba::sim_test

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: memory_program SEED [STEPS [flusher]]\n");
        return 64;
    }
    const std::uint64_t seed = std::strtoull(argv[1], nullptr, 10);
    const unsigned long steps = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 50;
    return hiroba::sim_test::run(seed, static_cast<std::uint32_t>(steps), argc > 3);
}
