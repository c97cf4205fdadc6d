// SPDX-License-Identifier: BSD-3-Clause
// Role: the recording of a job as its launcher has it: begun before the nodes, brought together
// when they have ended.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
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
    /// @param status  of the job
    void finish(int status, std::uint32_t threads);

private:
    std::string path_;
    RecordedJob job_;
};

}  // namespace hiroba::tools
