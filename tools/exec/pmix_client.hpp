// SPDX-License-Identifier: BSD-3-Clause
// Role: what `hiroba exec` asks of the launcher that started it (mpirun, srun): its own rank, and
// an exchange of bytes with the others, through PMIx.
// Invariant: libpmix is loaded when it is needed, so neither the build nor a machine without it
// knows of it. The declarations are those of the PMIx standard 3.1, chapters 3 and 5, whose binary
// interface versions 3 to 5 of the library share.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace hiroba::tools {

/// True when a launcher that speaks PMIx has started this process.
bool is_pmix_process();

/// Thread: one. Nothing of it may be used in a child made by fork().
class PmixClient {
public:
    /// Connects to the launcher's daemon on this host. Environment errors: libpmix cannot be
    /// loaded, the daemon does not answer.
    static Result<std::unique_ptr<PmixClient>> connect();
    /// Leaves the job's PMIx session.
    ~PmixClient();
    PmixClient(const PmixClient&) = delete;
    PmixClient& operator=(const PmixClient&) = delete;

    std::uint32_t rank() const { return rank_; }
    std::uint32_t processes() const { return processes_; }

    /// Gives `mine` to all processes and returns the bytes of each, by rank. Collective; once.
    /// Blocks until every process of the job has come.
    Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine);
    /// Blocks, without using the processor, until every process of the job has come.
    Result<void> barrier();

private:
    struct Library;
    explicit PmixClient(std::unique_ptr<Library> library);

    std::unique_ptr<Library> library_;
    std::uint32_t rank_ = 0;
    std::uint32_t processes_ = 0;
};

}  // namespace hiroba::tools
