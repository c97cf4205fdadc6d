// SPDX-License-Identifier: BSD-3-Clause
// Role: SIGBUS and SIGSEGV: asks the targets, else passes on to the program. Runs in the faulting
// thread, on its alternate stack, with all signals blocked but these two.
// Invariant: resolving a fault touches no global memory but the thread's TLS, whose pages the
// kernel may take away at any time: restore() brings them back, and uses none. If it touches other
// global memory, the nested fault finds the first one's address in the thread's context and stops
// the node with both.
#include "dsm/memory/fault_handler.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "base/address_hint.hpp"
#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "base/mapping_count.hpp"
#include "base/record.hpp"
#include "base/thread_context.hpp"
#include "dsm/memory/fault_attached.hpp"
#include "dsm/memory/fault_engine.hpp"
#include "dsm/memory/fault_lock.hpp"
#include "dsm/memory/fault_program.hpp"
#include "dsm/memory/own_tls.hpp"
#include "dsm/memory/page_calls.hpp"
#include "dsm/thread_part.hpp"

namespace hiroba::dsm {
namespace {

constexpr std::size_t targets_max = 64;
/// Handlers of the program run here, and releases and acquires that they cause.
constexpr std::size_t alternate_stack_bytes = std::size_t{256} << 10;
constexpr greg_t page_fault_trap = 14;
constexpr greg_t error_write = 1 << 1;
constexpr greg_t error_fetch = 1 << 4;

constinit std::array<std::atomic<FaultTarget*>, targets_max> targets{};
constinit std::atomic<bool> installed{false};
constinit std::atomic<void (*)(std::uintptr_t, bool) noexcept> explain{nullptr};
constinit std::atomic<bool (*)(std::uintptr_t) noexcept> map_missing{nullptr};
constinit std::atomic<bool (*)(std::uintptr_t, bool) noexcept> forbidden{nullptr};
constinit std::atomic<bool (*)(std::uintptr_t) noexcept> find_code{nullptr};

bool may_be_code(std::uintptr_t address) noexcept {
    if (is_executable(address)) return true;
    const auto find = find_code.load();
    return find != nullptr && is_attached(address) && find(address);
}

bool is_page_fault(int signal, const siginfo_t& info, const ucontext_t& context) noexcept {
    const bool code = signal == SIGBUS ? info.si_code == BUS_ADRERR
                                       : info.si_code == SEGV_MAPERR || info.si_code == SEGV_ACCERR;
    return code && context.uc_mcontext.gregs[REG_TRAPNO] == page_fault_trap;
}

bool is_fetch(const ucontext_t& context) noexcept {
    return (context.uc_mcontext.gregs[REG_ERR] & error_fetch) != 0;
}

/// A load or store that a page table entry refused, or a fetch of code where it may lie. Everything
/// else (kill, bad instructions, execution of data, poisoned memory) is the program's affair.
bool is_access(int signal, const siginfo_t& info, const ucontext_t& context) noexcept {
    return is_page_fault(signal, info, context) &&
           (!is_fetch(context) || may_be_code(reinterpret_cast<std::uintptr_t>(info.si_addr)));
}

/// Uses no TLS: where the faulting thread's lies in global memory, its page may be the one.
bool restore(std::uintptr_t address) noexcept {
    for (const std::atomic<FaultTarget*>& slot : targets) {
        // Acquire: pairs with the release in add_fault_target().
        FaultTarget* const target = slot.load(std::memory_order_acquire);
        if (target != nullptr && target->restore(address)) return true;
    }
    return false;
}

/// The address is noted meanwhile: a fault inside stops the node instead of coming back for ever.
bool ask_targets(std::uintptr_t address, bool write, const ucontext_t& context) noexcept {
    const auto instruction = static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
    if (address < page_bytes) return false;
    ThreadContext& thread = this_thread();
    ThreadPart& part = thread_part(thread);
    if (part.fault_address != 0)
        fatal("fault at 0x%lx (instruction 0x%lx) while resolving the fault at 0x%lx", address,
              instruction, part.fault_address);
    part.fault_address = address;
    const std::uint64_t begun_ns = now_ns();
    note_fault_code(instruction);
    thread.mask_before_fault = &context.uc_sigmask;
    bool resolved = false;
    for (const std::atomic<FaultTarget*>& slot : targets) {
        // Acquire: pairs with the release in add_fault_target().
        FaultTarget* const target = slot.load(std::memory_order_acquire);
        if (target != nullptr && (resolved = target->on_fault(address, write))) break;
    }
    thread.mask_before_fault = nullptr;
    part.fault_address = 0;
    part.missed_ns += now_ns() - begun_ns;
    return resolved;
}

/// A refused access to an attached range is a wild access of the program, to a stack guard for
/// instance. Without hiroba it would be a SIGSEGV, so it is one. The line is for a process without
/// a launcher that tells more.
void refuse_attached(std::uintptr_t address, bool write, siginfo_t info,
                     ucontext_t& context) noexcept {
    const auto instruction = static_cast<unsigned long>(context.uc_mcontext.gregs[REG_RIP]);
    info.si_signo = SIGSEGV;
    info.si_code = SEGV_ACCERR;
    if (pass_to_program(SIGSEGV, info, context) == Verdict::dies)
        say("SIGSEGV: %s of 0x%lx, which is no memory of the program, by the instruction at 0x%lx",
            write ? "write" : "read", address, instruction);
}

/// A signal that is about no access. Where a page of data is missing the kernel asks for it before
/// it refuses to execute what is there: to the program it is there.
void pass_on(int signal, siginfo_t info, ucontext_t& context) noexcept {
    if (signal == SIGBUS && is_page_fault(signal, info, context) && is_fetch(context) &&
        is_attached(reinterpret_cast<std::uintptr_t>(info.si_addr))) {
        signal = info.si_signo = SIGSEGV;
        info.si_code = SEGV_ACCERR;
    }
    pass_to_program(signal, info, context);
}

/// An access to what is no memory of the job: the program's affair, about which something may be
/// known.
void refuse_foreign(int signal, std::uintptr_t address, bool write, const siginfo_t& info,
                    ucontext_t& context) noexcept {
    if (pass_to_program(signal, info, context) == Verdict::lives) return;
    if (const auto say_more = explain.load()) say_more(address, write);
}

void handle(int signal, siginfo_t* info, void* raw_context) {
    auto& context = *static_cast<ucontext_t*>(raw_context);
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    const bool accesses = is_access(signal, *info, context);
    // Before anything that lies in TLS.
    if (accesses && restore(address)) return;
    const int errno_before = errno;
    if (signal == SIGSEGV && info->si_code == SEGV_MAPERR &&
        is_page_fault(signal, *info, context)) {
        const auto map = map_missing.load();
        const bool mapped = map != nullptr && map(address);
        errno = errno_before;
        if (mapped) return;
    }
    if (!accesses) {
        pass_on(signal, *info, context);
    } else {
        const bool write = (context.uc_mcontext.gregs[REG_ERR] & error_write) != 0;
        page_calls.note_fault();
        const auto forbids = forbidden.load();
        const bool refused = signal == SIGSEGV && info->si_code == SEGV_ACCERR &&
                             forbids != nullptr && is_attached(address) && forbids(address, write);
        if (refused || !ask_targets(address, write, context)) {
            if (is_attached(address))
                refuse_attached(address, write, *info, context);
            else
                refuse_foreign(signal, address, write, *info, context);
        }
    }
    errno = errno_before;
}

}  // namespace

void install_fault_handlers() noexcept {
    if (installed.exchange(true, std::memory_order_seq_cst)) return;
    measure_tls();
    struct sigaction ours {};
    ours.sa_sigaction = handle;
    // Not blocked inside itself (SA_NODEFER): a nested fault is to be reported, not to kill.
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
    sigfillset(&ours.sa_mask);
    sigdelset(&ours.sa_mask, SIGBUS);
    sigdelset(&ours.sa_mask, SIGSEGV);
    sigdelset(&ours.sa_mask, SIGSYS);  // examined system calls, which kill where it is blocked
    for (const int signal : {SIGBUS, SIGSEGV}) {
        struct sigaction before {};
        set_kernel_action(signal, ours, &before);
        adopt_program_action(signal, before);
    }
}

void explain_deaths(void (*say_more)(std::uintptr_t address, bool write) noexcept) noexcept {
    explain.store(say_more);
}

void forbid_accesses(bool (*is_forbidden)(std::uintptr_t address, bool write) noexcept) noexcept {
    forbidden.store(is_forbidden);
}

void map_missing_by(bool (*map)(std::uintptr_t address) noexcept) noexcept {
    map_missing.store(map);
}

void find_code_by(bool (*find)(std::uintptr_t address) noexcept) noexcept { find_code.store(find); }

void add_fault_target(FaultTarget& target) noexcept {
    install_fault_handlers();
    for (std::atomic<FaultTarget*>& slot : targets) {
        FaultTarget* empty = nullptr;
        // Release: pairs with the acquire in ask_targets().
        if (slot.compare_exchange_strong(empty, &target, std::memory_order_release)) return;
    }
    fatal("more than %lu fault targets in one process", targets_max);
}

void remove_fault_target(FaultTarget& target) noexcept {
    for (std::atomic<FaultTarget*>& slot : targets) {
        FaultTarget* wanted = &target;
        if (slot.compare_exchange_strong(wanted, nullptr)) return;
    }
}

void FaultEngine::begin_faults(FaultTarget& target) noexcept { add_fault_target(target); }
void FaultEngine::end_faults(FaultTarget& target) noexcept { remove_fault_target(target); }

// Far from code, and from where a library may be about to be opened by another thread.
AddressRange map_alternate_stack() noexcept {
    const std::size_t bytes = page_bytes + alternate_stack_bytes;
    const long memory = kernel_call(SYS_mmap, address_hint(bytes), bytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    // The page below the stack is never accessible: an overflow must not reach a neighbour.
    if (kernel_failed(memory) || kernel_call(SYS_mprotect, memory, page_bytes, PROT_NONE) != 0)
        die_without_memory("an alternate signal stack", bytes,
                           kernel_failed(memory) ? static_cast<int>(-memory) : ENOMEM);
    return {static_cast<std::uintptr_t>(memory) + page_bytes, alternate_stack_bytes};
}

void use_alternate_stack(AddressRange memory) noexcept {
    stack_t stack{};
    stack.ss_sp = reinterpret_cast<void*>(memory.address);
    stack.ss_size = memory.bytes;
    const long result = kernel_call(SYS_sigaltstack, &stack, 0);
    HIROBA_INVARIANT(result == 0, "sigaltstack gave %ld", result);
    this_thread().signal_stack = memory.address;
    this_thread().signal_stack_bytes = memory.bytes;
}

void give_alternate_stack() noexcept { use_alternate_stack(map_alternate_stack()); }

}  // namespace hiroba::dsm
