// SPDX-License-Identifier: BSD-3-Clause
// Role: the face of the distributed shared memory: what `omp` and `abi` may ask of it.
// Invariant: sequential consistency for data-race-free programs whose synchronization calls
// release() before and acquire() after each hand-over, with the news passed between.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/thread_context.hpp"
#include "dsm/memory/address_map.hpp"
#include "dsm/memory/fault_engine.hpp"
#include "gas/gas.hpp"
#include "net/bootstrap/job.hpp"
#include "net/net.hpp"

namespace hiroba::dsm {

/// Settings of one shared memory; equal on every node.
struct MemoryOptions {
    std::uint32_t notices_max = 1024;  ///< K: write notices a signature holds (HIROBA_NOTICES)
    std::uint64_t lease = 10;          ///< how far a read extends rts
    std::uint32_t lock_hops = 8;       ///< links a lock request follows before it is a message
    bool by_place = false;             ///< counts for each SyncPlace too (HIROBA_STATS)
    bool watch_ahead = false;  ///< notices the use of some blocks fetched ahead (HIROBA_STATS)
    enum class Race : std::uint8_t { off, report, all, abort } race = Race::report;
    bool exclusive = true;  ///< blocks that one node alone uses are not compared (HIROBA_EXCLUSIVE)
    bool follow = true;     ///< a synchronization brings what was used behind it (HIROBA_FOLLOW)
    bool follow_all = false;  ///< for tests: whatever became stale
    bool join = true;         ///< exchanges for several blocks are one, where memory is not mapped
    /// Bytes of small changes that go along with their notices, to nodes whose memory is not
    /// mapped.
    std::uint32_t carried_max = 8192;
    /// Whether blocks of one node's own go to the next whole: those that wander, or for tests all.
    enum class HandOver : std::uint8_t { off, wandering, all } hand_over = HandOver::wandering;
    /// Behind how many releases other nodes are asked again what they have acquired; 0: 1 where
    /// their memory is mapped, elsewhere so many that it costs little.
    std::uint64_t asks_every = 0;
    static constexpr std::uint64_t never_asks = ~std::uint64_t{0};
    /// A block whose page the engine leaves open is watched after so many releases in a row that
    /// found it unchanged: about what a first write's fault costs.
    std::uint8_t vain_max = 8;
    /// The lock of a block is kept behind so many atomics of this node there in a row.
    std::uint16_t row_min = 4;
    /// A block whose lock is kept is open to atomics without a call behind the first. For tests,
    /// where OwnAtomics::try_go_by makes them.
    bool open_at_once = false;
    /// Runs of so many read misses get their twins at the first write to their chunk; 0: at once.
    std::uint32_t late_twins = 8;
    std::uint32_t sealed_blocks = 512;  ///< of such a chunk
    /// What an atomic orders: all memory, as a release and an acquire, or itself (HIROBA_ATOMICS).
    enum class Atomics : std::uint8_t { acq_rel, relaxed } atomics = Atomics::acq_rel;

    /// Reads the settings; a value that is no number is a usage error with the setting's name.
    static Result<MemoryOptions> from_settings();
};

/// Whether other threads of this node may be running program code during the call.
enum class Others : std::uint8_t { running, stopped };

/// Called on the releasing thread when two nodes have written the same bytes.
using RaceReport = void (*)(void* context, std::uintptr_t address, std::uint32_t bytes, NodeId self,
                            NodeId other) noexcept;

/// How blocks came to a node. Order and names: docs/layers/dsm.md.
struct MissCounts {
    std::uint64_t read_faults = 0, write_faults = 0, fetches_by_notice = 0, fetches_by_home = 0;
    std::uint64_t renewals = 0, bytes_fetched = 0, fetched_ahead = 0;
    /// How many of the blocks fetched ahead had their use watched, and were used; only with
    /// watch_ahead.
    std::uint64_t ahead_watched = 0, ahead_used = 0;
    /// Brought by a synchronization: in place, or fetched; of a sample of the latter, not used.
    std::uint64_t followed = 0, carried = 0, expected = 0, expected_unused = 0;
};

/// One node's counters since start.
struct MemoryCounts : MissCounts {
    std::uint64_t releases = 0, acquires = 0;
    std::uint64_t blocks_merged = 0, notices_made = 0, notices_dropped = 0, invalidations = 0;
    std::uint64_t lease_expiries = 0, home_migrations = 0, atomics = 0, flushes = 0, races = 0;
    std::uint64_t pulls = 0;  ///< news asked for because bytes were newer than what was acquired
    /// Blocks that releases stopped looking at because no other node reads them, how many of them
    /// had to be shared again, and of these how many before another node had to ask.
    std::uint64_t made_exclusive = 0, given_up = 0, given_up_ahead = 0;
    std::uint64_t page_calls = 0;   ///< system calls that change or look at pages, of the process
    std::uint64_t held = 0;         ///< blocks whose lock was kept for a row of atomics
    std::uint64_t taken_first = 0;  ///< of those, exclusive before any node had touched them
    std::uint64_t taken_whole = 0;  ///< of those, handed over by another node
    /// Nanoseconds spent in each; measured only with MemoryOptions::by_place.
    std::uint64_t fault_ns = 0, release_ns = 0, acquire_ns = 0;
    /// Nanoseconds in faults, in atomics that take a block from another node and waiting to be
    /// allowed to; only since an atomic has first had to. In all threads together.
    std::uint64_t waited_ns = 0;
};

/// SharedMemory's enter_atomic() and leave_atomic() where they take a few instructions: no other
/// node can read the block, and no thread has its latch. They need little stack and no runtime
/// stack, and touch no register but the general ones. False: nothing was done, and the other
/// functions do it. Null: always. Thread: any.
/// @param passes  of pages on which atomics may go by without a call (block/atomic_passes.hpp);
///                nullptr: of none
struct OwnAtomics {
    void* context = nullptr;
    bool (*try_enter)(void* context, void* address, std::size_t bytes) noexcept = nullptr;
    /// However the section was entered.
    bool (*try_leave)(void* context, void* address, std::size_t bytes) noexcept = nullptr;
    const std::atomic<std::uint64_t>* passes = nullptr;
    static constexpr std::size_t places = 4096;  ///< of `passes`
    /// What a trampoline does by itself, for tests: the calling thread may make its atomic at
    /// `address` and then ends it.
    bool (*try_go_by)(void* context, void* address) noexcept = nullptr;
    void (*end_going_by)(void* context) noexcept = nullptr;
};

/// One node's part of the shared memory.
///
/// release() and acquire() switch to the private runtime stack themselves. "News" is the encoded
/// part of this node's signature that a peer may not have: {min_wts, notices}. It is a delta: each
/// news_for(p) assumes that all former ones to p arrive before it (ordered channel).
/// Thread: any, unless said otherwise. Nothing throws; broken invariants are fatal.
class SharedMemory {
public:
    /// Registers memory with `endpoint`; call before Endpoint::connect(), then attach() after.
    /// All nodes with equal arguments.
    static Result<std::unique_ptr<SharedMemory>> create(net::Endpoint& endpoint,
                                                        const AddressMap& map,
                                                        std::unique_ptr<FaultEngine> engine,
                                                        const MemoryOptions& options);
    virtual ~SharedMemory() = default;

    /// Maps the main range at its fixed address and starts resolving faults. After connect().
    /// This node's threads' stack slices are pinned. `early` (whole pages from the start of the
    /// early arena, maybe none) keeps node 0's bytes.
    virtual Result<void> attach(AddressRange early) = 0;
    /// Turns `range`, an image of the AddressMap, filled with this process's bytes, into global
    /// memory; node 0's bytes win. All nodes, before any thread of the program uses it there, node
    /// 0 first; after the start only on node 0's and the others' own demand (a library that is
    /// loaded later).
    virtual Result<void> adopt(AddressRange range) = 0;

    virtual const AddressMap& map() const noexcept = 0;
    virtual const EngineFacts& engine() const noexcept = 0;
    bool contains(const void* address) const noexcept {
        return map().offset_of(reinterpret_cast<std::uintptr_t>(address)).has_value();
    }

    /// Makes every write of this node's threads up to now available: merges dirty blocks, adds
    /// notices to the signature.
    virtual void release(Others others) noexcept = 0;
    /// Whether something learned waits for an acquire().
    virtual bool has_news() noexcept { return true; }
    /// Applies everything learn()ed: invalidates what is stale.
    virtual void acquire(Others others) noexcept = 0;

    /// Behind the last acquire of a synchronization, while no thread of the program runs here:
    /// brings what they used behind the same one before (this thread's SyncPlace).
    virtual void bring_expected() noexcept {}
    /// Encodes what `peer` may lack into `out` (at least news_bytes_max()) and marks it as sent.
    virtual std::size_t news_for(NodeId peer, MutableBytes out) noexcept = 0;
    /// Encodes what any node may lack (for objects whose next reader is unknown); marks nothing.
    virtual std::size_t news_for_anyone(MutableBytes out) noexcept = 0;
    virtual std::size_t news_bytes_max() const noexcept = 0;
    /// After an acquire() at a point where every node of the job has, or will have before it does
    /// anything else, all that this node knows (fork, barrier of all nodes): the next news begin
    /// here, and nothing is dropped into min_wts for it.
    void everyone_knows() noexcept { everyone_knows_through({}); }
    /// As above, where this node has told `told` alone (a tree's parent, or the root's children),
    /// through which all have, or will have, what it told there. None: it told each peer.
    virtual void everyone_knows_through(std::span<const NodeId> told) noexcept = 0;
    /// Remembers news for the next acquire(). `from`: the node that encoded it (self is ignored).
    virtual void learn(NodeId from, Bytes news) noexcept = 0;

    /// Fetches and maps the blocks around [address, +bytes) that are invalid here, without faults.
    virtual void prefetch(const void* address, std::size_t bytes) noexcept = 0;

    /// Touches a buffer so that the kernel can read it (or write it, `write`) right after: maps
    /// the blocks. For system calls on global memory.
    virtual void make_accessible(const void* address, std::size_t bytes, bool write) noexcept = 0;

    /// As make_accessible(), and it stays so until unpin() of the same bytes: an acquire brings
    /// pinned blocks up to date in place. Pins count. While `write` the kernel, too, may write.
    /// The machine's kernel may drop a mapping nevertheless, or hide it for an instant: a call that
    /// it refuses is to be made again after make_accessible() (docs/decisions/refused-calls.md).
    virtual void pin(const void* address, std::size_t bytes, bool write) noexcept = 0;
    virtual void unpin(const void* address, std::size_t bytes) noexcept = 0;
    /// Whether the machine's kernel has dropped a page of what is pinned, which it does not bring
    /// back by itself.
    virtual bool lacks_page(const void* address, std::size_t bytes) const noexcept = 0;

    /// Makes `stack` fit for a thread of this node: a block comes when it is touched, and stays
    /// accessible and writable, as after pin(), until drop_stack() of the same bytes. The
    /// `guard_bytes` at its low end (whole blocks) become inaccessible here; a touch there ends the
    /// program as a stack overflow. What is not global is left as it is.
    virtual void hold_stack(AddressRange stack, std::size_t guard_bytes) noexcept = 0;
    virtual void drop_stack(AddressRange stack, std::size_t guard_bytes) noexcept = 0;

    /// Code may lie in `range` (whole blocks of one extent) on this node: the program keeps some on
    /// its stacks.
    virtual void allow_execution(AddressRange range) noexcept = 0;

    /// Gives the memory of `ranges` (whole blocks) back to the machine, on this node. For memory
    /// that no thread of any node uses from before the first node's call until after the last
    /// one's return: then it reads as zero everywhere. False: something of it is pinned, or a
    /// stack, and keeps its bytes here. Followed by one discarded_everywhere().
    [[nodiscard]] virtual bool discard(std::span<const AddressRange> ranges) noexcept = 0;
    /// Every node has returned from the discard() that this answers. Until then blocks of it are
    /// not fetched ahead of time.
    virtual void discarded_everywhere() noexcept = 0;

    /// Enters the critical section of the block of [address, +bytes) (one block, 1 to 16 bytes):
    /// this node becomes its home and the bytes at `address` are current, mapped and writable;
    /// the caller performs one read-modify-write there and leaves. False when the address is not
    /// global: nothing was done. Source: the paper, section 3.2 (4).
    virtual bool enter_atomic(void* address, std::size_t bytes) noexcept = 0;
    virtual void leave_atomic(void* address, std::size_t bytes) noexcept = 0;
    /// Atomics on what is this node's alone need no call: own_atomics() has `passes` from here on.
    /// Once, before the program's first atomic; only where its code is rewritten.
    virtual void let_atomics_go_by() noexcept {}
    /// For atomics on what is this node's alone.
    virtual OwnAtomics own_atomics() noexcept { return {}; }

    /// A flush: release and acquire in one critical section on one job-wide object.
    virtual void flush() noexcept = 0;
    /// Whether no thread of another node runs program code, from now on until this is called with
    /// false: nobody could see what a flush tells, so that it is a fence unless another node has
    /// flushed. Until it is called, others run.
    virtual void others_rest(bool) noexcept {}
    /// A flush by the background flusher, beside the program: it counts as none of the program's.
    /// Returns whether there was anything to tell or to learn.
    virtual bool flush_aside() noexcept = 0;
    /// Whether a thread, here or elsewhere, has lately been seen to wait for a plain write.
    virtual bool somebody_spins() noexcept { return false; }
    /// A loop of the thread's loads waits there for another thread's write, and has come round: it
    /// returns when a next look is due, a short while later at most. Thread: any, with nothing
    /// held.
    virtual void await_write(const void*) noexcept {}
    /// Makes the release that other nodes have come to want; false: there is none. Nodes on threads
    /// of the machine have one of their own for this. Thread: any, with nothing held.
    virtual bool pay() noexcept { return false; }
    /// Whether pay() has something to do. Thread: any; a few loads.
    virtual bool has_to_pay() noexcept { return false; }
    /// Whether atomics of this node have put off a release, which others may come to want.
    virtual bool owes_release() noexcept { return false; }

    /// Called at the start of every release(), on the releasing thread, with nothing held: what
    /// must have left the process before another node learns of it. It touches no global memory.
    /// Before the program's first thread.
    virtual void before_release(void (*)() noexcept) noexcept {}
    /// Tells whether a thread that flushes is the only one of this node that runs program code.
    /// `begin` says so and keeps others from beginning, until `end`.
    struct Standstill {
        bool (*begin)(void* context) noexcept = nullptr;
        void (*end)(void* context) noexcept = nullptr;
        void* context = nullptr;
    };
    /// Before a thread flushes. Without it others are taken to run.
    virtual void flush_alone_by(Standstill) noexcept {}
    /// Where news lie that have come and are not learned yet. A node that sent them counts them as
    /// known. A thread that runs program code meanwhile, a signal handler at a barrier, may come
    /// upon bytes that need them.
    struct UnreadNews {
        void (*learn)(void* context) noexcept = nullptr;  ///< by learn(), if this thread may
        void* context = nullptr;
    };
    /// Before the program's first thread.
    virtual void learn_unread_by(UnreadNews) noexcept {}
    virtual void on_race(RaceReport report, void* context) noexcept = 0;
    virtual MemoryCounts counts() const noexcept = 0;
    /// Visits what happened at each place a thread synchronized at, and until its next one: misses
    /// belong to the synchronization that made them necessary. Nothing without by_place.
    using PlaceVisit = void (*)(void* context, const SyncPlace& place, const MemoryCounts& counts);
    virtual void each_place(PlaceVisit, void*) const noexcept {}
};

/// Whether `thread` is in the handler of a fault of the program's. A guess: of any thread.
bool resolves_fault(ThreadContext& thread) noexcept;
/// Leaves [begin, end) of the calling thread's stack out of what its releases compare: frames of
/// the runtime's lie there, over nothing of the program's. An empty range: none does.
void ignore_frames(std::uintptr_t begin, std::uintptr_t end) noexcept;

/// From now on the launcher hears of each race that `memory` finds. Both outlive the job.
void report_races(SharedMemory& memory, net::ControlChannel& launcher) noexcept;
/// Sends the launcher what `memory` has counted, by name, for the node and for each place.
void report_counts(const SharedMemory& memory, net::ControlChannel& launcher) noexcept;

}  // namespace hiroba::dsm
