// SPDX-License-Identifier: BSD-3-Clause
// Role: what a node's memory does, for the recording (base/record.hpp): faults, releases, acquires
// and merges, with what they moved.
// Invariant: nothing is decided by it. Off, each costs one load and one branch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/record.hpp"
#include "dsm/counts/place_table.hpp"

namespace hiroba::dsm {

/// What is told of spans, by its place in RecordBuffer::tally.
enum class Tally : unsigned { by_notice, by_home, renewed, whole, ahead, merged, stale, bytes };
static_assert(static_cast<unsigned>(Tally::bytes) < RecordBuffer::tallies);

/// Adds to the calling thread's tally, if `member` has one.
inline void tally(PlaceCounters::Member member, std::uint64_t by) noexcept {
    if (!is_recording()) [[likely]]
        return;
    Tally which;
    if (member == &PlaceCounters::fetches_by_notice)
        which = Tally::by_notice;
    else if (member == &PlaceCounters::fetches_by_home)
        which = Tally::by_home;
    else if (member == &PlaceCounters::renewals)
        which = Tally::renewed;
    else if (member == &PlaceCounters::taken_whole)
        which = Tally::whole;
    else if (member == &PlaceCounters::fetched_ahead)
        which = Tally::ahead;
    else if (member == &PlaceCounters::blocks_merged)
        which = Tally::merged;
    else if (member == &PlaceCounters::invalidations)
        which = Tally::stale;
    else if (member == &PlaceCounters::bytes_fetched)
        which = Tally::bytes;
    else
        return;
    if (RecordBuffer* const buffer = record_buffer())
        buffer->tally[static_cast<unsigned>(which)] += by;
}

/// A fault, release or acquire while it lives, with what the thread tallies meanwhile.
class RecordedWork {
public:
    /// @param address  of the access, where it is a fault
    explicit RecordedWork(RecordKind kind, std::uintptr_t address = 0, bool write = false) noexcept
        : span_(kind), kind_(kind) {
        if (is_recording()) [[unlikely]]
            begin(address, write);
    }
    RecordedWork(const RecordedWork&) = delete;
    RecordedWork& operator=(const RecordedWork&) = delete;
    ~RecordedWork() {
        if (buffer_ != nullptr) [[unlikely]]
            end();
    }

private:
    void begin(std::uintptr_t address, bool write) noexcept;
    void end() noexcept;

    RecordedSpan span_;
    RecordKind kind_;
    RecordBuffer* buffer_ = nullptr;
    std::uint64_t before_[RecordBuffer::tallies];
};

/// A release merges the block at `address`.
/// @param live   what this node's threads have written
/// @param known  what others have of it so far
void record_merge(std::uintptr_t address, const std::byte* live, const std::byte* known,
                  std::size_t bytes, RecordKind kind = RecordKind::merged) noexcept;
/// Bytes of a block have come.
inline void record_fetched(std::uintptr_t address, std::uint32_t from, std::size_t bytes) noexcept {
    record(RecordKind::fetched, address, from | std::uint64_t{bytes} << 32);
}

}  // namespace hiroba::dsm
