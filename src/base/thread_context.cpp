// SPDX-License-Identifier: BSD-3-Clause
// Role: makes, finds and reuses the private pages of threads, and switches to the stack in them.
// Invariant: pages are never unmapped. Pages whose thread has ended go to a later thread: a
// thread cannot say that it ends without storing in its TLS, which may be global memory.
// All of it is async-signal-safe: a thread's first fault may be what makes its context.
#include "base/thread_context.hpp"

#include <asm/prctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __SANITIZE_THREAD__
#include <pthread.h>
#include <sanitizer/tsan_interface.h>
#endif

#include <atomic>
#include <cerrno>
#include <csignal>
#include <new>
#include <utility>

#include "base/atomic_window.hpp"
#include "base/bytes.hpp"
#include "base/fatal.hpp"
#include "base/mapping_count.hpp"
#include "base/trace.hpp"

/// src/base/stack_switch.S
extern "C" void hiroba_call_on_stack(hiroba::RuntimeCall function, void* argument,
                                     std::byte* stack_top) noexcept;

namespace hiroba {
namespace {

constexpr std::size_t runtime_stack_bytes = std::size_t{256} << 10;

/// Where pages are asked for: below global memory, so that a debugger walking from a runtime
/// stack to a stack of the program goes upwards, as it insists on. Only a wish.
constexpr std::uintptr_t pages_hint = 0x0f00'0000'0000;

/// A thread of a process, in one word so that both change at once; 0 is none.
using Owner = std::uint64_t;
constexpr Owner owner_of(long process, long thread) noexcept {
    return static_cast<Owner>(process) << 32 | static_cast<Owner>(thread);
}

/// Lies right above the runtime stack.
struct ThreadPages {
    ThreadContext context;
    TraceRing trace;
    AtomicWindow window;
    ThreadPages* next = nullptr;  ///< fixed once published in `newest_pages`
    std::atomic<Owner> owner{0};  ///< 0: free
};

#ifdef __SANITIZE_THREAD__
/// Tells the thread sanitizer what take_used_pages() hears from the kernel: that all an ended
/// thread did with its pages came before.
/// By a key of its own, since a handler may be what takes pages over: registering a destructor of
/// something thread-local allocates.
pthread_key_t end_of_thread;
const int end_of_thread_made =
    pthread_key_create(&end_of_thread, [](void* pages) { __tsan_release(pages); });
void taken_over(ThreadPages* pages) {
    __tsan_acquire(pages);
    if (end_of_thread_made == 0) pthread_setspecific(end_of_thread, pages);
}
#else
void taken_over(ThreadPages*) {}
#endif

constexpr std::size_t context_bytes = round_up(sizeof(ThreadPages), page_bytes);
constexpr std::size_t mapping_bytes = page_bytes + runtime_stack_bytes + context_bytes;

std::atomic<ThreadPages*> newest_pages{nullptr};
std::atomic<std::uintptr_t> next_hint{pages_hint};

/// Whether `owner` was a thread of this process and is no more. In the child of a fork, pages with
/// owners of the former process stay theirs: the forking thread goes on using its own.
bool has_ended(Owner owner, Owner self) noexcept {
    const auto process = static_cast<pid_t>(owner >> 32);
    if (process != static_cast<pid_t>(self >> 32)) return false;
    return syscall(SYS_tgkill, process, static_cast<pid_t>(owner), 0) != 0 && errno == ESRCH;
}

/// Takes over pages of a thread that ended. Looks at few: thread creation stays cheap with many.
ThreadPages* take_used_pages(Owner self) noexcept {
    constexpr int looks_max = 64;
    int looks = 0;
    // Acquire: pairs with the release in publish(); the pages' `next` is then visible.
    ThreadPages* pages = newest_pages.load(std::memory_order_acquire);
    for (; pages != nullptr && looks < looks_max; pages = pages->next, ++looks) {
        Owner owner = pages->owner.load();
        // `self` is no reason to take them: a signal may have come in the middle of taking them.
        const bool free = owner == 0 || has_ended(owner, self);
        if (free && pages->owner.compare_exchange_strong(owner, self)) return pages;
    }
    return nullptr;
}

ThreadPages* map_pages() noexcept {
    const std::uintptr_t hint = next_hint.fetch_add(mapping_bytes, std::memory_order_relaxed);
    const long address = syscall(SYS_mmap, hint, mapping_bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == -1 || syscall(SYS_mprotect, address, page_bytes, PROT_NONE) != 0) {
        die_without_memory("a thread's runtime stack", mapping_bytes, errno);
    }
    auto* const base = reinterpret_cast<std::byte*>(address);
    return new (base + page_bytes + runtime_stack_bytes) ThreadPages;
}

void publish(ThreadPages* pages) noexcept {
    pages->next = newest_pages.load(std::memory_order_relaxed);
    // Release: pairs with the acquire in take_used_pages().
    while (!newest_pages.compare_exchange_weak(pages->next, pages, std::memory_order_release,
                                               std::memory_order_relaxed)) {
    }
}

/// A new thread's gs is that of the one that has made it.
bool is_window_of_any(std::uintptr_t address) noexcept {
    // Acquire: as in take_used_pages().
    for (const ThreadPages* pages = newest_pages.load(std::memory_order_acquire); pages != nullptr;
         pages = pages->next)
        if (reinterpret_cast<std::uintptr_t>(&pages->window) == address) return true;
    return false;
}

/// The thread's gs leads to `window`. A program that has use for gs keeps it, and goes without.
void show_window(AtomicWindow& window) noexcept {
    new (&window) AtomicWindow;  // a thread may have ended in the middle of an atomic
    window.self = &window;
    std::uintptr_t used = 0;
    if (syscall(SYS_arch_prctl, ARCH_GET_GS, &used) != 0) return;
    if (used != 0 && !is_window_of_any(used)) return;
    if (syscall(SYS_arch_prctl, ARCH_SET_GS, &window) == 0) own_atomic_window = &window;
}

[[gnu::noinline]] ThreadContext& make_context() noexcept {
    const int errno_before = errno;
    const Owner self = owner_of(syscall(SYS_getpid), syscall(SYS_gettid));
    ThreadPages* pages = take_used_pages(self);
    if (pages == nullptr) {
        pages = map_pages();
        pages->owner.store(self);
        publish(pages);
    }
    taken_over(pages);
    pages->context = ThreadContext{};
    pages->trace.count = 0;
    pages->trace.recorded = {};
    pages->context.runtime_stack_top = reinterpret_cast<std::byte*>(pages);
    pages->context.trace = &pages->trace;

    // A signal handler may have come first; its context stays, ours is free again.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (own_context == nullptr) {
        show_window(pages->window);
        own_context = &pages->context;
    } else {
        pages->owner.store(0);
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    errno = errno_before;
    return *own_context;
}

}  // namespace

constinit thread_local ThreadContext* own_context
    [[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]] = nullptr;

constinit thread_local AtomicWindow* own_atomic_window
    [[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]] = nullptr;

void each_atomic_window(void (*visit)(AtomicWindow& window, void* context),
                        void* context) noexcept {
    // Acquire: as in take_used_pages().
    for (ThreadPages* pages = newest_pages.load(std::memory_order_acquire); pages != nullptr;
         pages = pages->next)
        visit(pages->window, context);
}

ThreadContext* exchange_thread_context(ThreadContext* next) noexcept {
    return std::exchange(own_context, next);
}

ThreadContext& this_thread() noexcept {
    ThreadContext* const context = own_context;
    return context != nullptr ? *context : make_context();
}

namespace {
bool on_signal_stack(const ThreadContext& context) noexcept {
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    return here - context.signal_stack < context.signal_stack_bytes;
}
}  // namespace

void call_on_runtime_stack(RuntimeCall function, void* argument) noexcept {
    ThreadContext& context = this_thread();
    const bool in_runtime_before = context.in_runtime;
    context.in_runtime = true;
    if (context.on_runtime_stack || on_signal_stack(context)) {
        function(argument);
    } else {
        // Set before the switch and cleared after it: a signal in between then runs its calls
        // where it is, instead of overwriting frames on the runtime stack.
        context.on_runtime_stack = true;
        std::atomic_signal_fence(std::memory_order_seq_cst);
        hiroba_call_on_stack(function, argument, context.runtime_stack_top);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        context.on_runtime_stack = false;
    }
    context.in_runtime = in_runtime_before;
}

}  // namespace hiroba
