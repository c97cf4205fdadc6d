// SPDX-License-Identifier: BSD-3-Clause
// Role: what a recorded run's events come to: where the time went, by thread, by synchronization
// and by variable, and what happened to each block.
// Invariant: times of threads are self times: nothing is in two of them, and together they are how
// long the program ran.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/report/names.hpp"
#include "tools/report/recording.hpp"

namespace hiroba::tools {

/// What a thread's time went into.
enum class Share : unsigned {
    computing,
    faults,    ///< memory of other nodes is brought
    releases,  ///< changes are made known
    acquires,  ///< changes of others are taken over
    atomics,   ///< on what another node has
    locks,     ///< until a lock is had
    slower,    ///< for threads that have more to do before a meeting
    serial,    ///< while the first thread is outside of regions
    meetings,  ///< begin and end of regions and barriers themselves
};
inline constexpr unsigned shares_count = 9;
const char* text_of(Share share);
using Shares = std::array<std::int64_t, shares_count>;

struct ThreadTime {
    std::uint32_t node = 0, thread = 0, stream = 0;
    Shares ns{};
    std::int64_t cpu_ns = 0;
};

/// Between two meetings: the region and how many barriers were passed in it; behind the region, the
/// serial part.
using Phase = std::uint64_t;
constexpr Phase serial_part = 0xfffff;
constexpr Phase phase_of(std::uint64_t region, std::uint64_t barriers) {
    return region << 20 | (barriers < serial_part ? barriers : serial_part - 1);
}
constexpr bool is_serial(Phase phase) { return (phase & serial_part) == serial_part; }
constexpr std::uint64_t region_of(Phase phase) { return phase >> 20; }

/// An event, with what the analysis knows of it.
struct Moment {
    const Event* event = nullptr;
    std::int64_t self_ns = 0;
    std::uint32_t stream = 0;
    Phase phase = 0;
};

struct SyncRow {
    SyncPlace place;
    std::uint64_t times = 0;  ///< meetings, locks and releases there, of all threads
    Shares ns{};              ///< of what followed it too: faults belong to the place before them
    std::uint64_t faults = 0, merged = 0, stale = 0, bytes = 0;
    std::int64_t sum_ns() const;
};

/// Something that happened to a block.
struct Touch {
    enum class Kind : std::uint8_t {
        read_fault,
        write_fault,
        fetched,
        merged,
        given_up,  ///< what was written, maybe long before, of a block that was exclusive
        exclusive,
        atomic
    };
    std::uint64_t block = 0, address = 0;
    std::int64_t at_ns = 0;
    std::int64_t cost_ns = 0;
    Phase phase = 0;
    std::uint32_t node = 0, stream = 0, variable = 0;
    Kind kind = Kind::fetched;
    std::uint32_t place = 0;
    std::uint64_t detail = 0;  ///< fault: its instruction; merged: its 64 parts; fetched: from
    std::uint64_t bytes = 0;   ///< fetched
    ChangeShape shape;         ///< merged
};

struct VariableRow {
    std::string name, line;
    enum class Where : std::uint8_t { named, heap, stack, unknown } where = Where::unknown;
    std::uint64_t bytes = 0;  ///< of the variable; 0: unknown
    std::uint64_t read_faults = 0, write_faults = 0, merged = 0, fetched_bytes = 0;
    std::int64_t fault_ns = 0, release_ns = 0, acquire_ns = 0, atomic_ns = 0;
    std::set<std::uint64_t> blocks;
    std::set<std::uint32_t> writers, readers;       ///< nodes
    std::uint64_t falsely_shared = 0;               ///< blocks
    std::map<std::uint64_t, std::int64_t> by_code;  ///< faults' time by their instruction
    std::int64_t sum_ns() const { return fault_ns + release_ns + acquire_ns + atomic_ns; }
};

/// What threads spend in vain, added up to what the run would take less: phase by phase that of the
/// thread that has most of it.
class Removable {
public:
    void add(Phase phase, std::uint32_t stream, std::int64_t ns) { ns_[{phase, stream}] += ns; }
    std::int64_t total() const;
    std::size_t phases() const;
    bool empty() const { return ns_.empty(); }

private:
    std::map<std::pair<Phase, std::uint32_t>, std::int64_t> ns_;
};

struct Advice {
    std::string illness;  ///< "false sharing", as the guide calls it
    std::string what;     ///< a sentence
    std::string cure;
    std::string line;  ///< where
    std::int64_t saves_ns = 0;
    enum class Sure : std::uint8_t { low, medium, high } sure = Sure::medium;
};

struct Analysis {
    const Recording* recording = nullptr;
    Names names;
    std::int64_t wall_ns = 0;
    std::uint64_t regions = 0;
    std::vector<ThreadTime> threads;
    Shares all{};
    std::vector<Moment> moments;         ///< of the program's threads, stream by stream
    std::vector<SyncRow> syncs;          ///< the dearest first
    std::vector<Touch> touches;          ///< by block, then by time
    std::vector<VariableRow> variables;  ///< Touch::variable is an index
    std::vector<std::uint32_t> dearest;  ///< of variables
    std::vector<Advice> advice;
    std::string busy;  ///< that threads had no processor for much of the time; or empty
};

Analysis analyse(const Recording& recording);

// Its parts.
void look_at_threads(Analysis& analysis);
void look_at_memory(Analysis& analysis);
void advise_on_memory(Analysis& analysis);
void advise_on_threads(Analysis& analysis);

}  // namespace hiroba::tools
