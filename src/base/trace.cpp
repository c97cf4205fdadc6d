// SPDX-License-Identifier: BSD-3-Clause
// Role: the trace rings' memory and their printing.
#include "base/trace.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "base/line.hpp"
#include "base/log.hpp"
#include "base/thread_context.hpp"

namespace hiroba {

void set_trace(bool on) noexcept { trace_is_on.store(on, std::memory_order_relaxed); }

void trace_always(const char* tag, std::uint64_t first, std::uint64_t second) noexcept {
    ThreadContext& context = this_thread();
    if (context.trace == nullptr) return;  // The thread is being made; nothing to tell yet.
    TraceRing& ring = *context.trace;
    // Counted first: a signal handler that traces in between takes the next place, not this one.
    TraceRecord& record = ring.records[ring.count++ % trace_records_max];
    record = {now_ns(), tag, first, second};
    if (logs_trace(tag)) [[unlikely]] {
        Line line;
        line.append(identity());
        line.append_format("%s 0x%lx 0x%lx", tag, first, second);
        line.write_to(STDERR_FILENO);
    }
}

void print_trace(int fd) noexcept {
    const ThreadContext* context = this_thread_if_known();
    if (context == nullptr || context->trace == nullptr) return;
    const TraceRing& ring = *context->trace;
    const std::uint64_t now = now_ns();
    const std::uint64_t kept = std::min<std::uint64_t>(ring.count, trace_records_max);
    for (std::uint64_t number = ring.count - kept; number < ring.count; ++number) {
        const TraceRecord& record = ring.records[number % trace_records_max];
        if (record.tag == nullptr) continue;
        Line line;
        line.append(identity());
        line.append_format("trace -%lu us: %s 0x%lx 0x%lx", (now - record.time_ns) / 1000,
                           record.tag, record.first, record.second);
        line.write_to(fd);
    }
}

}  // namespace hiroba
