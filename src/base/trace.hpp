// SPDX-License-Identifier: BSD-3-Clause
// Role: the last things each thread did, kept for fatal() to print.
// Invariant: a ring belongs to one thread and lies in memory private to the node. Off
// (HIROBA_TRACE=0), a call costs one load and one branch.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/record.hpp"

namespace hiroba {

inline constexpr std::uint32_t trace_records_max = 64;

/// One thing that happened.
struct TraceRecord {
    std::uint64_t time_ns = 0;
    const char* tag = nullptr;  ///< static storage
    std::uint64_t first = 0, second = 0;
};

/// What one thread leaves behind; the newest is number `count - 1`, at its number modulo the size.
struct TraceRing {
    std::uint64_t count = 0;
    TraceRecord records[trace_records_max];
    RecordBuffer recorded;  ///< where HIROBA_RECORD is set, all that it does
};

/// Whether trace() records; false until set_trace(). Relaxed: no data depends on it.
inline std::atomic<bool> trace_is_on{false};

/// Turns tracing on or off (setting HIROBA_TRACE). Threads notice soon.
void set_trace(bool on) noexcept;

/// Adds the record whether tracing is on or not.
void trace_always(const char* tag, std::uint64_t first, std::uint64_t second) noexcept;

/// Notes that `tag` happened, with two numbers that tell which one.
///
/// @param tag  "layer.event", static storage: only the pointer is kept. Where HIROBA_LOG sets that
///             layer to trace, the record is also printed at once.
/// @thread any; async-signal-safe
inline void trace(const char* tag, std::uint64_t first = 0, std::uint64_t second = 0) noexcept {
    if (trace_is_on.load(std::memory_order_relaxed)) [[unlikely]]
        trace_always(tag, first, second);
}

/// Writes the calling thread's records to `fd`, oldest first, one line each, with the time before
/// now. Nothing if there are none. Async-signal-safe.
void print_trace(int fd) noexcept;

}  // namespace hiroba
