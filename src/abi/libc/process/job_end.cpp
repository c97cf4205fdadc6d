// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes exit(), _exit(), _Exit() and quick_exit(), and ends nodes.
// Invariant: a status given on any node becomes the job's. abort() and fatal signals are left
// alone: the launcher sees how the process died, and the core is a true one.
#include "abi/libc/process/job_end.hpp"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <span>

#include "abi/libc/real.hpp"
#include "abi/messages.hpp"
#include "abi/streams.hpp"
#include "abi/world.hpp"
#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "base/log.hpp"
#include "base/service_thread.hpp"
#include "base/thread_context.hpp"
#include "dsm/memory/fault_engine.hpp"
#include "omp/process/node_threads.hpp"

extern "C" int omp_in_parallel();

HIROBA_REAL(exit);
HIROBA_REAL(_exit);
HIROBA_REAL(quick_exit);

namespace hiroba::abi {
namespace {

constexpr std::uint64_t drain_ns = 500'000'000;
/// Another node waits only for what it owes node 0, which else repeats its good-bye.
constexpr std::uint64_t worker_drain_ns = 50'000'000;

constinit std::atomic<pid_t> owner{0};  ///< the node's process; a forked child has another id
constinit std::atomic<bool> ended{false};
constinit std::atomic<std::uint32_t> workers_ended{0};
constinit std::atomic<int> quick_status{0};

/// Whether an exit without handlers must be told to the job: also on one node, which reports.
bool ends_node(const void* return_address) noexcept {
    return world() != nullptr && !is_own_code(return_address) && is_node_process();
}

/// Regions that stayed here; by function if they are worth a word.
void report_stayed(World& node) noexcept {
    const omp::StayedRegions& stayed = node.omp->stayed_regions();
    if (stayed.count() == 0) return;
    const net::NamedCount all[] = {{"regions_stayed", stayed.count()}};
    node.control->report_counts(all, std::size(all));
    if (!stayed.is_much(now_ns())) return;
    for (const omp::StayedRegions::Function& each : stayed.functions()) {
        if (each.code == nullptr) continue;
        const net::NamedCount counts[] = {{"regions_stayed", each.count},
                                          {"stayed_us", each.ns / 1000}};
        node.control->report_place({reinterpret_cast<std::uintptr_t>(each.code), SyncKind::region},
                                   counts, std::size(counts));
    }
}

/// The last words of a node: after them an exit with status 0 is orderly.
void report(World& node, int status) noexcept {
    if (node.memory != nullptr) dsm::report_counts(*node.memory, *node.control);
    const omp::TaskCounts tasks = node.omp->task_counts();
    if (tasks.executed != 0) {
        const net::NamedCount counts[] = {{"tasks_executed", tasks.executed},
                                          {"tasks_taken", tasks.taken}};
        node.control->report_counts(counts, std::size(counts));
    }
    report_stayed(node);
    node.control->report_participation(node.omp->regions_taken_part(), status);
}

void on_exit_of_program(int status, void*) { end_program(status); }

void on_quick_exit_of_program() { end_program(quick_status.load(std::memory_order_relaxed)); }

/// Carries out what another node's exit() or quick_exit() asks of node 0.
struct ExitRequest {
    int status = 0;
    bool quick = false;
};
/// Node 0: the first request; written by the message handler before `exit_asked`.
constinit ExitRequest exit_request;
constinit std::atomic<std::uint32_t> exit_asked{0};

/// A program's exit on a node other than 0: node 0 runs the handlers, which are registered there,
/// and ends the job. This thread waits for its own end, which the launcher brings: it kills all
/// nodes when node 0 has ended, however that ended.
[[noreturn]] void ask_for_exit(int status, bool quick) noexcept {
    flush_streams();
    flush_stdio_at_end();
    World& node = *world();
    on_runtime_stack([&node, status, quick] {
        node.memory->flush();
        const ExitRequest request{status, quick};
        const Bytes body = std::as_bytes(std::span(&request, 1));
        node.endpoint->send(NodeId{0}, message::exit_request, net::Urgency::wake_service,
                            std::span(&body, 1));
    });
    for (;;) pause();
}

void on_exit_request(void*, NodeId from, Bytes body) noexcept {
    HIROBA_INVARIANT(body.size() == sizeof(ExitRequest), "%lu bytes from node %u", body.size(),
                     from.value);
    static constinit std::atomic<bool> taken{false};
    if (taken.exchange(true)) return;  // the first to ask decides, as the first exit() does
    std::memcpy(&exit_request, body.data(), sizeof exit_request);
    exit_asked.store(1, std::memory_order_release);  // pairs with run_exit()
    exit_asked.notify_all();
}

/// Body of node 0's thread that exits in another node's name, beside whatever main is doing: so
/// does exit() in any thread of a process.
void* run_exit(void*) {
    dsm::give_alternate_stack();
    exit_asked.wait(0, std::memory_order_acquire);
    world()->omp->count_program_threads(1);
    on_runtime_stack([] { world()->memory->flush(); });
    if (exit_request.quick) {
        quick_status.store(exit_request.status, std::memory_order_relaxed);
        real_quick_exit(exit_request.status);
    }
    real_exit(exit_request.status);
    __builtin_unreachable();
}

/// _exit() on a node other than 0: nothing is to run anywhere; the launcher ends the job.
/// Should it be unable to, this process ends by itself, which ends the job too.
[[noreturn]] void ask_for_end(int status) noexcept {
    constexpr int tenths_max = 50;
    flush_streams();
    flush_stdio_at_end();
    world()->control->request_exit(status & 0xff);
    for (int tenths = 0; tenths < tenths_max; ++tenths) {
        const timespec tenth{0, 100'000'000};
        nanosleep(&tenth, nullptr);
    }
    real__exit(status);
    __builtin_unreachable();
}

bool is_worker() noexcept { return world()->job.self.value != 0; }

/// exit without handlers: output already written stays, the job's other nodes are told.
[[noreturn]] void exit_at_once(int status) noexcept {
    if (is_worker()) ask_for_end(status);
    end_program(status);
    real__exit(status);
    __builtin_unreachable();
}

}  // namespace

bool is_node_process() noexcept { return owner.load(std::memory_order_relaxed) == getpid(); }

void register_end_of_program() noexcept {
    owner.store(getpid(), std::memory_order_relaxed);
    on_exit(&on_exit_of_program, nullptr);
    at_quick_exit(&on_quick_exit_of_program);
}

void end_program(int status) noexcept {
    World* const node = world();
    if (node == nullptr || !is_node_process() || node->job.self.value != 0) return;
    if (ended.exchange(true)) return;
    flush_streams();
    const bool asked = exit_asked.load(std::memory_order_acquire) != 0;
    if (node->memory != nullptr && (asked || omp_in_parallel() != 0)) {
        // The others stand at barriers this node will not reach: they cannot be sent home.
        node->omp->finish_tool(false);
        flush_stdio_at_end();
        report(*node, status);
        node->control->request_exit(status & 0xff);
        return;
    }
    if (node->memory != nullptr) {
        node->omp->quit();
        // The others must hear of it; should they not, the launcher ends them a second later.
        on_runtime_stack([node] {
            if (!node->endpoint->drain(drain_ns))
                log(LogLayer::abi, LogLevel::info,
                    "node 0 has waited %lu ms for nodes that have not acknowledged the end",
                    drain_ns / 1'000'000);
        });
    }
    node->omp->finish_tool(omp_in_parallel() == 0);
    report(*node, status);
}

void exit_as_program(int status) noexcept {
    if (world() != nullptr && is_node_process() && is_worker()) ask_for_exit(status, false);
    real_exit(status);
    __builtin_unreachable();
}

void listen_for_exits(net::Endpoint& endpoint) noexcept {
    endpoint.on(message::exit_request, &on_exit_request, nullptr);
}

void start_exit_thread() noexcept {
    pthread_t thread;
    const int failure = pthread_create(&thread, nullptr, &run_exit, nullptr);
    if (failure != 0) ServiceThreadStart::fail("exits for other nodes", failure);
    pthread_detach(thread);
}

void end_worker_thread() noexcept {
    World* const node = world();
    const std::uint32_t before = workers_ended.fetch_add(1);
    if (before + 1 < omp::node_threads_started()) {
        for (;;) pause();  // ends with the process, by the last thread to come here
    }
    node->omp->finish_tool(true);
    // All but this was written at the end of the last region; global memory may be gone by now.
    flush_stdio_at_end();
    on_runtime_stack([node] { node->endpoint->drain(worker_drain_ns); });
    report(*node, 0);
    real__exit(0);
    __builtin_unreachable();
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

void exit(int status) noexcept {
    if (ends_node(__builtin_return_address(0)) && is_worker()) ask_for_exit(status, false);
    real_exit(status);
    __builtin_unreachable();
}

void _exit(int status) {
    if (ends_node(__builtin_return_address(0))) exit_at_once(status);
    real__exit(status);
    __builtin_unreachable();
}

void _Exit(int status) noexcept {
    if (ends_node(__builtin_return_address(0))) exit_at_once(status);
    real__exit(status);
    __builtin_unreachable();
}

void quick_exit(int status) noexcept {
    quick_status.store(status, std::memory_order_relaxed);
    if (ends_node(__builtin_return_address(0)) && is_worker()) ask_for_exit(status, true);
    real_quick_exit(status);
    __builtin_unreachable();
}

}  // extern "C"
