// SPDX-License-Identifier: BSD-3-Clause
// Role: keeps the program's actions for SIGBUS and SIGSEGV and carries them out.
// Invariant: SIGBUS and SIGSEGV are never blocked while program code runs, whatever its masks say,
// because a fault on global memory must always find our handler.
// How death works: the signal is queued to this thread while it is blocked, and delivered, with the
// default action, at the moment the handler's return restores the mask: the program counter and
// registers are then those of the faulting instruction.
#include "dsm/memory/fault_program.hpp"

#include <array>
#include <atomic>
#include <cstring>

#include "base/fatal.hpp"
#include "base/program_call.hpp"
#include "dsm/memory/fault_engine.hpp"
#include "dsm/memory/fault_handler.hpp"
#include "dsm/memory/fault_lock.hpp"

/// src/dsm/memory/signal_return.S
extern "C" void hiroba_signal_return() noexcept;

namespace hiroba::dsm {
namespace {

struct Slot {
    struct sigaction action;
    bool set_by_program;
};

constinit Latch slots_latch;
constinit std::array<Slot, 2> slots{};
constinit std::atomic<DeathTeller> teller{nullptr};

Slot& slot_of(int signal) noexcept { return slots[signal == SIGSEGV ? 1 : 0]; }

struct sigaction action_of(int signal) noexcept {
    const FaultSafeLock guard{slots_latch};
    Slot& slot = slot_of(signal);
    const struct sigaction action = slot.action;
    if ((action.sa_flags & SA_RESETHAND) != 0) slot.action.sa_handler = SIG_DFL;
    return action;
}

KernelMask kernel_mask(const sigset_t& set) noexcept {
    KernelMask mask;
    std::memcpy(&mask, &set, sizeof mask);  // the kernel's set is the front of the library's
    return mask;
}

/// An action as the kernel takes it.
struct KernelAction {
    void* handler;
    std::uint64_t flags;
    void (*restorer)() noexcept;
    KernelMask mask;
};
constexpr std::uint64_t has_restorer = 0x04000000;  // SA_RESTORER, which libc hides

bool on_alternate_stack(const ucontext_t& context) noexcept {
    const auto pointer = static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
    const auto base = reinterpret_cast<std::uintptr_t>(context.uc_stack.ss_sp);
    return pointer - base < context.uc_stack.ss_size;
}

/// As the kernel would, but on our alternate stack, and with the two signals left open.
void run_handler(const struct sigaction& action, int signal, siginfo_t info,
                 ucontext_t& context) noexcept {
    KernelMask mask = kernel_mask(context.uc_sigmask) | kernel_mask(action.sa_mask);
    change_mask(SIG_SETMASK, mask & all_but_faults);
    if ((action.sa_flags & SA_SIGINFO) != 0)
        call_program(action.sa_sigaction, signal, &info, &context);
    else
        call_program(action.sa_handler, signal);
}

}  // namespace

void set_kernel_action(int signal, const struct sigaction& action, struct sigaction* old) noexcept {
    const KernelAction ours{reinterpret_cast<void*>(action.sa_handler),
                            static_cast<std::uint64_t>(action.sa_flags) | has_restorer,
                            &hiroba_signal_return, kernel_mask(action.sa_mask)};
    KernelAction before{};
    const long result = kernel_call(SYS_rt_sigaction, signal, &ours, &before, sizeof(KernelMask));
    HIROBA_INVARIANT(result == 0, "sigaction of signal %d gave %ld", signal, result);
    if (old == nullptr) return;
    *old = {};
    old->sa_handler = reinterpret_cast<void (*)(int)>(before.handler);
    old->sa_flags = static_cast<int>(before.flags & ~has_restorer);
    std::memcpy(&old->sa_mask, &before.mask, sizeof before.mask);
}

void adopt_program_action(int signal, const struct sigaction& action) noexcept {
    const FaultSafeLock guard{slots_latch};
    Slot& slot = slot_of(signal);
    if (!slot.set_by_program) slot.action = action;
}

void set_program_action(int signal, const void* action, void* old) noexcept {
    install_fault_handlers();
    // The program's structures may lie in global memory: no latch while they are touched.
    struct sigaction wanted {};
    if (action != nullptr) std::memcpy(&wanted, action, sizeof wanted);
    struct sigaction before;
    {
        const FaultSafeLock guard{slots_latch};
        Slot& slot = slot_of(signal);
        before = slot.action;
        if (action != nullptr) slot = {wanted, true};
    }
    if (old != nullptr) std::memcpy(old, &before, sizeof before);
}

Verdict die_on_return(int signal, const siginfo_t& info, ucontext_t& context) noexcept {
    // Before the default action is set: another thread that crashes would end the process by it.
    const DeathTeller tell = teller.load();
    const bool told = tell != nullptr && tell(signal, info, context);
    struct sigaction by_default {};
    by_default.sa_handler = SIG_DFL;
    set_kernel_action(signal, by_default, nullptr);
    change_mask(SIG_BLOCK, mask_of(signal));
    siginfo_t queued = info;
    queued.si_signo = signal;
    const long result = kernel_call(SYS_rt_tgsigqueueinfo, kernel_call(SYS_getpid),
                                    kernel_call(SYS_gettid), signal, &queued);
    HIROBA_INVARIANT(result == 0, "queueing signal %d to this thread gave %ld", signal, result);
    sigdelset(&context.uc_sigmask, signal);
    return told ? Verdict::dies_told : Verdict::dies;
}

void tell_of_deaths(DeathTeller next) noexcept { teller.store(next); }

Verdict pass_to_program(int signal, const siginfo_t& info, ucontext_t& context) noexcept {
    const bool is_sent = info.si_code <= 0;
    const struct sigaction action = action_of(signal);
    const bool ignored = (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN;
    const bool defaulted = (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL;
    if (ignored && is_sent) return Verdict::lives;
    // A fault in the program's handler for faults: it runs on our alternate stack, with the signal
    // blocked as far as the program knows, and the kernel would end the process.
    const bool in_handler =
        !is_sent && on_alternate_stack(context) && (action.sa_flags & SA_NODEFER) == 0;
    if (ignored || defaulted || in_handler) return die_on_return(signal, info, context);
    run_handler(action, signal, info, context);
    return Verdict::lives;
}

}  // namespace hiroba::dsm
