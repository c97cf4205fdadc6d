// SPDX-License-Identifier: BSD-3-Clause
// Role: simulated nodes for what stands above net: a job whose nodes are threads of a simulator in
// this process, in virtual time, on a wire as bad as asked for (docs/layers/sim.md).
// Invariant: equal options give equal runs, as long as the threads do nothing else that differs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/ids.hpp"
#include "net/net.hpp"

namespace hiroba::net {

/// The part of the process's memory that each node, or each thread, has for itself.
class NodeMemory {
public:
    virtual ~NodeMemory() = default;
    /// Brings what belongs to `node` and to `thread`, which has its turn now.
    virtual void enter(NodeId node, std::uint32_t thread) noexcept = 0;
    /// Puts away what belongs to `thread`, whose turn is over.
    virtual void leave(NodeId node, std::uint32_t thread) noexcept = 0;
    /// Another address of `at`, by which the bytes of `node` are there also when it has no turn.
    virtual std::byte* lasting(NodeId node, std::byte* at) noexcept = 0;
};

struct SimulationOptions {
    std::uint32_t nodes = 2;
    std::uint64_t seed = 1;                              ///< of the wire and of the turns
    std::uint32_t loss = 0, duplicate = 0, reorder = 0;  ///< percent of packets
    std::uint64_t limit_ns = ~std::uint64_t{0};          ///< of virtual time
    std::size_t stack_bytes = std::size_t{8} << 20;      ///< of each thread, used as touched
    NodeMemory* memory = nullptr;                        ///< nullptr: all share everything
};

/// One job. Thread: the one that runs it, and the simulated ones, which take turns on that.
class Simulation {
public:
    enum class End : std::uint8_t { ended, stuck, out_of_time, stopped };

    explicit Simulation(const SimulationOptions& options);
    Simulation(const Simulation&) = delete;
    ~Simulation();

    /// Runs first(node) as the first thread of every node until all threads have ended, or cannot,
    /// or stop() was called.
    End run(const std::function<void(NodeId)>& first);

    /// The simulation that the calling thread is a simulated one of; nullptr: none.
    static Simulation* current() noexcept;

    /// Virtual time, and how many things have happened.
    std::uint64_t time_ns() const noexcept;
    std::uint64_t events() const noexcept;
    std::uint64_t trace_hash() const noexcept;

    // --- by simulated threads --------------------------------------------------------------------

    static constexpr std::uint64_t forever = ~std::uint64_t{0};
    NodeId self() const noexcept;
    /// The calling thread's number; numbers count over the whole job.
    std::uint32_t thread() const noexcept;
    /// A new thread of the calling thread's node; returns its number.
    std::uint32_t spawn(std::function<void()> body);
    /// Waits for the end of `thread`.
    void join(std::uint32_t thread) noexcept;
    /// Lets other threads run.
    void pass() noexcept;
    /// Virtual time; asking takes some, so that a loop until a time ends.
    std::uint64_t now_ns() noexcept;
    /// Sleeps until wake(), or until the virtual time `deadline_ns`.
    void park(std::uint64_t deadline_ns) noexcept;
    /// Ends `thread`'s park(), if it is in it.
    void wake(std::uint32_t thread) noexcept;
    /// Ends all threads of the calling thread's node where they stand, itself too.
    [[noreturn]] void end_node() noexcept;
    /// Has run() return.
    void stop() noexcept;
    /// The calling thread's node's end of the job's communication, not connected yet.
    std::unique_ptr<Endpoint> open();
    std::uint64_t job_key() const noexcept;

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace hiroba::net
