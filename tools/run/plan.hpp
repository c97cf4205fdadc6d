// SPDX-License-Identifier: BSD-3-Clause
// Role: what one `hiroba run` is to do, and whether this machine can do it.
// Invariant: everything that can be known to be wrong before a node starts is found here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "tools/machine.hpp"
#include "tools/run/joined.hpp"

namespace hiroba::tools {

inline constexpr std::uint32_t nodes_max = 1024;
inline constexpr std::uint32_t threads_max = 256;
/// What a node needs before the program has allocated anything.
inline constexpr std::uint64_t node_memory_min = std::uint64_t{64} << 20;

struct RunPlan {
    std::uint32_t nodes = 1;                ///< of the whole job
    std::uint32_t first_rank = 0;           ///< of those this host carries
    std::uint32_t local_nodes = 0;          ///< how many it carries; 0: all
    std::uint32_t hosts = 1;                ///< that the job uses
    std::uint32_t threads_per_node = 1;     ///< 0: not yet known (several hosts agree on it)
    bool in_group = true;                   ///< rank 0 stays in the process group of its parent
    std::uint64_t loss_grace_ns = 0;        ///< between a node's death and the job's end
    std::uint64_t progress_ns = 0;          ///< between two lines about it; 0: none
    std::uint64_t still_ns = 0;             ///< nothing runs before a line says so; 0: none does
    bool spmd = false;                      ///< every node enters main; nothing is preloaded: asked
                                            ///< for, or an ACP program
    std::vector<std::string> command = {};  ///< the program as the user named it, and its arguments
    std::string program = {};               ///< path of the file to execute
    std::vector<JoinedProgram> joined = {};  ///< the programs, if they are several
    std::string library = {};                ///< the runtime to preload; empty with spmd
    std::string network = {};  ///< address by which peers reach this host, when there are several
    /// Processors of each node here, as cpu_list() writes them; empty: those of the launcher.
    std::vector<std::string> node_cpus = {};
    bool calls_mpi = false;  ///< the program is linked with an MPI library
    /// Where nodes come that run already, as of adopted.hpp; empty: they are started.
    std::string adopted_at = {};

    /// What rank `rank` executes: path, and words of its command line.
    const std::string& program_of(std::uint32_t rank) const;
    const std::vector<std::string>& words_of(std::uint32_t rank) const;

    std::uint32_t nodes_here() const { return local_nodes == 0 ? nodes : local_nodes; }
};

/// How long the job goes on after it lost a node; from HIROBA_LOSS_GRACE.
Result<std::uint64_t> loss_grace_ns();

/// No heap is made smaller than this for the sake of many nodes.
inline constexpr std::uint64_t heap_bytes_least = std::uint64_t{16} << 20;

/// A node's heap where there is room: programs reserve tens of gigabytes to use a part of them.
inline constexpr std::uint64_t large_heap_bytes = std::uint64_t{256} << 30;
inline constexpr std::uint32_t nodes_of_large_heaps = 16;

/// Sizes that the nodes will map; from HIROBA_HEAP and what asks for larger stacks.
struct SpaceSizes {
    std::uint64_t heap_bytes = 0;         ///< one node's arena
    std::uint64_t stack_bytes = 0;        ///< one thread's slice
    std::uint32_t stacks_per_node = 1;    ///< slices
    std::uint64_t stack_bytes_least = 0;  ///< of a slice, without HIROBA_STACK
};
Result<SpaceSizes> space_sizes(std::uint32_t threads_per_node);

/// Bytes of address space from the main base that `plan` takes; saturates.
std::uint64_t space_bytes(const RunPlan& plan, const SpaceSizes& sizes);

/// Which of the sizes may be made smaller: what the user has not set.
struct FreeSizes {
    bool heap = true, stack = true;
};

/// The sizes with which nodes that map each other's memory fit the address space: `sizes`, or with
/// the heap or the stacks of a node halved, whichever takes more, and so on down to
/// heap_bytes_least and stack_bytes_least.
SpaceSizes sizes_that_fit(const RunPlan& plan, const SpaceSizes& sizes, FreeSizes free);

/// Refuses, with an environment error, what `machine` has no room for.
Result<void> check_room(const RunPlan& plan, const SpaceSizes& sizes, const Machine& machine);

/// The runtime that belongs to this command: in build_runtime_folder where it is installed, in
/// ../lib where it was built, both from the executable's folder.
Result<std::string> find_library();

}  // namespace hiroba::tools
