// SPDX-License-Identifier: BSD-3-Clause
// Role: collects what only the node knows of a crash, and hands it to the launcher. SIGSEGV and
// SIGBUS come from the fault handler; SIGFPE, SIGILL and SIGABRT have a handler here wherever the
// program leaves them at their default action.
// Invariant: everything here runs in a thread that is about to die, on its alternate stack: calls
// go to the kernel, nothing is allocated, no latch is taken.
#include "abi/libc/process/crashes.hpp"

#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/process/core_memory.hpp"
#include "abi/libc/process/first_thread.hpp"
#include "abi/libc/process/job_end.hpp"
#include "abi/world.hpp"
#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "base/thread_context.hpp"
#include "dsm/memory/fault_attached.hpp"
#include "dsm/memory/fault_program.hpp"
#include "dsm/memory/kernel_calls.hpp"
#include "net/bootstrap/crash.hpp"

namespace hiroba::abi {
namespace {

using Action = struct sigaction;

/// How long the launcher may take to look.
constexpr std::uint64_t look_limit_ns = 2'000'000'000;
constexpr greg_t page_fault_trap = 14;
constexpr greg_t error_write = 1 << 1;
constexpr greg_t error_fetch = 1 << 4;

constexpr std::array told_signals = {SIGFPE, SIGILL, SIGABRT};
constinit Action telling{};                     ///< of these, where the program has the default
constinit std::atomic<long> telling_thread{0};  ///< the first that crashed; 0: none
constinit std::atomic<bool> over{false};        ///< the launcher has read it, or is gone

/// Sent by the kernel, or by this process to itself. What others send is no crash.
bool is_own(const siginfo_t& info) noexcept {
    return info.si_code > 0 || info.si_pid == dsm::kernel_call(SYS_getpid) ||
           info.si_pid == process_for_program();
}

/// The registers by their DWARF numbers.
void copy_registers(const ucontext_t& context, net::CrashBody& crash) noexcept {
    constexpr std::array order = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                  REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    static_assert(order.size() == net::CrashBody::registers_count);
    for (std::size_t i = 0; i < order.size(); ++i)
        crash.registers[i] = static_cast<std::uint64_t>(context.uc_mcontext.gregs[order[i]]);
}

net::CrashAccess access_of(const ucontext_t& context) noexcept {
    const auto& registers = context.uc_mcontext.gregs;
    if (registers[REG_TRAPNO] != page_fault_trap) return net::CrashAccess::none;
    if ((registers[REG_ERR] & error_fetch) != 0) return net::CrashAccess::execute;
    return (registers[REG_ERR] & error_write) != 0 ? net::CrashAccess::write
                                                   : net::CrashAccess::read;
}

/// What the address map and the fault path know of the address.
void find_place(const dsm::AddressMap& map, net::CrashBody& crash) noexcept {
    const dsm::AddressRange stacks{map.stack_slice(0).address,
                                   map.early_arena().address - map.stack_slice(0).address};
    const bool guard = dsm::is_touched_guard(crash.address);
    if (stacks.contains(crash.address)) {
        const std::uint64_t thread = (crash.address - stacks.address) / map.shape().stack_bytes;
        crash.place = guard ? net::CrashPlace::stack_guard : net::CrashPlace::stack;
        crash.place_node = static_cast<std::uint32_t>(thread / map.shape().threads_per_node);
        crash.place_thread = static_cast<std::uint32_t>(thread % map.shape().threads_per_node);
    } else if (guard) {
        crash.place = net::CrashPlace::thread_guard;
    } else if (map.main_range().contains(crash.address)) {
        crash.place = net::CrashPlace::heap;
    }
}

/// The headers' versions of getc_unlocked() and its kin look into the stream themselves.
void refuse_other_heap(std::uintptr_t address) noexcept {
    const auto owner = foreign_private_heap(reinterpret_cast<const void*>(address));
    if (!owner) return;
    die(exit_environment,
        "use of 0x%lx in the heap of node %u's libc: a FILE that it has opened is used here "
        "without a call, as getc_unlocked and feof_unlocked are inlined. Compile with "
        "-D__NO_INLINE__, or use getc and feof",
        address, owner->value);
}

/// The process is about to end by the first thread's crash: the launcher must see that one whole.
void await_first() noexcept {
    const std::uint64_t deadline_ns = now_ns() + look_limit_ns;
    const timespec moment{0, 1'000'000};
    while (!over.load() && now_ns() < deadline_ns) dsm::kernel_call(SYS_nanosleep, &moment, 0);
}

bool tell(int signal, const siginfo_t& info, const ucontext_t& context) noexcept {
    const World* const node = world();
    if (node == nullptr || !is_node_process() || !is_own(info)) return false;
    const CallsOfOwnLibrary calls;
    const long thread = dsm::kernel_call(SYS_gettid);
    long first = 0;
    if (!telling_thread.compare_exchange_strong(first, thread)) {
        if (first != thread) await_first();
        return first != thread;
    }
    net::CrashBody crash;
    crash.signal = signal;
    crash.code = info.si_code;
    crash.thread = static_cast<std::uint64_t>(thread);
    copy_registers(context, crash);
    if ((signal == SIGSEGV || signal == SIGBUS) && info.si_code > 0) {
        crash.access = access_of(context);
        crash.address = reinterpret_cast<std::uintptr_t>(info.si_addr);
        find_place(*node->map, crash);
        refuse_other_heap(crash.address);
    }
    put_memory_into_core(*node->map);
    const bool heard = net::report_crash(node->job, crash, look_limit_ns);
    over.store(true);
    return heard;
}

void on_crash(int signal, siginfo_t* info, void* context) {
    const int errno_before = errno;
    dsm::die_on_return(signal, *info, *static_cast<ucontext_t*>(context));
    errno = errno_before;
}

}  // namespace

void tell_of_crashes() noexcept {
    prepare_core_memory();
    telling.sa_sigaction = &on_crash;
    telling.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigfillset(&telling.sa_mask);
    for (const int fault : {SIGBUS, SIGSEGV, SIGSYS}) sigdelset(&telling.sa_mask, fault);
    dsm::tell_of_deaths(&tell);
    for (const int number : told_signals) {
        Action found{};
        dsm::set_kernel_action(number, telling, &found);
        // Ignored since before the start: it stays so.
        if (found.sa_handler != SIG_DFL) dsm::set_kernel_action(number, found, nullptr);
    }
}

const Action* action_that_tells(int number) noexcept {
    if (telling.sa_sigaction == nullptr) return nullptr;
    for (const int each : told_signals)
        if (each == number) return &telling;
    return nullptr;
}

bool is_action_that_tells(int number, const Action& action) noexcept {
    const Action* const ours = action_that_tells(number);
    return ours != nullptr && action.sa_sigaction == ours->sa_sigaction;
}

}  // namespace hiroba::abi
