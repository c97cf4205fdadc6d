// SPDX-License-Identifier: BSD-3-Clause
// Role: as whom the process acts: user, group and further groups. Interposes the calls that change
// them.
// Invariant: node 0's are the program's and travel with the next region (process_state.hpp). In a
// region no call may change them: it would hold on one node alone.
#pragma once

#include <sys/types.h>

namespace hiroba::abi {

struct UserIds {
    static constexpr int groups_max = 1024;

    uid_t user[3] = {};   ///< real, effective, saved
    gid_t group[3] = {};  ///< likewise
    int groups = 0;
    gid_t further[groups_max] = {};
};

/// This process's. It ends with a line if there are more groups than fit.
UserIds current_ids() noexcept;
bool are_equal(const UserIds& a, const UserIds& b) noexcept;

/// Every thread of this process becomes that; the job ends with a line if it may not.
void become_user(const UserIds& ids) noexcept;

/// Has libc's signal for changing ids come to the threads' private stacks: the kernel cannot write
/// to the program's where these are invalid pages. When there is a second thread.
void prepare_changes_of_ids() noexcept;

}  // namespace hiroba::abi
