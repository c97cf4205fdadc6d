// SPDX-License-Identifier: BSD-3-Clause
#include "base/thread_context.hpp"

#include <execinfo.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <set>
#include <thread>
#include <vector>

#include "base/latch.hpp"
#include "base/thread_room.hpp"

namespace hiroba {
namespace {

constexpr std::size_t stack_bytes = std::size_t{256} << 10;

/// Whether the caller's frame lies on the calling thread's runtime stack.
[[gnu::noinline]] bool runs_on_runtime_stack() {
    const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    const auto top = reinterpret_cast<std::uintptr_t>(this_thread().runtime_stack_top);
    return frame < top && frame >= top - stack_bytes;
}

TEST(RuntimeStack, CallRunsOnItAndComesBackWithItsResult) {
    int result = 0;
    on_runtime_stack([&] { result = runs_on_runtime_stack() ? 42 : 1; });
    EXPECT_EQ(result, 42);
    EXPECT_FALSE(runs_on_runtime_stack());
}

TEST(RuntimeStack, NestedCallRunsDirectlyBelowTheFirst) {
    bool nested_on_stack = false;
    bool still_marked = false;
    on_runtime_stack([&] {
        const auto outer = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
        on_runtime_stack([&] {
            const auto inner = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
            nested_on_stack = runs_on_runtime_stack() && inner < outer;
        });
        still_marked = this_thread().on_runtime_stack && this_thread().in_runtime;
    });
    EXPECT_TRUE(nested_on_stack);
    EXPECT_TRUE(still_marked);
    EXPECT_FALSE(this_thread().on_runtime_stack);
}

TEST(RuntimeStack, InRuntimeIsSetDuringTheCallAndRestored) {
    ThreadContext& context = this_thread();
    bool inside = false;
    on_runtime_stack([&] { inside = context.in_runtime; });
    EXPECT_TRUE(inside);
    EXPECT_FALSE(context.in_runtime);

    context.in_runtime = true;
    on_runtime_stack([] {});
    EXPECT_TRUE(context.in_runtime);
    context.in_runtime = false;
}

/// Not a lambda: what compilers call themselves they align as they like.
void store_frame(void* result) {
    *static_cast<std::uintptr_t*>(result) =
        reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

TEST(RuntimeStack, IsAlignedAsTheCallingConventionAsks) {
    std::uintptr_t frame = 1;
    call_on_runtime_stack(store_frame, &frame);
    EXPECT_EQ(frame % 16, 0u);
}

std::atomic<int> handler_result{0};

void call_from_handler(int) {
    on_runtime_stack([] { handler_result = runs_on_runtime_stack() ? 1 : 2; });
}

TEST(RuntimeStack, CanBeEnteredFromASignalHandlerOnAnAlternateStack) {
    std::thread thread{[] {  // A thread without a context: the handler makes it.
        std::vector<std::byte> alternate(std::size_t{64} << 10);
        stack_t stack{};
        stack.ss_sp = alternate.data();
        stack.ss_size = alternate.size();
        sigaltstack(&stack, nullptr);
        struct sigaction action {};
        action.sa_handler = call_from_handler;
        action.sa_flags = SA_ONSTACK;
        sigaction(SIGUSR1, &action, nullptr);
        raise(SIGUSR1);
        stack.ss_flags = SS_DISABLE;
        sigaltstack(&stack, nullptr);
    }};
    thread.join();
    EXPECT_EQ(handler_result, 1);
}

[[gnu::noinline]] void use_stack(std::size_t bytes) {
    auto* const memory = static_cast<volatile char*>(__builtin_alloca(bytes));
    for (std::size_t i = 0; i < bytes; i += 1024) memory[bytes - 1 - i] = 1;
}

TEST(RuntimeStackDeathTest, HoldsAlmostAllOfItsSizeAndAGuardStopsMore) {
    on_runtime_stack([] { use_stack(stack_bytes - 8192); });
    EXPECT_EXIT(
        {
            std::signal(SIGSEGV, SIG_DFL);  // Sanitizers exit by a status of their own.
            on_runtime_stack([] { use_stack(stack_bytes + 1024); });
        },
        testing::KilledBySignal(SIGSEGV), "");
}

TEST(RuntimeStack, UnwinderWalksThroughTheSwitch) {
    void* direct[64];
    void* switched[64];
    const int direct_count = backtrace(direct, 64);
    int switched_count = 0;
    on_runtime_stack([&] { switched_count = backtrace(switched, 64); });

    ASSERT_GT(direct_count, 3);
    ASSERT_GT(switched_count, direct_count);
    // All but the innermost frames, this function's and a sanitizer's, stand at the same return
    // addresses.
    EXPECT_TRUE(std::equal(direct + 2, direct + direct_count,
                           switched + switched_count - direct_count + 2));
}

/// Runs a thread that asks for its context; returns once the kernel has forgotten the thread.
ThreadContext* context_of_ended_thread() {
    ThreadContext* context = nullptr;
    long id = 0;
    std::thread thread{[&] {
        id = syscall(SYS_gettid);
        context = &this_thread();
        context->global_thread = 77;
    }};
    thread.join();
    Backoff backoff;
    while (syscall(SYS_tgkill, getpid(), id, 0) == 0) backoff.pause();
    return context;
}

TEST(ThreadContext, EachLivingThreadHasItsOwn) {
    constexpr int threads_max = 8;
    std::vector<ThreadContext*> contexts(threads_max);
    std::atomic<int> arrived{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < threads_max; ++i) {
        threads.emplace_back([&, i] {
            contexts[static_cast<std::size_t>(i)] = &this_thread();
            ++arrived;
            Backoff backoff;
            while (arrived < threads_max) backoff.pause();
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(std::set(contexts.begin(), contexts.end()).size(), std::size_t{threads_max});
}

TEST(ThreadContext, PagesOfEndedThreadsAreReusedAndClean) {
    this_thread();
    std::set<ThreadContext*> contexts;
    for (int i = 0; i < 20; ++i) contexts.insert(context_of_ended_thread());
    // Earlier tests leave pages behind, so more than one may be free; never twenty.
    EXPECT_LE(contexts.size(), 12u);
    std::uint32_t number = 1;
    std::thread{[&] { number = this_thread().global_thread; }}.join();
    EXPECT_EQ(number, 0u);
}

/// In a child whose parent is gone: whether a new thread leaves this thread's context alone.
bool own_context_is_safe() {
    ThreadContext* const own = &this_thread();
    ThreadContext* other = nullptr;
    std::thread{[&] { other = &this_thread(); }}.join();
    return other != own && &this_thread() == own;
}

TEST(ThreadContext, ForkedChildKeepsItsContextFromItsOwnThreadsWhenTheParentIsGone) {
    int verdict[2];
    ASSERT_EQ(pipe(verdict), 0);
    const pid_t parent = fork();
    ASSERT_GE(parent, 0);
    if (parent == 0) {
        // A new thread, so that its context bears the number of this process.
        std::thread{[&] {
            this_thread();
            const pid_t parent_id = getpid();
            if (fork() != 0) _exit(0);
            Backoff backoff;
            while (kill(parent_id, 0) == 0) backoff.pause();
            const char answer = own_context_is_safe() ? 'y' : 'n';
            _exit(write(verdict[1], &answer, 1) == 1 ? 0 : 1);
        }}.join();
    }
    close(verdict[1]);
    int status = -1;
    EXPECT_EQ(waitpid(parent, &status, 0), parent);
    char answer = 0;
    EXPECT_EQ(read(verdict[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    close(verdict[0]);
}

TEST(ThreadRoom, rooms_begin_as_zero_and_lie_apart) {
    struct Part {
        void* first = nullptr;
        std::uint64_t rest[7] = {};
    };
    static_assert(sizeof(Part) == ThreadContext::room_bytes);
    ThreadContext context;
    constexpr ThreadRoom<Part, 0> lowest;
    constexpr ThreadRoom<Part, ThreadContext::rooms_count - 1> highest;
    EXPECT_EQ(lowest(context).first, nullptr);
    EXPECT_EQ(highest(context).rest[2], 0u);
    lowest(context) = {&context, {1, 2, 3}};
    highest(context).rest[2] = 4;
    EXPECT_EQ(lowest(context).rest[2], 3u);
    EXPECT_EQ(highest(context).first, nullptr);
    EXPECT_FALSE(context.in_own_library);
    EXPECT_GE(reinterpret_cast<std::byte*>(&lowest(context)), context.rooms[0]);
    EXPECT_LE(reinterpret_cast<std::byte*>(&highest(context) + 1),
              reinterpret_cast<std::byte*>(&context + 1));
}

}  // namespace
}  // namespace hiroba
