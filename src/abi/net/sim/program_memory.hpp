// SPDX-License-Identifier: BSD-3-Clause
// Role: the writable memory of the program's own file, once for each simulated node: its global
// variables, and what its threads have of its thread_local ones.
//
// All nodes are threads of one process, and the program's code knows its variables by address. So
// the pages behind those addresses are exchanged: each node has a copy in a memory file, and the
// copy of the node that has its turn is mapped where the program expects it. A second view, which
// stays, shows all copies: packets read and write there while another node has its turn.
//
// Invariant: between enter() and the next, the program's variables are those of that node. What is
// not here is shared: variables of libraries, libc's own state, open files, the heap's books (what
// a node allocates only that node knows of).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/simulation.hpp"

namespace hiroba::abi::sim {

class ProgramMemory final : public net::NodeMemory {
public:
    /// Copies what the program's variables are now for each node. Ends the process with one line
    /// when the machine has no memory file or no room.
    explicit ProgramMemory(std::uint32_t nodes);

    void enter(NodeId node, std::uint32_t thread) noexcept override;
    void leave(NodeId node, std::uint32_t thread) noexcept override;
    /// Ends the process when `at` is a thread_local variable, which has no lasting address.
    std::byte* lasting(NodeId node, std::byte* at) noexcept override;

private:
    struct Segment {
        std::byte* begin = nullptr;
        std::size_t bytes = 0;
        std::size_t offset = 0;  ///< in a node's copy
    };
    /// What of a thread lies where all threads have theirs.
    struct ThreadPart {
        std::vector<std::byte> locals;  ///< thread_local variables; empty: as at a thread's start
        int error_number = 0;
        std::byte exceptions[16] = {};  ///< being handled; of the C++ library
    };
    void find_segments();
    void copy_segments(std::uint32_t nodes);
    ThreadPart& part_of(std::uint32_t thread);

    std::vector<Segment> segments_;
    std::size_t node_bytes_ = 0;
    int file_ = -1;
    std::byte* all_ = nullptr;  ///< the copies of all nodes
    std::uint32_t mapped_ = ~0u;
    std::span<std::byte> locals_;              ///< of the process's thread
    std::span<const std::byte> locals_begin_;  ///< with which they begin; zeros behind
    std::byte* exceptions_ = nullptr;
    std::vector<ThreadPart> threads_;
};

}  // namespace hiroba::abi::sim
