// SPDX-License-Identifier: BSD-3-Clause
// Role: state that libraries of the system keep once for a process, kept once for the job instead:
// the random sequences of libc and of libgfortran.
// Invariant: it lies in global memory; outside of regions main has it alone, else a lock guards it.
#pragma once

#include <stdlib.h>

#include <cstddef>
#include <cstdint>

namespace hiroba::abi {

struct SharedRows {
    random_data random{};  ///< rand() and random()
    char first_state[128] = {};
    drand48_data drand48{};
    std::uint64_t seedings = 0;  ///< of rand() and random()

    char** environment = nullptr;  ///< of the version; before the first, node 0's
    std::uint64_t variables_version = 0;
    char** variables = nullptr;  ///< the last array that was made, with room for so many entries
    std::size_t variables_max = 0;

    static constexpr unsigned zones_max = 16, zone_bytes = 32;
    char zones[zones_max][zone_bytes] = {};  ///< names that were handed out; the rest are empty

    static constexpr int fortran_words = 4;
    std::uint64_t fortran_seedings = 0;  ///< none: each node's own
    std::uint64_t fortran_seed[fortran_words] = {};
    std::uint32_t fortran_streams = 0;  ///< that threads have taken since
};

/// Node 0 makes them when they are first asked for. Elsewhere not before a region.
SharedRows& shared_rows() noexcept;
/// Another node, before its threads run.
void use_shared_rows(SharedRows& rows) noexcept;

/// For the scope the calling thread has them alone.
class RowsAlone {
public:
    RowsAlone() noexcept;
    RowsAlone(const RowsAlone&) = delete;
    RowsAlone& operator=(const RowsAlone&) = delete;
    ~RowsAlone();

    /// How long the other nodes have kept them from this thread.
    std::uint64_t waited_ns() const noexcept { return waited_ns_; }

private:
    bool locked_;
    std::uint64_t waited_ns_ = 0;
};

}  // namespace hiroba::abi
