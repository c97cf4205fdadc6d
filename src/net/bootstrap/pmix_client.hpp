// SPDX-License-Identifier: BSD-3-Clause
// Role: a process manager that speaks PMIx (Open MPI's mpirun, Slurm's --mpi=pmix).
// Invariant: libpmix is loaded when it is needed, so neither the build nor a machine without it
// knows of it; an MPI library of the process that uses it shares its session. The declarations are
// those of the PMIx standard 3.1, chapters 3 and 5, whose binary interface versions 3 to 5 of the
// library share.
#pragma once

#include "net/bootstrap/process_manager.hpp"

namespace hiroba::net {

/// True when a launcher that speaks PMIx has started this process.
bool is_pmix_process(GetVariable get);

class PmixClient final : public ProcessManager {
public:
    /// Environment errors: libpmix cannot be loaded, the daemon does not answer.
    static Result<std::unique_ptr<PmixClient>> connect();
    ~PmixClient() override;

    Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) override;
    Result<void> barrier() override;

private:
    struct Library;
    explicit PmixClient(std::unique_ptr<Library> library);

    std::unique_ptr<Library> library_;
};

}  // namespace hiroba::net
