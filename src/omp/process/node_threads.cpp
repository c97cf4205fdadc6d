// SPDX-License-Identifier: BSD-3-Clause
// Role: thread creation on slices, the starting gate, and signal masks of runtime threads.
#include "omp/process/node_threads.hpp"

#include <link.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "base/fatal.hpp"
#include "base/latch.hpp"
#include "base/service_thread.hpp"
#include "base/short_slice.hpp"
#include "base/thread_context.hpp"
#include "dsm/memory/fault_engine.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::omp {
namespace {

/// One node's start, in private memory for the life of the process.
struct Start {
    ThreadBody body = nullptr;
    std::uint32_t first_global_thread = 0;
    bool has_peers = false;
    std::atomic<bool> gate_open{false};
    std::atomic<std::uint32_t> threads{0};
};
constinit Start start;

void* enter(void* argument) {
    const auto local_thread =
        static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(argument));
    dsm::give_alternate_stack();
    this_thread().global_thread = start.first_global_thread + local_thread;
    // Other nodes wait for threads that serve them beside this one, which may compute for long.
    if (start.has_peers) ask_for_short_slices(ShortSlice::of_program);

    // Pairs with the release in start_node_threads(). The gate opens after at most a few
    // pthread_create calls, or the process ends because one of them failed.
    Backoff backoff;
    while (!start.gate_open.load(std::memory_order_acquire)) backoff.pause();
    start.body(local_thread);
    fatal("thread %u has left its body", start.first_global_thread + local_thread);
}

int add_thread_local_bytes(dl_phdr_info* info, std::size_t, void* sum) {
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& header = info->dlpi_phdr[i];
        if (header.p_type == PT_TLS) {
            *static_cast<std::size_t*>(sum) += header.p_memsz + header.p_align;
        }
    }
    return 0;
}

/// Puts into core files what a debugger needs of a stack; all other global memory stays out.
void put_into_core(dsm::AddressRange stack, std::uint32_t threads) noexcept {
    constexpr std::size_t alone_bytes = std::size_t{4} << 20, one_of_many_bytes = alone_bytes / 4;
    const std::size_t bytes = std::min(stack.bytes, threads > 1 ? one_of_many_bytes : alone_bytes);
    dsm::kernel_call(SYS_madvise, stack.end() - bytes, bytes, MADV_DODUMP);
}

Result<void> start_thread(dsm::AddressRange stack, std::uint32_t local_thread) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_t thread;
    int failure =
        pthread_attr_setstack(&attributes, reinterpret_cast<void*>(stack.address), stack.bytes);
    if (failure == 0) {
        touch_top(stack);
        failure = pthread_create(&thread, &attributes, &enter,
                                 reinterpret_cast<void*>(std::uintptr_t{local_thread}));
    }
    pthread_attr_destroy(&attributes);
    if (failure == 0) {
        start.threads.fetch_add(1);
        return {};
    }
    return Error{ErrorKind::environment,
                 "thread " + std::to_string(local_thread) + " with a stack of " +
                     std::to_string(stack.bytes) +
                     " bytes did not start: " + std::strerror(failure) + ". " +
                     (failure == EINVAL ? "Raise HIROBA_STACK" : thread_advice(failure))};
}

}  // namespace

void touch_top(dsm::AddressRange stack) noexcept {
    constexpr std::size_t first_frames_bytes = std::size_t{64} << 10;
    std::size_t bytes = first_frames_bytes;
    dl_iterate_phdr(&add_thread_local_bytes, &bytes);
    bytes = std::min(stack.bytes, round_up(bytes, page_bytes));
    for (std::uintptr_t page = stack.end() - bytes; page < stack.end(); page += page_bytes) {
        *reinterpret_cast<volatile std::byte*>(page) = std::byte{0};
    }
}

dsm::AddressRange usable_stack(dsm::AddressRange slice) noexcept {
    return {slice.address + page_bytes, slice.bytes - page_bytes};
}

Result<void> start_node_threads(const dsm::AddressMap& map, NodeId self, std::uint32_t threads,
                                ThreadBody body) {
    start.body = body;
    start.first_global_thread = self.value * map.shape().threads_per_node;
    start.has_peers = map.shape().nodes > 1;
    for (std::uint32_t local = 0; local < threads; ++local) {
        const auto slice = map.stack_slice(start.first_global_thread + local);
        put_into_core(slice, threads);
        if (auto started = start_thread(usable_stack(slice), local); !started) return started;
    }
    start.gate_open.store(true, std::memory_order_release);  // pairs with enter()
    return {};
}

Result<void> start_node_thread(const dsm::AddressMap& map, NodeId self,
                               std::uint32_t local_thread) {
    const auto slice = map.stack_slice(self.value * map.shape().threads_per_node + local_thread);
    put_into_core(slice, local_thread + 1);
    return start_thread(usable_stack(slice), local_thread);
}

std::uint32_t node_threads_started() noexcept { return start.threads.load(); }

sigset_t block_asynchronous_signals() noexcept {
    sigset_t blocked;
    sigset_t former;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) {
        sigdelset(&blocked, fault);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &former);
    return former;
}

}  // namespace hiroba::omp
