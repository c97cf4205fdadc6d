// SPDX-License-Identifier: BSD-3-Clause
// Role: what each thread does, with times, in a file of its node (setting HIROBA_RECORD), for
// `hiroba report`.
// Invariant: a thread writes to chunks of its own, mapped from the file, so that a killed job
// leaves all that it had recorded. Off, a call costs one load and one branch. On, nothing is
// allocated, no lock is taken, and a handler of a signal may record, too.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/record_format.hpp"
#include "base/result.hpp"
#include "base/thread_context.hpp"

namespace hiroba {

/// Where a thread records. Part of what the runtime knows of it (base/trace.hpp); only the owning
/// thread uses it.
struct RecordBuffer {
    static constexpr unsigned tallies = 8;
    Record* next = nullptr;
    Record* end = nullptr;
    std::uint32_t stream = 0;  ///< its number in the file; 0: none yet
    bool leaves_out = false;   ///< this phase is none of the sample
    std::uint64_t left_out = 0;
    SyncPlace place;                    ///< recorded last
    std::uintptr_t fault_code = 0;      ///< the instruction whose access is being resolved
    std::uint64_t tally[tallies] = {};  ///< what the layers count, for the records of their spans
};

/// Whether record() does anything; false until start_recording(). Relaxed: no data depends on it.
inline std::atomic<bool> record_is_on{false};

inline bool is_recording() noexcept { return record_is_on.load(std::memory_order_relaxed); }

/// Begins to record into `path`.RANK, of at most `bytes_max` bytes; node 0 writes what it has
/// mapped to `path`.maps. Before the program's threads.
Result<void> start_recording(const char* path, std::uint64_t bytes_max, std::uint32_t rank,
                             std::uint32_t nodes, std::uint32_t threads);

/// How large the blocks are in which memory moves, for who reads the file.
void note_block_bytes(std::uint64_t bytes) noexcept;

/// Adds the record whether recording is on or not.
void record_always(RecordKind kind, std::uint64_t first, std::uint64_t second,
                   std::uint64_t extra) noexcept;

/// Notes that something happened.
///
/// @param extra  56 bits
/// @thread any; async-signal-safe
inline void record(RecordKind kind, std::uint64_t first = 0, std::uint64_t second = 0,
                   std::uint64_t extra = 0) noexcept {
    if (is_recording()) [[unlikely]]
        record_always(kind, first, second, extra);
}

/// The calling thread's buffer; nullptr: it is being made.
RecordBuffer* record_buffer() noexcept;

/// The calling thread is about to resolve the fault of the instruction at `code`.
inline void note_fault_code(std::uintptr_t code) noexcept {
    if (!is_recording()) [[likely]]
        return;
    if (RecordBuffer* const buffer = record_buffer()) buffer->fault_code = code;
}

/// The calling thread begins phase `number` of the program, which all nodes number alike. Where the
/// file fills up, some phases are left out whole, the same on each node.
void record_phase(std::uint64_t number) noexcept;

/// Processor time of the calling thread.
std::uint64_t thread_cpu_ns() noexcept;

/// The clock of records.
inline std::uint64_t record_ticks() noexcept { return __builtin_ia32_rdtsc(); }

/// Records how long something took, from its making to its end, as one record.
class RecordedSpan {
public:
    /// About a microsecond: what takes less and comes by the million is not recorded.
    static constexpr std::uint64_t long_ticks = 2500;

    /// @param least_ticks  what takes less is not recorded
    explicit RecordedSpan(RecordKind kind, std::uint64_t first = 0, std::uint64_t second = 0,
                          std::uint64_t least_ticks = 0) noexcept
        : first(first),
          second(second),
          kind_(kind),
          least_ticks_(least_ticks),
          begun_(is_recording() ? record_ticks() : 0) {}
    RecordedSpan(const RecordedSpan&) = delete;
    RecordedSpan& operator=(const RecordedSpan&) = delete;
    ~RecordedSpan() {
        if (begun_ != 0) [[unlikely]]
            end();
    }

    std::uint64_t first, second;

private:
    void end() const noexcept {
        const std::uint64_t took = record_ticks() - begun_;
        if (took >= least_ticks_) record_always(kind_, first, second, took);
    }
    RecordKind kind_;
    std::uint64_t least_ticks_, begun_;
};

}  // namespace hiroba
