// SPDX-License-Identifier: BSD-3-Clause
// Role: a node as the threads of a random program see it, simulated (test/sim/dsm) or a process of
// its own (test/memory_programs/real_nodes.cpp).
#pragma once

#include <cstdint>
#include <functional>

#include "dsm/dsm.hpp"
#include "dsm/sync/lock_table.hpp"

namespace hiroba::sim_test {

/// Thread: those of the node.
class ProgramNode {
public:
    virtual ~ProgramNode() = default;

    virtual NodeId self() const noexcept = 0;
    virtual dsm::SharedMemory& memory() noexcept = 0;
    virtual dsm::LockTable& locks() noexcept = 0;
    /// The time of whatever clock the nodes live by; for people who read the steps.
    virtual std::uint64_t time_ns() noexcept = 0;

    /// An access of the program: 1, 2, 4 or 8 bytes, aligned.
    virtual std::uint64_t load(std::uintptr_t address, std::size_t bytes) noexcept = 0;
    virtual void store(std::uintptr_t address, std::size_t bytes, std::uint64_t value) noexcept = 0;

    /// From here on, until it is called with false, the kernel may come to a pinned buffer.
    virtual void lend_to_kernel(std::uintptr_t address, bool lent) noexcept = 0;
    /// What a system call does with a pinned buffer; false: refused, as EFAULT would be.
    virtual bool kernel_fills(std::uintptr_t address, std::size_t bytes,
                              std::uint64_t value) noexcept = 0;
    virtual bool kernel_reads(std::uintptr_t address, std::size_t bytes,
                              std::uint64_t& value) noexcept = 0;

    // --- by every thread of every node, in the same order ----------------------------------------

    virtual void barrier(std::uint32_t threads) noexcept = 0;
    /// All threads wait until one of node 0 has run `alone`.
    virtual void serial(std::uint32_t threads, const std::function<void()>& alone) noexcept = 0;
};

}  // namespace hiroba::sim_test
