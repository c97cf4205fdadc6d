// SPDX-License-Identifier: BSD-3-Clause
// Role: see signal_masks.hpp; interposes the calls by which the program changes a mask.
// Invariant: as libc's own: -1 and errno, or the error number.
#include "abi/libc/process/signal_masks.hpp"

#include <signal.h>

#include <cerrno>
#include <cstring>

#include "abi/libc/process/signals.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/threads/kept_by_threads.hpp"
#include "omp/process/node_threads.hpp"

HIROBA_REAL(sigprocmask);
HIROBA_REAL(pthread_sigmask);
HIROBA_REAL(sigsuspend);

namespace hiroba::abi {
namespace {

constinit thread_local ClosedSignals closed;
/// What `closed` began with: a thread that becomes another begins with it again.
constinit thread_local KernelMask kept_closed = 0;

/// libc ends threads and changes ids by these.
constexpr KernelMask of_libc = dsm::mask_of(32) | dsm::mask_of(33);

KernelMask kernel_mask() noexcept { return dsm::change_mask(SIG_BLOCK, 0); }
void set_kernel_mask(KernelMask mask) noexcept { dsm::change_mask(SIG_SETMASK, mask); }

KernelMask word_of(const sigset_t& set) noexcept {
    KernelMask word;
    std::memcpy(&word, &set, sizeof word);
    return word;
}

/// @return 0 or an error number
int change(int how, const sigset_t* set, sigset_t* old) noexcept {
    if (set != nullptr && how != SIG_BLOCK && how != SIG_UNBLOCK && how != SIG_SETMASK)
        return EINVAL;
    // The program's sets may lie in global memory: read before, and written after the change.
    const KernelMask given = set != nullptr ? word_of(*set) & ~of_libc : 0;
    const KernelMask kernel = kernel_mask(), before = closed.shown(kernel);
    if (set != nullptr) set_kernel_mask(closed.change(how, given, kernel));
    if (old != nullptr) {
        sigemptyset(old);
        std::memcpy(old, &before, sizeof before);
    }
    return 0;
}

}  // namespace

void keep_signals_closed(const sigset_t& program) noexcept {
    omp::block_asynchronous_signals();
    kept_closed = kernel_mask();
    closed.begin(kept_closed, word_of(program));
}

void keep_child_signal_closed(const sigset_t& program) noexcept {
    kept_closed = dsm::mask_of(SIGCHLD);
    set_kernel_mask(closed.begin(kept_closed, word_of(program)));
}

KernelMask program_mask() noexcept { return closed.shown(kernel_mask()); }

KernelMask hidden_mask() noexcept {
    const KernelMask kernel = kernel_mask();
    return kernel & ~closed.shown(kernel);
}

void begin_with_mask(KernelMask mask) noexcept { set_kernel_mask(closed.begin(kept_closed, mask)); }

KernelMask change_program_mask(int how, KernelMask given, KernelMask kernel) noexcept {
    return closed.change(how, given, kernel);
}

KernelMask shown_mask(KernelMask kernel) noexcept { return closed.shown(kernel); }

void close_again(int number, ucontext_t& context) noexcept {
    KernelMask mask;
    std::memcpy(&mask, &context.uc_sigmask, sizeof mask);
    mask = closed.close_again(dsm::mask_of(number), mask);
    std::memcpy(&context.uc_sigmask, &mask, sizeof mask);
}

// What this thread does until then takes the signals that are always open.
ProgramMask::ProgramMask() noexcept : kernel_(kernel_mask()) {
    const KernelMask inherited = closed.shown(kernel_) & ~always_open;
    differs_ = inherited != kernel_;
    if (differs_) set_kernel_mask(inherited);
}

ProgramMask::~ProgramMask() {
    if (differs_) set_kernel_mask(kernel_);
}

ChangedMask::ChangedMask(KernelMask mask) noexcept : before_(program_mask()) {
    set_kernel_mask(closed.change(SIG_SETMASK, mask & ~of_libc, kernel_mask()));
}

ChangedMask::~ChangedMask() { set_kernel_mask(closed.change(SIG_SETMASK, before_, kernel_mask())); }

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int sigprocmask(int how, const sigset_t* set, sigset_t* old) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_sigprocmask(how, set, old);
    if (set != nullptr) note_kept_by_thread();
    const int failure = change(how, set, old);
    if (failure == 0) return 0;
    errno = failure;
    return -1;
}

int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_pthread_sigmask(how, set, old);
    if (set != nullptr) note_kept_by_thread();
    return change(how, set, old);
}

int sigsuspend(const sigset_t* set) {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_sigsuspend(set);
    sigset_t room;
    return real_sigsuspend(without_faults(set, room));
}

}  // extern "C"
