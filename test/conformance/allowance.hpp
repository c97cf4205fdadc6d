// SPDX-License-Identifier: BSD-3-Clause
// Role: how long processes may go on, by what they got of the machine: other work on it does not
// use that up, and a hang still ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

namespace hiroba::conformance {

class Allowance {
public:
    /// @param allowed_ns  of a machine with nothing else to do
    /// @param times_slower  than that is this one; where it is emulated, its clocks of processor
    /// time also count what its host spends on others
    Allowance(std::uint64_t allowed_ns, std::size_t processes, std::uint64_t times_slower = 1);

    /// True if `processes` have computed for `allowed_ns` each (of the machine's least, two cores),
    /// so many times that on a slower one, or have hardly computed at all for twice as long: no
    /// other process keeps them from it, they hang. Those that are gone count with what they had
    /// when last looked at.
    bool used_up(const std::vector<pid_t>& processes);

private:
    std::uint64_t allowed_ns_;
    std::uint64_t processes_, times_slower_;
    std::map<pid_t, std::uint64_t> computed_ns_;
    std::uint64_t window_began_ns_, window_computed_ns_ = 0;
};

}  // namespace hiroba::conformance
