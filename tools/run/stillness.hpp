// SPDX-License-Identifier: BSD-3-Clause
// Role: tells a job that stands still from one that computes, by the processor time of its nodes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "tools/run/nodes.hpp"

namespace hiroba::tools {

/// How long nothing has to run before a line says so; from HIROBA_STILL. 0: no line ever does.
Result<std::uint64_t> still_limit_ns();

/// Processor time that the process has used so far, in it and in the kernel; 0: unknown.
std::uint64_t processor_time_ns(pid_t process);
/// That of all of `nodes` that run.
std::uint64_t processor_time_ns(const std::vector<NodeProcess>& nodes);
/// The kernel's part of it.
std::uint64_t kernel_time_ns(pid_t process);

class Stillness {
public:
    /// @param limit_ns  as of still_limit_ns()
    Stillness(std::uint64_t limit_ns, std::uint64_t now) : limit_ns_(limit_ns), looked_ns_(now) {}

    /// When look() is to be called next; the end of time: never again.
    std::uint64_t next_look_ns() const;
    /// True at the first look by which the nodes have used next to nothing for `limit_ns`; false at
    /// all others.
    /// @param used_ns  processor time of all nodes that run
    bool look(std::uint64_t now, std::uint64_t used_ns, std::uint32_t nodes);

private:
    std::uint64_t limit_ns_;
    std::uint64_t looked_ns_;
    std::uint64_t used_ns_ = 0;
    std::uint64_t still_ns_ = 0;  ///< for so long nothing has run
    bool told_ = false;
};

}  // namespace hiroba::tools
