// SPDX-License-Identifier: BSD-3-Clause
// Role: a node that is about to die of a signal tells the launcher, which reads the thread's stack.
#pragma once

#include <cstdint>

#include "net/bootstrap/control_packet.hpp"

namespace hiroba::net {

/// Tells the launcher of `crash` and waits until it has looked, at most `limit_ns`. False: it has
/// not, because there is no launcher, it is gone, or it took too long. Async-signal-safe; the
/// calling thread is the one that has crashed.
bool report_crash(const JobInfo& job, const CrashBody& crash, std::uint64_t limit_ns) noexcept;

}  // namespace hiroba::net
