// SPDX-License-Identifier: BSD-3-Clause
// Role: `--copy`: sends this hiroba and the program to hosts that lack them. Invariant: what was
// sent lies in a folder below /tmp, of one name on all hosts, and is removed with this object,
// unless the launcher is killed.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "tools/hosts/host_list.hpp"

namespace hiroba::tools {

class Copies {
public:
    Copies() = default;
    Copies(const Copies&) = delete;
    ~Copies();

    /// Copies to each of `hosts`, and writes there where hiroba and the program now are. A job's
    /// `program` is the word that named it. Environment errors name the host.
    /// @param command  ssh, or what stands for it; the hosts need tar and rm
    Result<void> send(const std::string& command, const std::string& program,
                      std::vector<HostPlan>& hosts);

private:
    Result<void> stage(const std::string& program);

    std::string command_;
    std::string folder_;  ///< of links to what is sent, on this host
    std::vector<std::string> hosts_;
};

}  // namespace hiroba::tools
