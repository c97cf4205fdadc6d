// SPDX-License-Identifier: BSD-3-Clause
// Role: see thread_attributes.hpp.
// Invariant: a thread of a program that changes nothing but masks makes one system call more.
#include "abi/libc/process/thread_attributes.hpp"

#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <mutex>

#include "abi/libc/process/fortran_start.hpp"
#include "abi/libc/process/signal_masks.hpp"
#include "abi/libc/threads/kept_by_threads.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::abi {
namespace {

using dsm::kernel_call;
using dsm::kernel_failed;

constexpr std::size_t set_words = 16;
constexpr unsigned long nodes_max = set_words * 64 + 1;  ///< the kernel takes one off
constexpr int io_of_process = 1;
constexpr unsigned ask_domain = 0xffffffff;
constexpr int reset_on_fork = 0x40000000;

enum Part : unsigned {
    affinity,
    memory,
    scheduling,
    nice,
    io,
    slack,
    privileges,
    errors,
    domain,
    name,
    parts
};

/// Plain data. Without a part that `differs` from what its node began with, a thread of another
/// node has that node's own: hosts have processors and memory of their own.
struct Attributes {
    unsigned long differs = 0;  ///< bits of Part
    KernelMask mask = 0;
    unsigned long processors[set_words] = {};
    unsigned long memory_nodes[set_words] = {};
    long value[parts] = {};
    long priority = 0;  ///< of the scheduling policy
    char name[16] = {};
};

/// What is written down, in a list that only grows: kinds are few.
struct Record {
    Attributes attributes;
    const Record* next = nullptr;
};

constinit Attributes at_start;
constinit std::atomic<bool> differ{false};  ///< more than masks, on this node
constinit Latch writing;
constinit const Record* written = nullptr;

long of_prctl(int option) noexcept { return kernel_call(SYS_prctl, option, 0, 0, 0, 0); }

void read_all(Attributes& now) noexcept {
    kernel_call(SYS_sched_getaffinity, 0, sizeof now.processors, now.processors);
    int policy_of_memory = 0;
    if (!kernel_failed(
            kernel_call(SYS_get_mempolicy, &policy_of_memory, now.memory_nodes, nodes_max, 0, 0)))
        now.value[memory] = policy_of_memory;
    sched_param parameters{};
    kernel_call(SYS_sched_getparam, 0, &parameters);
    now.value[scheduling] = kernel_call(SYS_sched_getscheduler, 0);
    now.priority = parameters.sched_priority;
    now.value[nice] = 20 - kernel_call(SYS_getpriority, PRIO_PROCESS, 0);
    now.value[io] = kernel_call(SYS_ioprio_get, io_of_process, 0);
    now.value[slack] = of_prctl(PR_GET_TIMERSLACK);
    now.value[privileges] = of_prctl(PR_GET_NO_NEW_PRIVS);
    now.value[errors] = of_prctl(PR_MCE_KILL_GET);
    now.value[domain] = kernel_call(SYS_personality, ask_domain);
    kernel_call(SYS_prctl, PR_GET_NAME, now.name, 0, 0, 0);
}

/// What a new thread has of a policy that is not to be inherited.
void reset_policy(Attributes& of_maker) noexcept {
    long& policy = of_maker.value[scheduling];
    if ((policy & reset_on_fork) == 0) return;
    policy &= ~long{reset_on_fork};
    const bool is_real_time = policy == SCHED_FIFO || policy == SCHED_RR;
    if (is_real_time) policy = SCHED_OTHER;
    of_maker.priority = 0;
    if (is_real_time || of_maker.value[nice] < 0) of_maker.value[nice] = 0;
}

unsigned long differences(const Attributes& a, const Attributes& b) noexcept {
    unsigned long found = 0;
    for (unsigned part = 0; part < parts; ++part)
        if (a.value[part] != b.value[part]) found |= 1ul << part;
    if (memcmp(a.processors, b.processors, sizeof a.processors) != 0) found |= 1ul << affinity;
    if (memcmp(a.memory_nodes, b.memory_nodes, sizeof a.memory_nodes) != 0) found |= 1ul << memory;
    if (a.priority != b.priority) found |= 1ul << scheduling;
    if (memcmp(a.name, b.name, sizeof a.name) != 0) found |= 1ul << name;
    return found;
}

/// What a thread of this node becomes: `from`, where that differs, and else as it began.
Attributes on_this_node(const Attributes& from) noexcept {
    Attributes wanted = at_start;
    const auto takes = [&](Part part) { return (from.differs >> part & 1) != 0; };
    for (unsigned part = 0; part < parts; ++part)
        if (takes(Part{part})) wanted.value[part] = from.value[part];
    if (takes(affinity)) memcpy(wanted.processors, from.processors, sizeof from.processors);
    if (takes(memory)) memcpy(wanted.memory_nodes, from.memory_nodes, sizeof from.memory_nodes);
    if (takes(scheduling)) wanted.priority = from.priority;
    if (takes(name)) memcpy(wanted.name, from.name, sizeof from.name);
    return wanted;
}

bool are_equal(const Attributes& a, const Attributes& b) noexcept {
    static_assert(sizeof a == (35 + parts) * 8 + 16, "there is no padding");
    return memcmp(&a, &b, sizeof a) == 0;
}

const Record* find_written(const Attributes& wanted) noexcept {
    const Record* record = written;
    while (record != nullptr && !are_equal(record->attributes, wanted)) record = record->next;
    return record;
}

const Record* write_down(const Attributes& now) noexcept {
    const std::scoped_lock guard{writing};
    if (const Record* const known = find_written(now)) return known;
    bool zeroed = false;
    auto* const record = static_cast<Record*>(world()->heap->allocate(sizeof(Record), 64, &zeroed));
    if (record == nullptr) {
        die(exit_environment, "no room for %lu bytes of a thread's attributes: set HIROBA_HEAP",
            sizeof(Record));
    }
    memcpy(&record->attributes, &now, sizeof now);
    record->next = written;
    written = record;
    return record;
}

/// Says once for each what this node's kernel does not grant: the thread keeps what it has.
void tell_if_failed(long result, Part part) noexcept {
    if (!kernel_failed(result)) return;
    static constinit std::atomic<unsigned> told{0};
    const unsigned bit = 1u << part;
    if ((told.fetch_or(bit) & bit) != 0) return;
    static constexpr const char* names[parts] = {"processors of sched_setaffinity()",
                                                 "memory policy of set_mempolicy()",
                                                 "scheduling policy",
                                                 "nice value",
                                                 "I/O priority",
                                                 "timer slack",
                                                 "PR_SET_NO_NEW_PRIVS",
                                                 "PR_MCE_KILL",
                                                 "execution domain",
                                                 "name"};
    say("a thread of this node cannot have the %s that its leader has: %s. It keeps what it has",
        names[part], strerror(static_cast<int>(-result)));
}

long set_part(Part part, const Attributes& wanted) noexcept {
    const long value = wanted.value[part];
    const sched_param parameters{static_cast<int>(wanted.priority)};
    switch (part) {
        case affinity:
            return kernel_call(SYS_sched_setaffinity, 0, sizeof wanted.processors,
                               wanted.processors);
        case memory:
            if (value == 0) return kernel_call(SYS_set_mempolicy, 0, 0, 0);
            return kernel_call(SYS_set_mempolicy, value, wanted.memory_nodes, nodes_max);
        case scheduling: return kernel_call(SYS_sched_setscheduler, 0, value, &parameters);
        case nice: return kernel_call(SYS_setpriority, PRIO_PROCESS, 0, value);
        case io: return kernel_call(SYS_ioprio_set, io_of_process, 0, value);
        case slack: return kernel_call(SYS_prctl, PR_SET_TIMERSLACK, value, 0, 0, 0);
        // Nothing takes it back.
        case privileges:
            return value == 0 ? 0 : kernel_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        case errors: return kernel_call(SYS_prctl, PR_MCE_KILL, PR_MCE_KILL_SET, value, 0, 0);
        case domain: return kernel_call(SYS_personality, value);
        case name: return kernel_call(SYS_prctl, PR_SET_NAME, wanted.name, 0, 0, 0);
        case parts: break;
    }
    return 0;
}

void become(const Attributes& wanted) noexcept {
    Attributes now{};
    read_all(now);
    const unsigned long changes = differences(now, wanted);
    for (unsigned part = 0; part < parts; ++part)
        if ((changes >> part & 1) != 0) tell_if_failed(set_part(Part{part}, wanted), Part{part});
}

}  // namespace

void note_first_attributes(const sigset_t& mask) noexcept {
    read_all(at_start);
    memcpy(&at_start.mask, &mask, sizeof at_start.mask);
}

void thread_attribute_changed() noexcept {
    note_kept_by_thread();
    differ.store(true);
}

const void* attributes_of_this_thread() noexcept {
    const KernelMask mask = program_mask();
    // Relaxed: the thread asks for what it has changed itself.
    const bool more = differ.load(std::memory_order_relaxed);
    if (!more && mask == at_start.mask) return nullptr;
    Attributes now{};
    if (more) {
        read_all(now);
        reset_policy(now);
        now.differs = differences(now, at_start);
    }
    now.mask = mask;
    return write_down(now);
}

void take_over_attributes(const void* attributes) noexcept {
    // A copy: system calls cannot fault global memory in.
    Attributes from{};
    from.mask = at_start.mask;
    if (attributes != nullptr)
        memcpy(&from, &static_cast<const Record*>(attributes)->attributes, sizeof from);
    begin_with_mask(from.mask);
    forget_fortran_stream();
    if (from.differs != 0) differ.store(true);
    if (differ.load()) become(on_this_node(from));
}

}  // namespace hiroba::abi
