// SPDX-License-Identifier: BSD-3-Clause
// Role: what is printed when the program crashes: which thread, by what, what lies there, and its
// stack.
// Invariant: the thread waits in its signal handler while it is looked at, so nothing is stopped.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "net/bootstrap/control_packet.hpp"
#include "tools/run/symbol.hpp"

namespace hiroba::tools {

/// The report: a line without an end, then a line for each frame. `process` is the node's, on this
/// host.
std::string describe_crash(std::uint32_t rank, pid_t process, const net::CrashBody& crash);

/// Prints reports of nodes: the first whole, of all others the line.
class CrashReport {
public:
    void add(const std::string& report);

private:
    bool told_ = false;
};

}  // namespace hiroba::tools
