// SPDX-License-Identifier: BSD-3-Clause
// Role: the recording of a job as its launcher has it: begun before the nodes, brought together
// when they have ended.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "net/bootstrap/control_packet.hpp"
#include "tools/report/archive.hpp"

namespace hiroba::tools {

/// Does nothing where HIROBA_RECORD is not set.
class JobRecording {
public:
    /// Makes the name in HIROBA_RECORD one that nodes understand wherever they run.
    static void make_name_absolute();
    static Result<JobRecording> begin(const std::vector<std::string>& command, std::uint32_t nodes,
                                      std::uint32_t threads);
    bool is_on() const { return !path_.empty(); }
    /// Also says which lines raced, as far as the recording tells.
    /// @param status  of the job
    /// @param races   that were told
    void finish(int status, std::uint32_t threads, std::span<const net::RaceBody> races);

private:
    std::string path_;
    RecordedJob job_;
};

}  // namespace hiroba::tools
