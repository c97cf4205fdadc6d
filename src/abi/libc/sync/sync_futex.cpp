// SPDX-License-Identifier: BSD-3-Clause
// Role: futexes in global memory: what C++20 makes of std::atomic::wait and its kin, libstdc++ of
// std::future, and programs by hand. The kernel compares and wakes by one node's copy, so all of it
// is ours: a waiter is in the job's list, and looks at the word again and again beside, because
// libraries make no wake where they see no waiter.
// Invariant: a waiter is in the list before it looks at the word, and looks after a flush; who
// wakes flushes first. So a wake behind a change of the word is not lost.
//
// The value may be stale: taken from a copy that this node has replaced since, while the word came
// back to that value elsewhere. Who sleeps at any value but the one its condition stands for sleeps
// for ever then: libstdc++ 12's semaphores read the count, try to take one, fail, and wait at the
// count they had read, be it 1 (GCC PR 104928). On one host another thread has to take and release
// within these instructions; here the count of before the last flush is enough. So the copy is
// looked at before the flush, too: a value that it has left is refused. It may also have come back
// in the copy itself: therefore nobody sleeps for longer than own_look_ns without a look of its
// own, as after one of the wakes without a cause that futex(2) speaks of.
#include <limits.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "abi/libc/calls/kernel_access.hpp"
#include "abi/libc/sync/futexes.hpp"
#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "base/thread_context.hpp"
#include "dsm/memory/kernel_calls.hpp"
#include "omp/process/system_libraries.hpp"

namespace hiroba::abi {
namespace {

// Calls of Linux 6.7, newer than the oldest headers.
constexpr long futex_wake_call = 454, futex_wait_call = 455, futex_requeue_call = 456;

struct FutexCall {
    std::uint32_t* word;
    int operation;
    std::uint32_t value;
    const timespec* limit;  ///< of waits; of others a second count
    std::uint32_t* other;
    std::uint32_t third;

    explicit FutexCall(const long (&a)[6]) noexcept
        : word(reinterpret_cast<std::uint32_t*>(a[0])),
          operation(static_cast<int>(a[1])),
          value(static_cast<std::uint32_t>(a[2])),
          limit(reinterpret_cast<const timespec*>(a[3])),
          other(reinterpret_cast<std::uint32_t*>(a[4])),
          third(static_cast<std::uint32_t>(a[5])) {}
    int command() const noexcept { return operation & FUTEX_CMD_MASK; }
    bool waits() const noexcept {
        return command() == FUTEX_WAIT || command() == FUTEX_WAIT_BITSET;
    }
    bool has_other() const noexcept {
        return command() == FUTEX_REQUEUE || command() == FUTEX_CMP_REQUEUE ||
               command() == FUTEX_WAKE_OP || command() == FUTEX_WAIT_REQUEUE_PI ||
               command() == FUTEX_CMP_REQUEUE_PI;
    }
    std::uint32_t bits() const noexcept {
        const bool named = command() == FUTEX_WAIT_BITSET || command() == FUTEX_WAKE_BITSET;
        return named ? third : ~0u;
    }
    /// What stands in the place of `limit`.
    int second_count() const noexcept {
        return static_cast<int>(reinterpret_cast<std::intptr_t>(limit));
    }
};

bool is_aligned(const void* word) noexcept {
    return reinterpret_cast<std::uintptr_t>(word) % sizeof(std::uint32_t) == 0;
}

/// Until when: FUTEX_WAIT names a duration, FUTEX_WAIT_BITSET a time.
dsm::Deadline deadline_of(const FutexCall& call) noexcept {
    const bool real_time = (call.operation & FUTEX_CLOCK_REALTIME) != 0;
    timespec until = *call.limit;
    const clockid_t clock = real_time ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    if (call.command() == FUTEX_WAIT) {
        timespec now;
        clock_gettime(clock, &now);
        until.tv_sec += now.tv_sec + (until.tv_nsec + now.tv_nsec) / 1'000'000'000;
        until.tv_nsec = (until.tv_nsec + now.tv_nsec) % 1'000'000'000;
    }
    return {clock, until};
}

long wait(const FutexCall& call) noexcept {
    if (call.bits() == 0 || (call.limit != nullptr && !is_time(*call.limit))) return -EINVAL;
    dsm::Deadline deadline{};
    if (call.limit != nullptr) deadline = deadline_of(call);
    if (futex::copy_of(call.word) != call.value) {
        world()->memory->flush();
        return -EAGAIN;
    }
    const std::uint64_t look_ns = now_ns() + futex::own_look_ns;
    dsm::SyncTable& table = *world()->sync;
    const dsm::SyncWaiter waiter = table.join_futex(key_of(call.word), call.bits());
    long result = -EAGAIN;
    for (std::uint64_t pause_ns = futex::pause_first_ns;;) {
        if (futex::current(call.word) != call.value) break;
        const std::uint64_t left_ns = call.limit != nullptr ? deadline.left_ns() : ~0ull;
        result = left_ns == 0 ? -ETIMEDOUT : 0;
        if (left_ns == 0 || now_ns() > look_ns) break;
        const auto outcome = table.await_futex(waiter, futex::in_ns(std::min(left_ns, pause_ns)));
        if (outcome == dsm::SyncOutcome::done) break;
        if (outcome == dsm::SyncOutcome::busy) result = -EINTR;
        if (outcome == dsm::SyncOutcome::busy) break;
        pause_ns = std::min(2 * pause_ns, futex::pause_max_ns);
    }
    if (!table.leave_futex(key_of(call.word), waiter)) return result;
    world()->memory->flush();  // sees what the one had written who woke it
    return 0;
}

/// At least one, as the kernel. A word of this node's own is the kernel's.
long wake(const FutexCall& call, std::uint32_t* word, int at_most, std::uint32_t bits) noexcept {
    if (table_of(word) == nullptr) {
        const int operation = FUTEX_WAKE_BITSET | (call.operation & FUTEX_PRIVATE_FLAG);
        return dsm::kernel_call(SYS_futex, word, operation, at_most, 0, 0, bits);
    }
    return world()->sync->wake_futex(key_of(word), bits,
                                     static_cast<std::uint32_t>(std::max(at_most, 1)));
}

/// Those that would wait for the other word are woken: they look at theirs again, as all who wait
/// for a futex must, and then wait for the other by themselves.
long requeue(const FutexCall& call) noexcept {
    const int first = static_cast<int>(call.value), more = call.second_count();
    if (first < 0 || more < 0) return -EINVAL;
    if (call.command() == FUTEX_CMP_REQUEUE && futex::current(call.word) != call.third)
        return -EAGAIN;
    const long sum = long{first} + more;
    if (sum == 0) return 0;
    return wake(call, call.word, static_cast<int>(std::min<long>(sum, INT_MAX)), ~0u);
}

/// FUTEX_WAKE_OP's encoding (linux/futex.h): what is done with the other word, and which former
/// value of it wakes those who wait for it.
class WordOperation {
public:
    explicit WordOperation(std::uint32_t code) noexcept
        : operation_(code >> 28 & 7),
          comparison_(code >> 24 & 15),
          argument_(sign_extended(code >> 12)),
          compared_(sign_extended(code)) {
        if ((code >> 28 & FUTEX_OP_OPARG_SHIFT) != 0) argument_ = 1 << (argument_ & 31);
    }
    bool is_known() const noexcept {
        return operation_ <= FUTEX_OP_XOR && comparison_ <= FUTEX_OP_CMP_GE;
    }
    std::uint32_t applied_to(std::uint32_t old) const noexcept {
        const auto argument = static_cast<std::uint32_t>(argument_);
        switch (operation_) {
            case FUTEX_OP_SET: return argument;
            case FUTEX_OP_ADD: return old + argument;
            case FUTEX_OP_OR: return old | argument;
            case FUTEX_OP_ANDN: return old & ~argument;
            default: return old ^ argument;
        }
    }
    bool holds_for(std::uint32_t old_bits) const noexcept {
        const int old = static_cast<int>(old_bits);
        switch (comparison_) {
            case FUTEX_OP_CMP_EQ: return old == compared_;
            case FUTEX_OP_CMP_NE: return old != compared_;
            case FUTEX_OP_CMP_LT: return old < compared_;
            case FUTEX_OP_CMP_LE: return old <= compared_;
            case FUTEX_OP_CMP_GT: return old > compared_;
            default: return old >= compared_;
        }
    }

private:
    static int sign_extended(std::uint32_t code) noexcept {
        return static_cast<int>(code << 20) >> 20;
    }
    std::uint32_t operation_, comparison_;
    int argument_, compared_;
};

/// On the word's home, as the program's atomics.
std::uint32_t apply(const WordOperation& operation, std::uint32_t* word) noexcept {
    std::uint32_t old = 0;
    on_runtime_stack([&] {
        dsm::SharedMemory& memory = *world()->memory;
        const bool entered = memory.enter_atomic(word, sizeof *word);
        const std::atomic_ref<std::uint32_t> there{*word};
        old = there.load();
        while (!there.compare_exchange_weak(old, operation.applied_to(old))) {
        }
        if (entered) memory.leave_atomic(word, sizeof *word);
    });
    return old;
}

long wake_by_operation(const FutexCall& call) noexcept {
    const WordOperation operation{call.third};
    if (!operation.is_known()) return -ENOSYS;
    const std::uint32_t old = apply(operation, call.other);
    world()->memory->flush();
    long woken = wake(call, call.word, static_cast<int>(call.value), ~0u);
    if (operation.holds_for(old)) woken += wake(call, call.other, call.second_count(), ~0u);
    return woken;
}

[[noreturn]] void refuse(const FutexCall& call) noexcept {
    die(exit_environment,
        "futex at 0x%lx: operation %d (a lock whose holder the kernel knows) is not to be had "
        "across nodes. Use mutexes and condition variables, or one node (-n 1)",
        key_of(call.word), call.command());
}

long perform(const FutexCall& call) noexcept {
    if (!is_aligned(call.word) || (call.has_other() && !is_aligned(call.other))) return -EINVAL;
    if (call.waits()) return wait(call);
    world()->memory->flush();
    switch (call.command()) {
        case FUTEX_WAKE:
        case FUTEX_WAKE_BITSET:
            if (call.bits() == 0) return -EINVAL;
            return wake(call, call.word, static_cast<int>(call.value), call.bits());
        case FUTEX_REQUEUE:
        case FUTEX_CMP_REQUEUE: return requeue(call);
        case FUTEX_WAKE_OP: return wake_by_operation(call);
        case FUTEX_FD: return -ENOSYS;
        default: refuse(call);
    }
}

long wait_for_one_of(const long (&arguments)[6]) noexcept {
    const auto* const vector = reinterpret_cast<const futex_waitv*>(arguments[0]);
    const auto count = static_cast<std::uint32_t>(arguments[1]);
    const auto* const limit = reinterpret_cast<const timespec*>(arguments[3]);
    if (arguments[2] != 0 || count == 0 || count > FUTEX_WAITV_MAX) return -EINVAL;
    dsm::Deadline deadline{};
    if (limit != nullptr) {
        deadline = {static_cast<clockid_t>(arguments[4]), *limit};
        if (!is_clock(deadline.clock) || !is_time(deadline.time)) return -EINVAL;
    }
    return futex::wait_for_one(vector, count, limit != nullptr ? &deadline : nullptr);
}

bool names_global_word(const long (&arguments)[6]) noexcept {
    const auto* const vector = reinterpret_cast<const futex_waitv*>(arguments[0]);
    const auto count = static_cast<std::uint32_t>(arguments[1]);
    if (vector == nullptr || count > FUTEX_WAITV_MAX) return false;
    return std::any_of(vector, vector + count, [](const futex_waitv& each) {
        return is_global(reinterpret_cast<const void*>(each.uaddr));
    });
}

}  // namespace

dsm::Deadline futex::in_ns(std::uint64_t ns) noexcept {
    dsm::Deadline deadline{CLOCK_MONOTONIC, {}};
    clock_gettime(CLOCK_MONOTONIC, &deadline.time);
    deadline.time.tv_nsec += static_cast<long>(ns % 1'000'000'000);
    deadline.time.tv_sec +=
        static_cast<time_t>(ns / 1'000'000'000) + deadline.time.tv_nsec / 1'000'000'000;
    deadline.time.tv_nsec %= 1'000'000'000;
    return deadline;
}

std::uint32_t futex::current(const std::uint32_t* word) noexcept {
    world()->memory->flush();
    return copy_of(word);
}

std::uint32_t futex::copy_of(const std::uint32_t* word) noexcept {
    return std::atomic_ref{*const_cast<std::uint32_t*>(word)}.load();
}

bool is_global_futex(long number, const long (&arguments)[6]) noexcept {
    if (number == SYS_futex) {
        const FutexCall call{arguments};
        return is_global(call.word) || (call.has_other() && is_global(call.other));
    }
    if (number == SYS_futex_waitv || number == futex_requeue_call)
        return names_global_word(arguments);
    const bool has_word = number == futex_wake_call || number == futex_wait_call;
    return has_word && is_global(reinterpret_cast<const void*>(arguments[0]));
}

long perform_futex(long number, const long (&arguments)[6]) noexcept {
    if (number == SYS_futex) return perform(FutexCall{arguments});
    // The rest of the newer calls are missing on many kernels: programs then make the older one.
    return number == SYS_futex_waitv ? wait_for_one_of(arguments) : -ENOSYS;
}

bool is_system_wait(long number, const long (&arguments)[6], const void* caller) noexcept {
    return number == SYS_futex && FutexCall{arguments}.waits() && omp::is_system_code(caller);
}

long perform_system_wait(const long (&arguments)[6]) noexcept {
    const FutexCall call{arguments};
    if (call.limit != nullptr && !is_time(*call.limit)) return -EINVAL;
    const std::uint64_t left_ns =
        call.limit != nullptr ? deadline_of(call).left_ns() : futex::pause_max_ns;
    const bool is_last = left_ns < futex::pause_max_ns;
    const timespec piece{0, static_cast<long>(std::min(left_ns, futex::pause_max_ns))};
    const int operation = FUTEX_WAIT | (call.operation & FUTEX_PRIVATE_FLAG);
    const long result = dsm::kernel_call(SYS_futex, call.word, operation, call.value, &piece, 0, 0);
    world()->memory->flush();
    return result == -ETIMEDOUT && !is_last ? 0 : result;
}

}  // namespace hiroba::abi
