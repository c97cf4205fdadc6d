// SPDX-License-Identifier: BSD-3-Clause
// Role: a recorded run as events of threads, on one clock.
// Invariant: what is read may be anything: a record or chunk that makes no sense is left out and
// counted, and nothing is believed that would lead beyond the file.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/record_format.hpp"
#include "base/thread_context.hpp"
#include "tools/report/archive.hpp"

namespace hiroba::tools {

struct Event {
    std::int64_t begin_ns = 0, end_ns = 0;  ///< from the beginning of the job; equal: no span
    std::uint64_t first = 0, second = 0, extra = 0;
    std::uint32_t place = 0;  ///< where its thread had synchronized last: of Recording::places
    RecordKind kind = RecordKind::none;
};

/// What one thread did, in the order in which it ended.
struct Stream {
    std::uint32_t node = 0;
    std::int32_t thread = -1;  ///< its number over the job; -1: a thread of hiroba's own
    std::vector<Event> events;
};

struct RecordedBlock {
    std::uint64_t address = 0, bytes = 0, site = 0;
    std::int64_t at_ns = 0;
};

/// Threads' stacks, one behind the other.
struct StackArea {
    std::uint64_t address = 0, bytes_each = 0, count = 0;
};

struct RecordedNode {
    bool is_there = false;
    std::string host;
    std::uint64_t host_number = 0;
    std::uint32_t cores = 0;
    std::uint64_t lost = 0;                     ///< records that found no room
    std::array<std::uint64_t, 4> processors{};  ///< bits; none: an older recording
};

struct Recording {
    RecordedJob job;
    std::vector<RecordedNode> nodes;
    std::vector<Stream> streams;
    std::vector<SyncPlace> places;           ///< the first: none
    std::vector<RecordedBlock> allocations;  ///< by address, then by time
    StackArea stacks;
    std::uint64_t block_bytes = 4096;
    /// Threads' numbers over the job are of so many a node, whether there are or not.
    std::uint32_t threads_per_node_most() const;
    std::int64_t zero_ns = 0;           ///< the program's beginning, by the first node's clock
    std::int64_t end_ns = 0;            ///< of the program, or of what there is of it
    std::uint64_t phases_left_out = 0;  ///< events that the sample leaves out
    std::vector<std::string> notes;     ///< what is lacking, a line each
    std::string names;                  ///< of the archive
};

/// Whether its record is made at the end of something that takes time.
bool is_span(RecordKind kind);

/// newest: of each thread its first events and its last, for who looks at a job that runs.
enum class Extent : std::uint8_t { all, newest };
Recording decode(const Archive& archive, Extent extent = Extent::all);

}  // namespace hiroba::tools
