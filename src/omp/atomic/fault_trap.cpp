// SPDX-License-Identifier: BSD-3-Clause
// Role: finds the int3 in a sorted table and moves the instruction pointer to its trampoline.
// Invariant: everything in on_trap() is async-signal-safe.
#include "omp/atomic/fault_trap.hpp"

#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>

#include "base/program_call.hpp"
#include "omp/atomic/generated_atomics.hpp"

namespace hiroba::omp {
namespace {

using TrapTable = std::vector<TrapSite>;

std::atomic<const TrapTable*> table{nullptr};
struct sigaction program_action {};

bool before(const TrapSite& a, const TrapSite& b) { return a.address < b.address; }

/// Does what would have happened without us. The trap is over: int3 has been executed.
void forward(int number, siginfo_t* info, void* machine) {
    if (program_action.sa_handler == SIG_IGN && info->si_code <= 0) return;
    if (program_action.sa_handler != SIG_DFL && program_action.sa_handler != SIG_IGN) {
        if (program_action.sa_flags & SA_SIGINFO) {
            call_program(program_action.sa_sigaction, number, info, machine);
        } else {
            call_program(program_action.sa_handler, number);
        }
        return;
    }
    // SA_NODEFER: the signal is not blocked here and ends the process at once.
    signal(number, SIG_DFL);
    raise(number);
}

void on_trap(int number, siginfo_t* info, void* machine) {
    greg_t& instruction = static_cast<ucontext_t*>(machine)->uc_mcontext.gregs[REG_RIP];
    const TrapSite wanted{static_cast<std::uintptr_t>(instruction) - 1, 0};
    // Pairs with the release store in add_trap_sites().
    const TrapTable& sites = *table.load(std::memory_order_acquire);
    const auto found = std::lower_bound(sites.begin(), sites.end(), wanted, before);
    if (found != sites.end() && found->address == wanted.address) {
        instruction = static_cast<greg_t>(found->trampoline);
        return;
    }
    const int errno_before = errno;
    const bool carried_out = info->si_code == SI_KERNEL && carry_out_marked(machine);
    errno = errno_before;
    if (!carried_out) forward(number, info, machine);
}

}  // namespace

Result<void> add_trap_sites(const std::vector<TrapSite>& sites) {
    const TrapTable* old = table.load(std::memory_order_relaxed);
    auto* grown = new TrapTable(old != nullptr ? *old : TrapTable{});
    grown->insert(grown->end(), sites.begin(), sites.end());
    std::sort(grown->begin(), grown->end(), before);
    // Pairs with the acquire load in on_trap(). The old table leaks: a handler may be reading it.
    table.store(grown, std::memory_order_release);
    if (old != nullptr) return {};

    struct sigaction action {};
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK | SA_RESTART;
    if (sigaction(SIGTRAP, &action, &program_action) != 0) {
        return Error{ErrorKind::internal,
                     std::string("sigaction(SIGTRAP) failed: ") + strerror(errno)};
    }
    return {};
}

void set_program_trap_action(const void* action, void* old) noexcept {
    if (table.load(std::memory_order_relaxed) == nullptr) {
        // No handler of ours yet; add_trap_sites() takes over what is found then.
        sigaction(SIGTRAP, static_cast<const struct sigaction*>(action),
                  static_cast<struct sigaction*>(old));
        return;
    }
    if (old != nullptr) memcpy(old, &program_action, sizeof program_action);
    if (action != nullptr) memcpy(&program_action, action, sizeof program_action);
}

}  // namespace hiroba::omp
