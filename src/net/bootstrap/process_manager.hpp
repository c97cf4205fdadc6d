// SPDX-License-Identifier: BSD-3-Clause
// Role: what a process asks of the launcher of others that started it (mpirun, srun): its own rank,
// and an exchange of bytes with the other processes.
// Invariant: nothing is asked of it but by who needs it: a job of `hiroba run` never does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace hiroba::net {

/// Thread: one. Nothing of it may be used in a child made by fork().
class ProcessManager {
public:
    /// By PMIx or, where the launcher speaks none, by PMI. nullptr: no launcher that speaks one of
    /// them has started this process. Environment errors: it does not answer, or libpmix cannot be
    /// loaded.
    static Result<std::unique_ptr<ProcessManager>> connect();
    /// Leaves the launcher's session.
    virtual ~ProcessManager() = default;
    ProcessManager(const ProcessManager&) = delete;
    ProcessManager& operator=(const ProcessManager&) = delete;

    std::uint32_t rank() const { return rank_; }
    std::uint32_t processes() const { return processes_; }

    /// Gives `mine` to all processes and returns the bytes of each, by rank. Collective; once.
    /// Blocks until every process of the job has come.
    virtual Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) = 0;
    /// Blocks, without using the processor, until every process of the job has come.
    virtual Result<void> barrier() = 0;

protected:
    ProcessManager() = default;
    std::uint32_t rank_ = 0;
    std::uint32_t processes_ = 0;
};

/// An environment variable or nullptr, as getenv().
using GetVariable = const char* (*)(const char*);

/// Why processes were started that do not know of each other: a line that says how to start them
/// else. Empty: nothing speaks for that, or connect() would find a process manager.
std::string why_alone(GetVariable get);
/// Whether this is the first of the launcher's processes, which may speak for all of them.
bool is_first_of_launcher(GetVariable get);
/// Before a process ends of several that have all found the same, of which one `speaks`: launchers
/// end all with the first whose status is not 0, and may leave unread what that has written. So the
/// one that speaks waits until its line was taken, and the others to be ended with it; none longer
/// than `longest_ms`.
void await_end_of_all(bool speaks, unsigned longest_ms);

}  // namespace hiroba::net
