// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes joining and detaching of threads that the program has made: their stacks go
// back; and cancelling them, on any node. Invariant: libc does the joining, on the joined thread's
// node, which has its memory.
#include "abi/libc/threads/thread_joins.hpp"

#include <pthread.h>
#include <threads.h>
#include <time.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/files/remote_files.hpp"
#include "abi/libc/process/thread_signals.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/threads/cancellation.hpp"
#include "abi/libc/threads/thread_stacks.hpp"
#include "abi/world.hpp"
#include "base/thread_context.hpp"
#include "dsm/memory/fault_engine.hpp"

HIROBA_REAL(pthread_join);
HIROBA_REAL(pthread_tryjoin_np);
HIROBA_REAL(pthread_timedjoin_np);
HIROBA_REAL(pthread_clockjoin_np);
HIROBA_REAL(pthread_detach);
HIROBA_REAL(pthread_cancel);
HIROBA_REAL(thrd_join);
HIROBA_REAL(thrd_detach);

namespace hiroba::abi {
namespace {

enum class JoinWay : long { to_its_end, at_once, until };

/// What goes to the thread's node, and comes back.
struct JoinData {
    timespec until{};
    void* result = nullptr;
};

int join_by_libc(pthread_t thread, JoinWay way, clockid_t clock, JoinData& data) noexcept {
    switch (way) {
        case JoinWay::at_once: return real_pthread_tryjoin_np(thread, &data.result);
        case JoinWay::until:
            return real_pthread_clockjoin_np(thread, &data.result, clock, &data.until);
        case JoinWay::to_its_end: break;
    }
    return real_pthread_join(thread, &data.result);
}

/// Asks the node that the thread's place tells of, and where the program has given it a stack of
/// another node's, the others. @return 0 or an error number
// Not inlined, so that test/cluster/switched_off.py can switch it off.
[[gnu::noinline]] int ask_maker(NodeId maker, JoinCall call, const CallArguments& words,
                                MutableBytes data) noexcept {
    const auto number = static_cast<std::int64_t>(call);
    long result = world()->files->call(maker, number, words, -1, data, data);
    for (std::uint32_t node = 0; node < world()->job.nodes && result == -ESRCH; ++node)
        if (NodeId{node} != world()->job.self && NodeId{node} != maker)
            result = world()->files->call(NodeId{node}, number, words, -1, data, data);
    return static_cast<int>(-result);
}

int join_elsewhere(NodeId maker, pthread_t thread, void** result, JoinWay way,
                   clockid_t clock = CLOCK_REALTIME, const timespec* until = nullptr) noexcept {
    JoinData data;
    if (until != nullptr) data.until = *until;
    const CallArguments words{{static_cast<long>(thread), static_cast<long>(way), clock}};
    const int failure =
        ask_maker(maker, JoinCall::join, words, std::as_writable_bytes(std::span{&data, 1}));
    if (failure != 0) return failure;
    world()->memory->flush();  // sees what the thread has written
    if (result != nullptr) *result = data.result;
    return 0;
}

int detach_elsewhere(NodeId maker, pthread_t thread) noexcept {
    return ask_maker(maker, JoinCall::detach, CallArguments{{static_cast<long>(thread)}}, {});
}

int joined(int failure, pthread_t thread) noexcept {
    if (failure == 0) note_thread_joined(thread);
    return failure;
}

}  // namespace

std::int64_t join_thread_here(const CallArguments& words, std::byte* data) noexcept {
    const auto thread = static_cast<pthread_t>(words.word[0]);
    if (!is_thread_of_this_node(thread)) return -ESRCH;
    // libc looks into the thread's control block, which may lie in an invalid page.
    static constinit thread_local bool has_stack = false;
    if (!has_stack) dsm::give_alternate_stack();
    has_stack = true;
    JoinData asked;
    std::memcpy(&asked, data, sizeof asked);
    const int failure = joined(join_by_libc(thread, static_cast<JoinWay>(words.word[1]),
                                            static_cast<clockid_t>(words.word[2]), asked),
                               thread);
    if (failure != 0) return -failure;
    on_runtime_stack([] { world()->memory->flush(); });
    std::memcpy(data, &asked, sizeof asked);
    return 0;
}

std::int64_t detach_thread_here(const CallArguments& words) noexcept {
    const auto thread = static_cast<pthread_t>(words.word[0]);
    if (!is_thread_of_this_node(thread)) return -ESRCH;
    note_thread_detached(thread);
    return -real_pthread_detach(thread);
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int pthread_join(pthread_t thread, void** result) {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_pthread_join(thread, result);
    if (const auto maker = other_maker(thread))
        return join_elsewhere(*maker, thread, result, JoinWay::to_its_end);
    return joined(real_pthread_join(thread, result), thread);
}

int pthread_tryjoin_np(pthread_t thread, void** result) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_pthread_tryjoin_np(thread, result);
    if (const auto maker = other_maker(thread))
        return join_elsewhere(*maker, thread, result, JoinWay::at_once);
    return joined(real_pthread_tryjoin_np(thread, result), thread);
}

int pthread_timedjoin_np(pthread_t thread, void** result, const timespec* until) {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_pthread_timedjoin_np(thread, result, until);
    const JoinWay way = until != nullptr ? JoinWay::until : JoinWay::to_its_end;
    if (const auto maker = other_maker(thread))
        return join_elsewhere(*maker, thread, result, way, CLOCK_REALTIME, until);
    return joined(real_pthread_timedjoin_np(thread, result, until), thread);
}

int pthread_clockjoin_np(pthread_t thread, void** result, clockid_t clock, const timespec* until) {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_pthread_clockjoin_np(thread, result, clock, until);
    const JoinWay way = until != nullptr ? JoinWay::until : JoinWay::to_its_end;
    if (const auto maker = other_maker(thread))
        return join_elsewhere(*maker, thread, result, way, clock, until);
    return joined(real_pthread_clockjoin_np(thread, result, clock, until), thread);
}

// Noted first: once detached, the thread may be gone, and its place another's.
int pthread_detach(pthread_t thread) noexcept {
    if (HIROBA_CALL_OF_PROGRAM()) {
        if (const auto maker = other_maker(thread)) return detach_elsewhere(*maker, thread);
        note_thread_detached(thread);
    }
    return real_pthread_detach(thread);
}

// libc would write into the thread's control block, and unwind it wherever it is.
int pthread_cancel(pthread_t thread) {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_pthread_cancel(thread);
    prepare_cancellation();
    if (pthread_equal(thread, pthread_self()) == 0) {
        if (const auto failure = send_cancellation(thread)) return *failure;
        if (is_thread_of_other_node(thread)) return 0;  // one that has ended
    }
    return real_pthread_cancel(thread);
}

int thrd_join(thrd_t thread, int* result) {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_thrd_join(thread, result);
    if (const auto maker = other_maker(thread)) {
        void* word = nullptr;
        if (join_elsewhere(*maker, thread, &word, JoinWay::to_its_end) != 0) return thrd_error;
        if (result != nullptr) *result = static_cast<int>(reinterpret_cast<std::intptr_t>(word));
        return thrd_success;
    }
    const int outcome = real_thrd_join(thread, result);
    if (outcome == thrd_success) note_thread_joined(thread);
    return outcome;
}

int thrd_detach(thrd_t thread) {
    if (HIROBA_CALL_OF_PROGRAM()) {
        if (const auto maker = other_maker(thread))
            return detach_elsewhere(*maker, thread) == 0 ? thrd_success : thrd_error;
        note_thread_detached(thread);
    }
    return real_thrd_detach(thread);
}

}  // extern "C"
