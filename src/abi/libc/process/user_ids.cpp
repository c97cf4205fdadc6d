// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/process/user_ids.hpp"

#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "abi/libc/process/process_state.hpp"
#include "abi/libc/real.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "dsm/memory/kernel_calls.hpp"

HIROBA_REAL(setuid);
HIROBA_REAL(setgid);
HIROBA_REAL(seteuid);
HIROBA_REAL(setegid);
HIROBA_REAL(setreuid);
HIROBA_REAL(setregid);
HIROBA_REAL(setresuid);
HIROBA_REAL(setresgid);
HIROBA_REAL(setgroups);
HIROBA_REAL(initgroups);

namespace hiroba::abi {
namespace {

constinit std::atomic<int> death_signal{0};  ///< that the kernel sends when the parent ends

bool become_groups(const UserIds& ids) noexcept {
    const UserIds now = current_ids();
    const bool same =
        std::equal(ids.further, ids.further + ids.groups, now.further, now.further + now.groups);
    return (same || real_setgroups(static_cast<std::size_t>(ids.groups), ids.further) == 0) &&
           real_setresgid(ids.group[0], ids.group[1], ids.group[2]) == 0;
}

bool become_users(const UserIds& ids) noexcept {
    return real_setresuid(ids.user[0], ids.user[1], ids.user[2]) == 0;
}

/// The kernel forgets, with the ids, that the process is to end with its launcher. Any thread can
/// ask for it again.
void stay_bound_to_parent() noexcept {
    const int signal = death_signal.load(std::memory_order_relaxed);  // stored before the threads
    if (signal != 0) dsm::kernel_call(SYS_prctl, PR_SET_PDEATHSIG, signal, 0, 0, 0);
}

/// Makes the change and has it carried to the other nodes.
template <class Change>
int change_ids(const char* call, bool of_program, Change change) noexcept {
    if (!of_program) return change();
    const UserIds before = current_ids();
    const int result = change();
    if (result != 0 || are_equal(before, current_ids())) return result;
    stay_bound_to_parent();
    const World& node = *world();
    if (node.job.self.value != 0 || (node.omp != nullptr && node.omp->place().level > 0))
        die(exit_environment,
            "%s in a parallel region refused: it would hold on node %u alone. Call it outside of "
            "parallel regions, or run on one node (-n 1)",
            call, node.job.self.value);
    user_ids_changed(call);
    return result;
}

}  // namespace

UserIds current_ids() noexcept {
    UserIds ids;
    getresuid(&ids.user[0], &ids.user[1], &ids.user[2]);
    getresgid(&ids.group[0], &ids.group[1], &ids.group[2]);
    ids.groups = getgroups(UserIds::groups_max, ids.further);
    if (ids.groups < 0)
        die(exit_environment, "more than %d groups: %s. Run on one node (-n 1)",
            UserIds::groups_max, strerror(errno));
    return ids;
}

bool are_equal(const UserIds& a, const UserIds& b) noexcept {
    return std::equal(a.user, a.user + 3, b.user) && std::equal(a.group, a.group + 3, b.group) &&
           std::equal(a.further, a.further + a.groups, b.further, b.further + b.groups);
}

// A process that gives rights up changes its groups while they last; one that takes them back, when
// they are there.
void become_user(const UserIds& ids) noexcept {
    if ((become_groups(ids) && become_users(ids)) || (become_users(ids) && become_groups(ids)))
        return stay_bound_to_parent();
    die(exit_environment, "node 0 acts as user %u and group %u, which this node may not: %s",
        ids.user[1], ids.group[1], strerror(errno));
}

void prepare_changes_of_ids() noexcept {
    int signal = 0;
    dsm::kernel_call(SYS_prctl, PR_GET_PDEATHSIG, &signal, 0, 0, 0);
    death_signal.store(signal, std::memory_order_relaxed);
    constexpr int libc_signal = 33;
    struct {
        std::uintptr_t handler;
        std::uint64_t flags;
        std::uintptr_t restorer;
        std::uint64_t mask;
    } action{};
    const long known =
        dsm::kernel_call(SYS_rt_sigaction, libc_signal, 0, &action, sizeof action.mask);
    if (known != 0 || action.handler == 0) return;
    action.flags |= SA_ONSTACK;
    dsm::kernel_call(SYS_rt_sigaction, libc_signal, &action, 0, sizeof action.mask);
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int setuid(uid_t user) noexcept {
    return change_ids("setuid()", HIROBA_CALL_OF_PROGRAM(), [&] { return real_setuid(user); });
}
int setgid(gid_t group) noexcept {
    return change_ids("setgid()", HIROBA_CALL_OF_PROGRAM(), [&] { return real_setgid(group); });
}
int seteuid(uid_t user) noexcept {
    return change_ids("seteuid()", HIROBA_CALL_OF_PROGRAM(), [&] { return real_seteuid(user); });
}
int setegid(gid_t group) noexcept {
    return change_ids("setegid()", HIROBA_CALL_OF_PROGRAM(), [&] { return real_setegid(group); });
}
int setreuid(uid_t real, uid_t effective) noexcept {
    return change_ids("setreuid()", HIROBA_CALL_OF_PROGRAM(),
                      [&] { return real_setreuid(real, effective); });
}
int setregid(gid_t real, gid_t effective) noexcept {
    return change_ids("setregid()", HIROBA_CALL_OF_PROGRAM(),
                      [&] { return real_setregid(real, effective); });
}
int setresuid(uid_t real, uid_t effective, uid_t saved) noexcept {
    return change_ids("setresuid()", HIROBA_CALL_OF_PROGRAM(),
                      [&] { return real_setresuid(real, effective, saved); });
}
int setresgid(gid_t real, gid_t effective, gid_t saved) noexcept {
    return change_ids("setresgid()", HIROBA_CALL_OF_PROGRAM(),
                      [&] { return real_setresgid(real, effective, saved); });
}
int setgroups(size_t count, const gid_t* groups) noexcept {
    return change_ids("setgroups()", HIROBA_CALL_OF_PROGRAM(),
                      [&] { return real_setgroups(count, groups); });
}
int initgroups(const char* user, gid_t group) {
    return change_ids("initgroups()", HIROBA_CALL_OF_PROGRAM(),
                      [&] { return real_initgroups(user, group); });
}

}  // extern "C"
