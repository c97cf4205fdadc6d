// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes exit(), _exit(), _Exit() and quick_exit(), and ends nodes.
// Invariant: a status given on any node becomes the job's. abort() and fatal signals are left
// alone: the launcher sees how the process died, and the core is a true one.
#include "abi/libc/job_end.hpp"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "abi/libc/real.hpp"
#include "abi/streams.hpp"
#include "abi/world.hpp"

extern "C" int omp_in_parallel();

HIROBA_REAL(exit);
HIROBA_REAL(_exit);
HIROBA_REAL(quick_exit);

namespace hiroba::abi {
namespace {

constinit std::atomic<pid_t> owner{0};  ///< the node's process; a forked child has another id
constinit std::atomic<bool> ended{false};
constinit std::atomic<std::uint32_t> workers_ended{0};
constinit std::atomic<int> quick_status{0};

bool in_node_process() noexcept { return owner.load(std::memory_order_relaxed) == getpid(); }

/// Whether an exit without handlers must be told to the job: also on one node, which reports.
bool ends_node(const void* return_address) noexcept {
    return world() != nullptr && !is_own_code(return_address) && in_node_process();
}

void add(net::NamedCount*& next, const char* name, std::uint64_t value) noexcept {
    std::strncpy(next->name, name, sizeof next->name - 1);
    next->value = value;
    ++next;
}

void report_counts(World& node) noexcept {
    const dsm::MemoryCounts c = node.memory->counts();
    net::NamedCount counts[24] = {};
    net::NamedCount* next = counts;
    add(next, "read_faults", c.read_faults);
    add(next, "write_faults", c.write_faults);
    add(next, "fetches_by_notice", c.fetches_by_notice);
    add(next, "fetches_by_home", c.fetches_by_home);
    add(next, "renewals", c.renewals);
    add(next, "bytes_fetched", c.bytes_fetched);
    add(next, "releases", c.releases);
    add(next, "acquires", c.acquires);
    add(next, "blocks_merged", c.blocks_merged);
    add(next, "notices_made", c.notices_made);
    add(next, "notices_dropped", c.notices_dropped);
    add(next, "invalidations", c.invalidations);
    add(next, "lease_expiries", c.lease_expiries);
    add(next, "updates", c.updates);
    add(next, "home_migrations", c.home_migrations);
    add(next, "atomics", c.atomics);
    add(next, "flushes", c.flushes);
    add(next, "races", c.races);
    node.control->report_counts(counts, static_cast<std::size_t>(next - counts));
}

/// The last words of a node: after them an exit with status 0 is orderly.
void report(World& node) noexcept {
    if (node.memory != nullptr) report_counts(node);
    node.control->report_participation(node.omp->regions_taken_part());
}

void on_exit_of_program(int status, void*) { end_program(status); }

void on_quick_exit_of_program() { end_program(quick_status.load(std::memory_order_relaxed)); }

/// A program's exit on a node other than 0: the launcher ends the job. Should it be unable to,
/// this process ends by itself, which the launcher takes as the end of the job too.
[[noreturn]] void ask_for_exit(int status) noexcept {
    constexpr int tenths_max = 50;
    flush_streams();
    fflush(nullptr);
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
    if (is_worker()) ask_for_exit(status);
    end_program(status);
    real__exit(status);
    __builtin_unreachable();
}

}  // namespace

void register_end_of_program() noexcept {
    owner.store(getpid(), std::memory_order_relaxed);
    on_exit(&on_exit_of_program, nullptr);
    at_quick_exit(&on_quick_exit_of_program);
}

void end_program(int status) noexcept {
    World* const node = world();
    if (node == nullptr || !in_node_process() || node->job.self.value != 0) return;
    if (ended.exchange(true)) return;
    flush_streams();
    if (node->memory != nullptr) {
        if (omp_in_parallel() != 0) {
            // The others stand at barriers this node will not reach: they cannot be sent home.
            fflush(nullptr);
            node->control->request_exit(status & 0xff);
        } else {
            node->omp->quit();
        }
    }
    report(*node);
}

void end_worker_thread() noexcept {
    World* const node = world();
    const std::uint32_t before = workers_ended.fetch_add(1);
    if (before + 1 < node->job.threads_per_node) {
        for (;;) pause();  // ends with the process, by the last thread to come here
    }
    // All but this was written at the end of the last region; global memory may be gone by now.
    fflush(nullptr);
    report(*node);
    real__exit(0);
    __builtin_unreachable();
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

void exit(int status) noexcept {
    if (ends_node(__builtin_return_address(0)) && is_worker()) ask_for_exit(status);
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
    if (ends_node(__builtin_return_address(0)) && is_worker()) ask_for_exit(status);
    real_quick_exit(status);
    __builtin_unreachable();
}

}  // extern "C"
