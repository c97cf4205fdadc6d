// SPDX-License-Identifier: BSD-3-Clause
// Role: a process manager that speaks PMI (MPICH's mpirun; Slurm's --mpi=pmi2, which understands
// both versions): lines of text over a socket that the process inherits as PMI_FD.
// Invariant: an MPI library of the process speaks over the same socket, before this or after it,
// and never between a line of this and its answer. Keys of this begin with "hiroba". Source: the
// wire protocol of PMI 1.1 (MPICH wiki, "PMI Details").
#pragma once

#include "net/bootstrap/process_manager.hpp"

namespace hiroba::net {

/// True when a launcher that speaks PMI over PMI_FD has started this process.
bool is_pmi_process(GetVariable get);

class PmiClient final : public ProcessManager {
public:
    /// Environment errors: the launcher does not answer, or answers what is no PMI.
    static Result<std::unique_ptr<PmiClient>> connect();
    /// @param fd  a socket to the launcher; kept
    static Result<std::unique_ptr<PmiClient>> over(int fd, std::uint32_t rank,
                                                   std::uint32_t processes);
    ~PmiClient() override;

    Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) override;
    Result<void> barrier() override;

private:
    explicit PmiClient(int fd) : fd_(fd) {}
    /// The launcher's answer to `line`; an error unless its command is `expected`.
    Result<std::string> ask(const std::string& line, const char* expected);
    Result<void> put(const std::string& key, const std::string& value);
    Result<std::string> get(const std::string& key);

    int fd_;
    std::string space_;            ///< name of the launcher's store of this job
    std::size_t piece_bytes_ = 0;  ///< the longest value it takes
};

}  // namespace hiroba::net
