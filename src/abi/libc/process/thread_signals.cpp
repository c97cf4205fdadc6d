// SPDX-License-Identifier: BSD-3-Clause
// Role: see thread_signals.hpp.
// Invariant: threads and letters lie in private memory and are found without a latch: senders may
// be signal handlers and threads that serve other nodes.
#include "abi/libc/process/thread_signals.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "abi/libc/calls/interruptions.hpp"
#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/files/remote_files.hpp"
#include "abi/libc/process/first_thread.hpp"
#include "abi/libc/process/job_end.hpp"
#include "abi/libc/process/signal_masks.hpp"
#include "abi/libc/process/signals.hpp"
#include "abi/libc/threads/cancellation.hpp"
#include "abi/libc/threads/thread_stacks.hpp"
#include "abi/world.hpp"
#include "base/atomic_window.hpp"
#include "base/fatal.hpp"
#include "base/thread_context.hpp"
#include "dsm/memory/fault_program.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::abi {
namespace {

using dsm::kernel_call;
using dsm::mask_of;

constexpr std::size_t info_bytes = 128;
static_assert(sizeof(siginfo_t) == info_bytes);
/// libc ends threads and changes ids by these two.
constexpr int libc_first = 32, libc_last = 33;
/// The latter, which no thread blocks: libc sends it by tgkill(), and ignores all others.
constexpr int carrier = libc_last;

/// A thread that runs the program, in a list that only grows; used by one after the other.
struct ProgramThread {
    std::atomic<pid_t> id{0};  ///< 0: free
    std::atomic<pthread_t> name{0};
    int timer = -1;  ///< raises the carrier once more; the thread's own, as the next one
    bool comes_back = false;
    ProgramThread* next = nullptr;
};
constinit std::atomic<ProgramThread*> threads{nullptr};

enum class Stage : std::uint32_t { free, written, waiting, read };
struct Letter {
    std::atomic<Stage> stage{Stage::free};
    std::atomic<pid_t> to{0};
    std::atomic<std::uint64_t> order{0};
    siginfo_t info{};
};
constexpr std::size_t letters_max = 256;
constinit Letter letters[letters_max];
constinit std::atomic<std::uint64_t> letters_so_far{0};
constinit std::atomic<std::uint32_t> waiting{0};
/// What handlers of the program that run in this thread block.
constinit thread_local KernelMask handling = 0;
constinit thread_local std::uint64_t begun = 0;         ///< handlers
constinit thread_local std::uint64_t begun_to_end = 0;  ///< those without SA_RESTART
/// Goes with the carrier to a thread that serves other nodes.
constinit std::byte end_of_service{};

pid_t own_id() noexcept { return static_cast<pid_t>(kernel_call(SYS_gettid)); }

ProgramThread* find_by_id(pid_t id) noexcept {
    for (ProgramThread* each = threads.load(); each != nullptr; each = each->next)
        if (each->id.load() == id) return each;
    return nullptr;
}

/// @param name  0: by `id`
pid_t find_id(pthread_t name, pid_t id) noexcept {
    for (const ProgramThread* each = threads.load(); each != nullptr; each = each->next) {
        const pid_t found = each->id.load();
        if (found != 0 && (name != 0 ? each->name.load() == name : found == id)) return found;
    }
    return 0;
}

/// A record that no thread has, with this thread's number.
ProgramThread* take_record(pid_t id) noexcept {
    for (ProgramThread* each = threads.load(); each != nullptr; each = each->next) {
        pid_t nobody = 0;
        if (each->id.compare_exchange_strong(nobody, id)) return each;
    }
    auto* const made = new (std::nothrow) ProgramThread;
    if (made == nullptr) return nullptr;
    made->id.store(id);
    made->next = threads.load();
    while (!threads.compare_exchange_weak(made->next, made)) {
    }
    return made;
}

/// Signals of the classic kind do not queue: one that waits stands for the next.
Letter* find_waiting(pid_t to, int number) noexcept {
    for (Letter& each : letters) {
        if (each.stage.load() == Stage::waiting && each.to.load() == to &&
            each.info.si_signo == number)
            return &each;
    }
    return nullptr;
}

/// nullptr: as many wait as there is room for.
Letter* write_letter(pid_t to, const siginfo_t& info) noexcept {
    for (Letter& each : letters) {
        Stage none = Stage::free;
        if (!each.stage.compare_exchange_strong(none, Stage::written)) continue;
        each.to.store(to);
        each.order.store(letters_so_far.fetch_add(1));
        each.info = info;
        waiting.fetch_add(1);
        each.stage.store(Stage::waiting);
        return &each;
    }
    return nullptr;
}

void discard(Letter& letter) noexcept {
    waiting.fetch_sub(1);
    letter.stage.store(Stage::free);
}

/// The oldest one that waits for the calling thread; it is the caller's then.
Letter* take_letter(pid_t self) noexcept {
    for (;;) {
        Letter* oldest = nullptr;
        for (Letter& each : letters) {
            if (each.stage.load() == Stage::waiting && each.to.load() == self &&
                (oldest == nullptr || each.order.load() < oldest->order.load()))
                oldest = &each;
        }
        if (oldest == nullptr) return nullptr;
        Stage expected = Stage::waiting;
        if (oldest->stage.compare_exchange_strong(expected, Stage::read)) return oldest;
    }
}

/// The kernel's own call: the signal is pending in the thread when it returns.
long queue(pid_t to, int number, const siginfo_t& info) noexcept {
    return kernel_call(SYS_rt_tgsigqueueinfo, kernel_call(SYS_getpid), to, number, &info);
}

long raise_carrier(pid_t to, void* value = letters) noexcept {
    siginfo_t info{};
    info.si_signo = carrier;
    info.si_code = SI_QUEUE;
    info.si_value.sival_ptr = value;
    return queue(to, carrier, info);
}

/// Raises the carrier in the calling thread in a millisecond: until then it may have left the
/// runtime.
void come_back_later(pid_t self) noexcept {
    ProgramThread* const thread = find_by_id(self);
    if (thread == nullptr) return;
    if (thread->timer < 0) {
        sigevent event{};
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = carrier;
        event.sigev_value.sival_ptr = letters;
        event._sigev_un._tid = self;
        if (kernel_call(SYS_timer_create, CLOCK_MONOTONIC, &event, &thread->timer) != 0) {
            thread->timer = -1;
            return;
        }
    }
    const itimerspec soon{{0, 0}, {0, 1'000'000}};
    kernel_call(SYS_timer_settime, thread->timer, 0, &soon, 0);
    thread->comes_back = true;
}

/// It is not interrupted for nothing later.
void is_back(pid_t self) noexcept {
    ProgramThread* const thread = find_by_id(self);
    if (thread == nullptr || !thread->comes_back) return;
    thread->comes_back = false;
    const itimerspec never{};
    kernel_call(SYS_timer_settime, thread->timer, 0, &never, 0);
}

/// Whether the interrupted code is the runtime's, or bars its way.
bool is_busy(const ThreadContext& context) noexcept {
    const AtomicWindow* const window = own_atomic_window;
    const bool goes_by = window != nullptr && window->page.load(std::memory_order_relaxed) != 0;
    return context.in_runtime || context.mask_before_fault != nullptr || goes_by;
}

/// The kernel was to repeat a call behind the carrier. A handler that is without SA_RESTART ends
/// it.
void end_call_that_waits(ucontext_t& context, bool also_futex = false) noexcept {
    constexpr unsigned char instruction[] = {0x0f, 0x05};  // syscall
    greg_t* const registers = context.uc_mcontext.gregs;
    const bool ends = endings_of(registers[REG_RAX]) == Endings::by_some_handlers ||
                      (also_futex && registers[REG_RAX] == SYS_futex);
    if (!ends || std::memcmp(reinterpret_cast<const void*>(registers[REG_RIP]), instruction,
                             sizeof instruction) != 0)
        return;
    registers[REG_RAX] = -EINTR;
    registers[REG_RIP] += sizeof instruction;
}

bool is_on_signal_stack(const ThreadContext& context, const ucontext_t& interrupted) noexcept {
    const auto at = static_cast<std::uintptr_t>(interrupted.uc_mcontext.gregs[REG_RSP]);
    return at - context.signal_stack < context.signal_stack_bytes;
}

/// The kernel delivers it when the handler of the carrier returns, or keeps it pending.
void hand_over(const siginfo_t& info, pid_t self, ucontext_t& context) noexcept {
    const int number = info.si_signo;
    const KernelMask bit = mask_of(number);
    KernelMask mask;
    std::memcpy(&mask, &context.uc_sigmask, sizeof mask);
    const bool is_blocked = ((shown_mask(mask) | (mask & handling)) & bit) != 0;
    if (!is_blocked && (bit & always_open) == 0) {
        dsm::change_mask(SIG_BLOCK, bit);
        mask &= ~bit;
        std::memcpy(&context.uc_sigmask, &mask, sizeof mask);
        if (!handler_restarts_calls(number)) end_call_that_waits(context);
    }
    queue(self, number, info);
}

/// @param name  0: by `id`. @return 0 or a negated error number
long send_on_this_node(pthread_t name, pid_t id, int number, const siginfo_t& info) noexcept {
    const bool is_starting = number == cancels && is_thread_starting(name);
    const pid_t to = find_id(name, id);
    if (to == 0) return is_starting ? -EAGAIN : -ESRCH;
    if (number == 0) return 0;
    if (number < libc_first && find_waiting(to, number) != nullptr) return 0;
    Letter* const letter = write_letter(to, info);
    if (letter == nullptr) return -EAGAIN;
    const long result = raise_carrier(to);
    Stage expected = Stage::waiting;
    if (result != 0 && letter->stage.compare_exchange_strong(expected, Stage::read))
        discard(*letter);
    return result;
}

// Not inlined, so that test/cluster/switched_off.py can switch it off.
[[gnu::noinline]] long send_to(NodeId node, pthread_t name, pid_t id, int number,
                               const siginfo_t& info) noexcept {
    const CallArguments words{{static_cast<long>(name), id, number}};
    return world()->files->call(node, static_cast<std::int64_t>(ThreadCall::send_signal), words, -1,
                                std::as_bytes(std::span(&info, 1)), {});
}

/// Asks every other node. @return -ESRCH: no node has such a thread
long send_elsewhere(pthread_t name, pid_t id, int number, const siginfo_t& info) noexcept {
    for (std::uint32_t node = 0; node < world()->job.nodes; ++node) {
        if (NodeId{node} == world()->job.self) continue;
        const long result = send_to(NodeId{node}, name, id, number, info);
        if (result != -ESRCH) return result;
    }
    return -ESRCH;
}

void take_letters(ucontext_t& context) noexcept {
    const ThreadContext* const thread = this_thread_if_known();
    if (thread == nullptr) return;
    const pid_t self = own_id();
    if (is_busy(*thread)) return come_back_later(self);
    if (!is_on_signal_stack(*thread, context)) handling = 0;  // left by siglongjmp()
    is_back(self);
    world()->memory->flush();  // what the sender has written before is there for the handler
    while (Letter* const letter = take_letter(self)) {
        const siginfo_t sent = letter->info;
        discard(*letter);
        if (sent.si_signo == cancels)
            ask_for_cancellation();
        else
            hand_over(sent, self, context);
    }
}

/// True: the interrupted thread is to be cancelled where it is.
bool is_to_be_cancelled(ucontext_t& context) noexcept {
    const ThreadContext* const thread = this_thread_if_known();
    if (!is_cancellation_waiting() || thread == nullptr || is_busy(*thread)) return false;
    const auto at = static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
    const Cancelling found = look_at_cancellation(at);
    if (found == Cancelling::now) return true;
    if (found == Cancelling::ends_call) {
        ++begun;
        ++begun_to_end;
        end_call_that_waits(context, true);
    }
    come_back_later(own_id());
    return false;
}

constinit struct sigaction of_libc {};

/// What the process's first thread is to make pending.
struct ForFirst {
    std::atomic<Stage> stage{Stage::free};
    siginfo_t info{};
};
constinit ForFirst for_first[16];

/// In the first thread, which the kernel knows by the process's number.
void queue_for_process() noexcept {
    for (ForFirst& each : for_first) {
        Stage expected = Stage::waiting;
        if (!each.stage.compare_exchange_strong(expected, Stage::read)) continue;
        kernel_call(SYS_rt_sigqueueinfo, own_id(), each.info.si_signo, &each.info);
        each.stage.store(Stage::free);
    }
}

/// What a timer of the program is to send a thread. Kept for the process's life.
struct TimerSignal {
    std::atomic<bool> is_taken{false};
    std::atomic<int> number{0};  ///< 0: not yet written
    sigval value{};
};
constexpr std::size_t timer_signals_max = 64;
constinit TimerSignal timer_signals[timer_signals_max];

const TimerSignal* as_timer_signal(const siginfo_t& info) noexcept {
    if (info.si_code != SI_TIMER) return nullptr;
    for (const TimerSignal& each : timer_signals)
        if (info.si_value.sival_ptr == &each) return &each;
    return nullptr;
}

void write_own_letter(const TimerSignal& from, siginfo_t info) noexcept {
    info.si_signo = from.number.load();
    info.si_value = from.value;
    const pid_t self = own_id();
    if (find_waiting(self, info.si_signo) == nullptr) write_letter(self, info);
}

// Not noexcept: the thread is unwound from here.
void on_carrier(int number, siginfo_t* info, void* context) {
    const int errno_before = errno;
    const TimerSignal* const by_timer = as_timer_signal(*info);
    if (by_timer != nullptr) write_own_letter(*by_timer, *info);
    const bool ends_service =
        info->si_code == SI_QUEUE && info->si_value.sival_ptr == &end_of_service;
    const bool is_ours = (info->si_code == SI_QUEUE || info->si_code == SI_TIMER) &&
                         info->si_value.sival_ptr == letters;
    const bool is_for_first = info->si_code == SI_QUEUE && info->si_value.sival_ptr == for_first;
    if (is_for_first)
        queue_for_process();
    else if (ends_service)
        end_call_that_waits(*static_cast<ucontext_t*>(context));
    else if (is_ours || by_timer != nullptr)
        take_letters(*static_cast<ucontext_t*>(context));
    else if (of_libc.sa_sigaction != nullptr)
        of_libc.sa_sigaction(number, info, context);
    errno = errno_before;
    if ((is_ours || by_timer != nullptr) && is_to_be_cancelled(*static_cast<ucontext_t*>(context)))
        cancel_this_thread();
}

}  // namespace

siginfo_t sent_to_thread(int number) noexcept {
    siginfo_t info{};
    info.si_signo = number;
    info.si_code = SI_TKILL;
    info.si_pid = process_for_program();
    info.si_uid = static_cast<uid_t>(kernel_call(SYS_getuid));
    return info;
}

HandlerScope::HandlerScope(KernelMask mask, bool restarts_calls) noexcept : before_(handling) {
    handling |= mask;
    ++begun;
    if (!restarts_calls) ++begun_to_end;
}
HandlerScope::~HandlerScope() { handling = before_; }

void prepare_thread_signals() noexcept {
    struct sigaction action {};
    action.sa_sigaction = &on_carrier;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    dsm::set_kernel_action(carrier, action, &of_libc);
}

void note_program_thread() noexcept {
    ProgramThread* const record = take_record(own_id());
    if (record != nullptr) record->name.store(pthread_self());
}

pid_t number_of_program_thread(pthread_t thread) noexcept { return find_id(thread, 0); }

void forget_program_thread() noexcept {
    const pid_t self = own_id();
    ProgramThread* const record = find_by_id(self);
    if (record == nullptr) return;
    if (record->timer >= 0) kernel_call(SYS_timer_delete, record->timer);
    record->timer = -1;
    record->name.store(0);
    record->id.store(0);
    while (Letter* const letter = take_letter(self)) discard(*letter);
}

namespace {

/// As send_signal(), for a number of libc's, too.
std::optional<int> send_to_thread(pthread_t thread, int number, const siginfo_t& info) noexcept {
    if (!world()->map->offset_of(static_cast<std::uintptr_t>(thread))) return std::nullopt;
    world()->memory->flush();
    long result = send_on_this_node(thread, 0, number, info);
    if (result == -ESRCH) result = send_elsewhere(thread, 0, number, info);
    if (result == -ESRCH) return std::nullopt;
    return static_cast<int>(-result);
}

}  // namespace

std::optional<int> send_signal(pthread_t thread, int number, const siginfo_t& info) noexcept {
    if (number < 0 || number >= _NSIG || (number >= libc_first && number <= libc_last))
        return EINVAL;
    return send_to_thread(thread, number, info);
}

std::optional<int> send_cancellation(pthread_t thread) noexcept {
    constexpr int tries_max = 10'000;
    const timespec between{0, 100'000};
    for (int tries = 1;; ++tries) {
        const auto failure = send_to_thread(thread, cancels, sent_to_thread(cancels));
        if (failure != EAGAIN || tries == tries_max) return failure;
        kernel_call(SYS_nanosleep, &between, 0);
    }
}

void cancel_behind_handler() noexcept {
    dsm::change_mask(SIG_BLOCK, mask_of(carrier));
    raise_carrier(own_id());
}

std::optional<long> perform_thread_signal(long number, const CallArguments& arguments) noexcept {
    const long* const a = arguments.word;
    const bool is_bare = number == SYS_tkill;
    if (!is_bare && number != SYS_tgkill && number != SYS_rt_tgsigqueueinfo) return std::nullopt;
    if (!is_node_process()) return std::nullopt;
    const long to = a[is_bare ? 0 : 1], signal = a[is_bare ? 1 : 2];
    if (to <= 0 || signal < 0 || signal >= _NSIG || (signal >= libc_first && signal <= libc_last))
        return std::nullopt;
    const bool to_itself = to == own_id();
    if (to_itself && (signal == 0 || (hidden_mask() & mask_of(static_cast<int>(signal))) == 0))
        return std::nullopt;
    siginfo_t info = sent_to_thread(static_cast<int>(signal));
    if (number == SYS_rt_tgsigqueueinfo) {
        if (a[3] == 0) return std::nullopt;
        std::memcpy(&info, reinterpret_cast<const void*>(a[3]), sizeof info);
        info.si_signo = static_cast<int>(signal);
    }
    const auto id = static_cast<pid_t>(to);
    const long here = send_on_this_node(0, id, static_cast<int>(signal), info);
    if (here != -ESRCH) return here;
    // One that runs none of the program: a thread of a library, or of another process.
    if (kernel_call(SYS_tgkill, kernel_call(SYS_getpid), to, 0) == 0) return std::nullopt;
    const long result = send_elsewhere(0, id, static_cast<int>(signal), info);
    return result == -ESRCH ? std::nullopt : std::optional{result};
}

std::int64_t send_signal_here(const CallArguments& words, const std::byte* info) noexcept {
    siginfo_t given;
    std::memcpy(&given, info, sizeof given);
    if (given.si_signo == cancels) prepare_cancellation();
    CallArguments named{{0, words.word[1], words.word[2]}};
    name_for_kernel(SYS_tgkill, named.word);
    return send_on_this_node(static_cast<pthread_t>(words.word[0]),
                             static_cast<pid_t>(named.word[1]), static_cast<int>(words.word[2]),
                             given);
}

bool send_by_carrier(sigevent& event) noexcept {
    const pid_t to = number_for_kernel(event._sigev_un._tid);
    event._sigev_un._tid = to;
    if (find_id(0, to) == 0) {
        if (send_elsewhere(0, to, 0, {}) == -ESRCH) return true;
        die(exit_environment,
            "timer_create for thread %d, which runs on another node: only a thread of that node "
            "can have a timer send it signals",
            to);
    }
    const int number = event.sigev_signo;
    if (number <= 0 || number >= _NSIG || (number >= libc_first && number <= libc_last))
        return true;
    for (TimerSignal& each : timer_signals) {
        const bool is_same =
            each.number.load() == number && each.value.sival_ptr == event.sigev_value.sival_ptr;
        if (!is_same && each.is_taken.exchange(true)) continue;
        if (!is_same) {
            each.value = event.sigev_value;
            each.number.store(number);
        }
        event.sigev_signo = carrier;
        event.sigev_value.sival_ptr = &each;
        return true;
    }
    errno = EAGAIN;
    return false;
}

void take_waiting_letters() noexcept {
    if (waiting.load(std::memory_order_relaxed) == 0) [[likely]]
        return;
    const ThreadContext* const thread = this_thread_if_known();
    if (thread == nullptr || thread->in_runtime) return;
    const pid_t self = own_id();
    const ProgramThread* const record = find_by_id(self);
    if (record != nullptr && record->comes_back) raise_carrier(self);
}

long queue_as_of_kernel(const siginfo_t& info) noexcept {
    for (ForFirst& each : for_first) {
        Stage none = Stage::free;
        if (!each.stage.compare_exchange_strong(none, Stage::written)) continue;
        each.info = info;
        each.stage.store(Stage::waiting);
        return raise_carrier(static_cast<pid_t>(kernel_call(SYS_getpid)), for_first);
    }
    return 0;
}

std::uint64_t handlers_so_far() noexcept { return begun; }
std::uint64_t ending_handlers_so_far() noexcept { return begun_to_end; }

void end_call_of_service(pid_t thread) noexcept { raise_carrier(thread, &end_of_service); }

bool are_letters_waiting() noexcept {
    if (waiting.load() == 0) [[likely]]
        return false;
    const pid_t self = own_id();
    for (const Letter& each : letters)
        if (each.stage.load() == Stage::waiting && each.to.load() == self) return true;
    return false;
}

}  // namespace hiroba::abi
