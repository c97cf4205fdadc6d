// SPDX-License-Identifier: BSD-3-Clause
// Role: what a node's recording looks like in its file: a head, then chunks, each of one thread.
// Invariant: a record's kind is stored last; a record of kind `none` ends a chunk that was not
// filled. All numbers are of this machine's byte order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hiroba {

/// What happened. A span's record is made at its end, and `extra` is how long it took, in ticks.
enum class RecordKind : std::uint8_t {
    none,
    member,      ///< the thread runs the program: number over the job
    place,       ///< has synchronized at: address, SyncKind; before what is recorded next
    region,      ///< enters a region: its number, thread | team size << 32; extra: processor ns
    barrier,     ///< span: region, barriers passed in it | thread << 32
    barrier_at,  ///< arrives at a barrier: as above; extra: processor ns
    fork,        ///< span: begins a region: its number
    join,        ///< span, until all threads have ended the region: its number
    idle,        ///< span, until the next region: number of the last
    ends,        ///< arrives at the end of the region: its number; extra: processor ns
    wait,        ///< span: for tasks
    lock,     ///< span, until the lock is had, where that takes long: its key, locks taken on this
              ///< node
    unlock,   ///< span, where that takes long: its key
    fault,    ///< span: address | FaultWay << 56, instruction | blocks brought along << 48
    release,  ///< span: blocks merged | notices << 32, bytes read
    acquire,  ///< span: blocks made stale | brought up to date << 32, bytes read
    fetched,  ///< a block's bytes came: address, node | bytes << 32
    merged,   ///< changes of a block: address, mask of its 64 parts; extra: ChangeShape
    exclusive,  ///< a block is this node's alone: address
    atomic,     ///< had to go elsewhere: address, how often it was tried; extra: ns it took
    task,       ///< span, where it takes long: function
    loop,       ///< begins a loop that the runtime deals out: schedule, chunk
    allocated,  ///< address, bytes; extra: return address
    shape,      ///< where stacks lie: address, bytes each; extra: how many
    sample,     ///< phases of the sample: one of this many; second: records left out before
    given_up,   ///< as merged, of a block that was this node's alone
    atomics,    ///< how many there were on this node so far
    program,    ///< the program begins (1) or ends (0)
};
inline constexpr unsigned record_kinds = 28;

/// Flags of a fault.
enum class FaultWay : std::uint8_t {
    write = 1,
    by_notice = 2,
    by_home = 4,
    renewed = 8,
    taken_whole = 16,
    pulled = 32,  ///< another node had to make a release first
};

struct Record {
    std::uint64_t time = 0;  ///< ticks
    std::uint64_t head = 0;  ///< kind, in the lowest 8 bits, and extra
    std::uint64_t first = 0, second = 0;

    RecordKind kind() const noexcept { return static_cast<RecordKind>(head & 0xff); }
    std::uint64_t extra() const noexcept { return head >> 8; }
};
static_assert(sizeof(Record) == 32);

/// Which bytes of a block were changed: the first and the last, how many runs of them, how many; 14
/// bits each, and as large as these can tell.
struct ChangeShape {
    std::uint32_t first = 0, last = 0, runs = 0, bytes = 0;

    static constexpr std::uint64_t most = 0x3fff;
    constexpr std::uint64_t packed() const noexcept {
        const auto fit = [](std::uint64_t value) { return value < most ? value : most; };
        return fit(first) | fit(last) << 14 | fit(runs) << 28 | fit(bytes) << 42;
    }
    static constexpr ChangeShape of(std::uint64_t packed) noexcept {
        const auto part = [packed](unsigned shift) {
            return static_cast<std::uint32_t>(packed >> shift & most);
        };
        return {part(0), part(14), part(28), part(42)};
    }
};

inline constexpr std::size_t record_chunk_bytes = std::size_t{64} << 10;
inline constexpr std::size_t record_head_bytes = 4096;
inline constexpr std::uint64_t record_chunk_magic = 0x6b6e'7568'6263'6572;  // "recbhunk"
inline constexpr char record_magic[8] = {'h', 'i', 'r', 'o', 'b', 'a', 'R', '1'};

/// The head of a node's file, in its first page.
struct RecordFileHead {
    char magic[8];
    std::uint32_t rank, nodes, threads, cores;
    std::uint64_t chunks_max;
    std::uint64_t chunks;                            ///< that threads have wanted; may be more
    std::uint64_t block_bytes;                       ///< 0: not known yet
    std::uint64_t ticks, monotonic_ns, realtime_ns;  ///< of one moment, the start
    std::uint64_t host;                              ///< the same for nodes of one host
    std::uint64_t lost;                              ///< records that found no room
    char host_name[64];
    std::uint64_t processors[4];  ///< which of the host's first 256 the node may use; bits
};
static_assert(sizeof(RecordFileHead) <= record_head_bytes);

/// The first 64 bytes of each chunk.
struct RecordChunkHead {
    std::uint64_t magic;
    std::uint32_t stream, thread;       ///< thread: number over the job, where it is a member
    std::uint64_t ticks, monotonic_ns;  ///< of one moment, when it was begun
    std::uint64_t unused[4];
};
static_assert(sizeof(RecordChunkHead) == 64);
inline constexpr std::size_t record_chunk_records =
    (record_chunk_bytes - sizeof(RecordChunkHead)) / sizeof(Record);

}  // namespace hiroba
