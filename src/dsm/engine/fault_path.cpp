// SPDX-License-Identifier: BSD-3-Clause
// Role: what happens in the faulting thread, on its alternate signal stack: brings a block current
// and maps it. Called with the block's latch held; allocates nothing, takes no other latch.
// Also used outside faults, to bring blocks current ahead of time.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <numeric>
#include <utility>

#include "base/atomic_window.hpp"
#include "base/thread_context.hpp"
#include "base/trace.hpp"
#include "dsm/engine/node.hpp"
#include "dsm/memory/fault_attached.hpp"
#include "dsm/memory/kernel_calls.hpp"
#include "dsm/thread_part.hpp"

namespace hiroba::dsm {

namespace {

/// Others that wait for the token see that this thread goes on.
class SlowPartOfQuantum {
public:
    SlowPartOfQuantum(AtomicQuantum& quantum, NewsBoard& board) noexcept
        : slow_(quantum), board_(quantum.has_token() ? &board : nullptr) {
        if (board_ != nullptr) board_->note_active(true);
    }
    SlowPartOfQuantum(const SlowPartOfQuantum&) = delete;
    SlowPartOfQuantum& operator=(const SlowPartOfQuantum&) = delete;
    ~SlowPartOfQuantum() {
        if (board_ != nullptr) board_->note_active(false);
    }

private:
    AtomicQuantum::SlowPart slow_;
    NewsBoard* board_;
};

/// Counts a write's fault while it lives; records any.
class FaultUnderWay {
public:
    FaultUnderWay(BlockEntry& entry, std::uintptr_t address, bool write) noexcept
        : recorded_(RecordKind::fault, address, write), entry_(write ? &entry : nullptr) {
        if (entry_ != nullptr) entry_->writes.faults.fetch_add(1, std::memory_order_relaxed);
    }
    FaultUnderWay(const FaultUnderWay&) = delete;
    FaultUnderWay& operator=(const FaultUnderWay&) = delete;
    ~FaultUnderWay() {
        // Release: pairs with let_write_faults_end(). What the fault brought is in place.
        if (entry_ != nullptr) entry_->writes.faults.fetch_sub(1, std::memory_order_release);
    }

private:
    RecordedWork recorded_;
    BlockEntry* entry_;
};

/// Whether the thread is at an atomic there without a call.
bool is_going_by(std::uintptr_t address) noexcept {
    const AtomicWindow* const window = own_atomic_window;
    return window != nullptr &&
           window->page.load(std::memory_order_relaxed) == address / page_bytes;
}

}  // namespace

// Whether a stack has grown up to there, which is said.
bool Node::is_overflow(BlockId block, std::uint64_t offset, std::uintptr_t address) noexcept {
    if (entries_[block].guards_stack) {
        note_guard(address);
        say("stack overflow at 0x%lx, in a thread the program made: ask for more by "
            "pthread_attr_setstacksize, or raise ulimit -s",
            address);
        return true;
    }
    if (!space_.is_stack_guard(offset)) return false;
    note_guard(address);
    say("stack overflow at 0x%lx: %lu bytes of stack per thread; raise OMP_STACKSIZE, ulimit -s or "
        "HIROBA_STACK",
        address, map().shape().stack_bytes);
    // The core is to show how it came to this: keep_cores_small() left most of it out.
    kernel_call(SYS_madvise, program_range(block).address, map().shape().stack_bytes, MADV_DODUMP);
    return true;
}

bool Node::on_fault(std::uintptr_t address, bool write) noexcept {
    const auto offset = map().offset_of(address);
    if (!offset) return false;
    const BlockId block = block_at(*offset);
    const AddressRange range = program_range(block);
    if (range.address == 0) return false;
    if (is_overflow(block, *offset, address)) return false;
    if (thread_part().is_in_atomic_of(block) || is_going_by(address)) {
        // Between enter_atomic() and leave_atomic(), or without them, which who unmaps it waits
        // for: another thread's release has re-armed write tracking under us.
        engine_->map(range, Access::write);
        return true;
    }
    trace("dsm.fault", block, write);
    count(write ? &PlaceCounters::write_faults : &PlaceCounters::read_faults);
    const Timed timed{statistics_, &PlaceCounters::fault_ns};
    const SlowPartOfQuantum slow{guess_.quantum, debts_.board()};
    await_last_look();
    const FaultUnderWay under_way{entries_[block], address, write};
    if (write) let_writes(block);
    if (write) entries_.passes().close(range);             // atomics let this write go first
    const bool comes_at_once = !write && seems_to_spin();  // before what takes long elsewhere
    if (!write) await_written(block, *offset);
    bool stays = false, absent = false;
    std::uint32_t last_time = 0;
    std::optional<std::uint64_t> word;  // before what the background flusher had made stale came
    std::optional<bool> knows_all;      // of what was here when the write came
    thread_part().has_asked = false;
    Timestamp had;
    until_acquired(block, [&]() -> Stamp {
        BlockEntry& entry = entries_[block];
        const std::scoped_lock guard{entry.latch};
        note_use(entry);
        stays = must_stay(block);
        last_time = length_of_run(entry);
        absent = !readable(entry.state);
        if (!knows_all) knows_all = !entry.early, had = copies_.own_wts(block);
        if (std::exchange(entry.stale.aside, false) && comes_at_once) word = word_at(*offset);
        const Stamp missing =
            resolve(block, stays ? BlockEvent::pinned_fault : event_of_fault(block, write));
        if (!missing.is_none()) return missing;
        if (absent) note_followed(entry), guess_.predictor.note_miss(block);
        if (entry.early) [[unlikely]] {
            // Bytes that came while the write waited did not come before it.
            const bool meets = write && *knows_all && copies_.own_wts(block) > had;
            races_.note_first_access(block, address - range.address, write && absent, meets);
        }
        return {};
    });
    if (word && word_at(*offset) != *word) note_spin(block);
    // Where a first write is itself a fault, what a write miss brings along would cost another.
    if (stays) return true;
    if (write && !absent) return open_ahead(block), true;
    if (!write || !engine_->facts().write_faults) fetch_around(block, last_time);
    return true;
}

// A first write that is a fault, right behind others: the next blocks are made writable as well,
// twice as many each time. Those that are not written are compared in vain, for a while. Latches as
// in fetch_around().
void Node::open_ahead(BlockId block) noexcept {
    constexpr std::uint32_t window_max = 64;
    const auto is_open = [&](BlockId at) {  // a hint
        return std::atomic_ref{entries_[at].state}.load(std::memory_order_relaxed) ==
               BlockState::writable;
    };
    std::uint32_t window = 0;
    while (window < window_max && window < block && is_open(block - 1 - window)) ++window;
    AddressRange extent{program_range(block).end(), 0};
    std::uint32_t got = 0;
    for (; got < window; ++got) {
        const BlockId next = block + 1 + got;
        if (next >= entries_.size()) break;
        const AddressRange range = program_range(next);
        BlockEntry& entry = entries_[next];
        if (range.address != extent.end() || !entry.latch.try_lock()) break;
        if (entry.state != BlockState::readonly || entry.guards_stack || entry.early ||
            must_stay(next)) {
            entry.latch.unlock();
            break;
        }
        entry.state = take(entry, BlockEvent::write_fault).next;
        extent.bytes += range.bytes;
    }
    if (got > 0) engine_->map(extent, Access::write);
    for (std::uint32_t i = 0; i < got; ++i) entries_[block + 1 + i].latch.unlock();
}

// A block that was written after each of its last read misses (data that wander from node to node)
// is taken for writing at once, so that the first write costs nothing; likewise one behind a block
// that was read and written just now. Wrong, it is compared at the next release, and the guess
// begins anew.
BlockEvent Node::event_of_fault(BlockId block, bool write) noexcept {
    BlockEntry& entry = entries_[block];
    if (write) note_write_after_read(entry);
    if (write || entry.writes.guess >= write_guess_sure) return BlockEvent::write_fault;
    if (readable(entry.state) || block == 0 || !is_being_written(block - 1))
        return BlockEvent::read_fault;
    note_write_after_read(entry);
    return BlockEvent::write_fault;
}

bool Node::is_being_written(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    if (!entry.latch.try_lock()) return false;
    const bool open = entry.state == BlockState::writable || keeps_lock(entry.state);
    const bool written = open && entry.writes.guess > 0;
    entry.latch.unlock();
    return written;
}

void Node::note_use(BlockEntry& entry) noexcept {
    if (!entry.watched) return;
    entry.watched = false;
    count(&PlaceCounters::ahead_used);
}

// A miss over wires costs as much as a hundred blocks that come along with others.
void Node::note_followed(BlockEntry& entry) const noexcept {
    if (entry.follow.uses < (joins() ? follow_far_max : follow_max)) ++entry.follow.uses;
}

// How many misses in a row began here before; now and then half of it, so that what is not used any
// more is unlearned. With the latch.
std::uint32_t Node::length_of_run(BlockEntry& entry) noexcept {
    constexpr std::uint8_t learned_for = 16;
    if (entry.run.length == 0) return 0;
    if (++entry.run.uses >= learned_for) {
        entry.run.uses = 0;
        entry.run.length /= 2;
    }
    return entry.run.length;
}

// With the latch. False where what came must be acquired first, or something newer would come.
bool Node::fetch_ahead(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    Stamp missing;
    if (entry.notice_wts > entry.notice_rts) return fetch_from_home_ahead(block);
    if (entry.notice_wts != Timestamp{}) {
        return fetch_by_notice(block, BlockWork::fetch, missing) && missing.is_none() &&
               entry.rts >= min_wts();
    }
    if (lock_.is_here(block)) {
        note_wandering(entry.trial, false);
        return may_place(block, copies_.own_stamp(block)) && lock_.touch(block);
    }
    return fetch_without_lock(block, BlockWork::none, missing, false) && missing.is_none() &&
           is_current(block);
}

// Fetches from the home a block that its notice does not allow to read at the writer. With the
// latch. A block whose lock is kept is not asked for.
bool Node::fetch_from_home_ahead(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    Stamp missing;
    if (!fetch_without_lock(block, BlockWork::fetch, missing, false)) return false;
    entry.notice_wts = {};
    entry.brought = !missing.is_none();
    return missing.is_none() && is_current(block);
}

Stamp Node::resolve(BlockId block, BlockEvent event) noexcept {
    BlockEntry& entry = entries_[block];
    Stamp missing;
    if (event == BlockEvent::write_fault && entry.state == BlockState::invalid &&
        !(guess_.read_ahead.goes_on_at(block) && take_untouched(block)))
        missing = take_whole(block);
    if (!missing.is_none()) return missing;
    const BlockStep next = take(entry, event);
    if (has(next.work, BlockWork::fetch)) missing = bring_current(block, BlockWork::fetch);
    if (has(next.work, BlockWork::rebase)) missing = bring_current(block, BlockWork::rebase);
    if (!missing.is_none()) return missing;
    if (has(next.work, BlockWork::remember)) put_on_unmerged(block);
    entry.state = next.next;
    if (has(next.work, BlockWork::map_read)) engine_->map(program_range(block), Access::read);
    if (has(next.work, BlockWork::map_write)) {
        if (event == BlockEvent::pinned_fault) engine_->keep(program_range(block));
        engine_->map(program_range(block), Access::write);
    }
    return {};
}

// A lease that ended while the bytes were on their way would leave a stale block readable: min_wts
// is looked at again after the lease is in the queue, and whoever raises min_wts empties the queue
// after raising it, so one of the two sees the other (invariant 6).
// What an earlier try has brought is still current where nobody has told of a newer write, nor of
// this very one: without a lease the home has no trace of them.
Stamp Node::bring_current(BlockId block, BlockWork how) noexcept {
    BlockEntry& entry = entries_[block];
    const bool has_lease = entry.rts >= copies_.own_wts(block);
    if (entry.brought && has_lease && entry.notice_wts == Timestamp{}) {
        if (const Stamp stamp = copies_.own_stamp(block); !may_show(stamp)) return stamp;
        set_lease(block, entry.rts);  // it may have left the queue while the block was invalid
        if (is_current(block)) return {};
    }
    do {
        Stamp missing;
        if (!fetch_by_notice(block, how, missing)) missing = fetch_by_home(block, how);
        if (!missing.is_none()) return missing;
    } while (!is_current(block));
    return {};
}

// The home's copy needs no lease: if the lock leaves it now, the block is marked, and the acquire
// that has to know of it waits for this latch (invariant 6).
bool Node::is_current(BlockId block) noexcept {
    return entries_[block].rts >= min_wts() || lock_.is_here(block);
}

bool Node::fetch_by_notice(BlockId block, BlockWork how, Stamp& missing) noexcept {
    BlockEntry& entry = entries_[block];
    if (entry.notice_wts == Timestamp{}) return false;
    const Timestamp wts = entry.notice_wts;
    const Timestamp rts = entry.notice_rts;
    const NodeId from = entry.notice_node;
    // Without a lease: it is to be read from the home, and remembered until that is done, so that
    // no older one is.
    if (rts < wts && wts > copies_.own_wts(block)) return false;
    entry.notice_wts = {};
    // Older than min_wts: a newer write may have been dropped into it. Not newer than the copy
    // here: the copy holds what the notice tells of, only its lease has ended.
    if (rts < min_wts() || wts <= copies_.own_wts(block)) return false;
    missing = install(block, from, how, wts);
    if (!missing.is_none() && how == BlockWork::rebase) {
        entry.notice_wts = wts;  // nothing was brought: the same way again
        return true;
    }
    note_notice_used(block, rts, missing);
    return true;
}

void Node::note_notice_used(BlockId block, Timestamp rts, Stamp missing) noexcept {
    BlockEntry& entry = entries_[block];
    entry.run.renewals = 0;
    set_lease(block, rts);
    entry.brought = !missing.is_none();
    count(&PlaceCounters::fetches_by_notice);
}

Stamp Node::fetch_by_home(BlockId block, BlockWork how) noexcept {
    BlockEntry& entry = entries_[block];
    Stamp missing;
    if (lock_.is_here(block) && lock_.touch(block)) {
        note_wandering(entry.trial, false);
        if (!may_place(block, copies_.own_stamp(block))) missing = copies_.own_stamp(block);
    } else if (!fetch_without_lock(block, how, missing)) {
        missing = fetch_with_lock(block, how);
    }
    if (!missing.is_none() && how == BlockWork::rebase) return missing;
    // The home's bytes of this moment include those that a remembered notice tells of.
    entry.notice_wts = {};
    entry.brought = !missing.is_none();
    return missing;
}

// With the lock. This node becomes the home, of the version there is. It takes a lease as a reader
// does: who is next in the queue gets the lock as it is opened, and without one this copy would be
// current no longer. Nodes that all want the block would hand it on in a circle.
void Node::open_as_home(BlockId block, LockToken token) noexcept {
    make_twin(block);  // which others read
    token.rts = read_until(token.wts, token.rts, min_wts(), options_.lease);
    set_lease(block, token.rts);  // in the queue before the lock is opened (invariant 6)
    lock_.unlock(block, token);
}

// The lock was held just now, or on its way. This node becomes the home unless it may not have that
// version yet.
Stamp Node::fetch_with_lock(BlockId block, BlockWork how) noexcept {
    const LockToken token = lock_.lock(block);
    Stamp missing;
    if (token.wts == copies_.own_wts(block)) {
        if (!may_place(block, copies_.own_stamp(block))) missing = copies_.own_stamp(block);
        open_as_home(block, token);
        count(&PlaceCounters::renewals);
        return missing;
    }
    missing = install(block, token.home, how, token.wts);
    if (!missing.is_none() && how == BlockWork::rebase) {
        lock_.give_back(block, token);
        return missing;
    }
    open_as_home(block, token);
    count(&PlaceCounters::fetches_by_home);
    return missing;
}

// how none: only if the version here is the newest.
// What is read at a home is the newest version if its lease is extended afterwards; otherwise it
// was one of the versions, and the next look may find it the newest.
bool Node::fetch_without_lock(BlockId block, BlockWork how, Stamp& missing,
                              bool may_wait) noexcept {
    constexpr unsigned looks = 4;  // others extend it too
    BlockEntry& entry = entries_[block];
    bool moves = false;
    for (unsigned look = 0; look < looks; ++look) {
        const Scratch bytes{scratch_};
        PublicCopies::Reading reading{copies_, block, bytes.get()};
        // A block that was renewed the last time will be renewed again: its bytes need not come
        // along.
        const auto home = lock_.find_home(block, home_guess(entry, self_),
                                          entry.run.renewals == 0 ? &reading : nullptr, may_wait);
        if (!home) return false;
        const auto read = reading.read_from(home->node);
        const Timestamp newest = read ? read->wts : copies_.wts_of(home->node, block);
        const auto moved =
            take_from_home(block, home->node, how, newest, read, bytes.get(), missing);
        if (!moved) return how != BlockWork::none;
        moves |= *moved;
        const Timestamp until = lease_to_ask_for(block, *home, moves);
        if (!lock_.extend(block, *home, until)) continue;
        note_lease(block, until, moves);
        return true;
    }
    return false;
}

// Returns whether bytes moved; empty: something newer may not come.
/// @param newest  of the home's copy
/// @param read    what of it is in `bytes` already
std::optional<bool> Node::take_from_home(BlockId block, NodeId home, BlockWork how,
                                         Timestamp newest, const std::optional<Version>& read,
                                         const std::byte* bytes, Stamp& missing) noexcept {
    if (newest == copies_.own_wts(block)) {
        missing = may_place(block, copies_.own_stamp(block)) ? Stamp{} : copies_.own_stamp(block);
        return false;
    }
    if (how == BlockWork::none) return std::nullopt;
    missing = read ? put_in_place(block, home, bytes, how, {*read, block_bytes()})
                   : install(block, home, how, {});
    if (!missing.is_none() && how == BlockWork::rebase) return std::nullopt;
    return true;
}

Timestamp Node::lease_to_ask_for(BlockId block, const BlockLock::HomeView& home,
                                 bool moves) noexcept {
    BlockEntry& entry = entries_[block];
    entry.knows_writer = true;
    entry.notice_node = home.node;
    const std::uint64_t lease = lease_after(moves ? 0 : entry.run.renewals, options_.lease);
    return read_until(copies_.own_wts(block), home.lease.rts(), min_wts(), lease);
}

void Node::note_lease(BlockId block, Timestamp until, bool moves) noexcept {
    BlockEntry& entry = entries_[block];
    set_lease(block, until);
    if (moves) {
        entry.run.renewals = 0;
        count(&PlaceCounters::fetches_by_home);
    } else {
        if (entry.run.renewals < UINT8_MAX) ++entry.run.renewals;
        count(&PlaceCounters::renewals);
    }
}

// Returns what must be acquired before the program may see the bytes. fetch: they are here
// nevertheless; rebase: nothing was brought.
Stamp Node::install(BlockId block, NodeId from, BlockWork how, Timestamp at_least) noexcept {
    std::byte* const own = private_copy(block);
    PublicCopies::Read got;
    Stamp missing;
    if (how == BlockWork::fetch) {
        const BlockEntry& entry = entries_[block];
        const bool has_own = entry.state != BlockState::discarded && !entry.held_back;
        using Room = PublicCopies::Room;
        if (const auto came = take_carried(block, from, at_least, own)) {
            got = *came;
        } else {
            got = copies_.read(from, block, own, has_own ? Room::own_version : Room::empty);
        }
        missing = put_in_place(block, from, own, how, got);
    } else {
        const Scratch home{scratch_};
        if (const auto came = take_carried(block, from, at_least, home.get())) {
            got = *came;
        } else {
            got = copies_.read(from, block, home.get(), PublicCopies::Room::empty);
        }
        missing = put_in_place(block, from, home.get(), how, got);
    }
    HIROBA_INVARIANT(got.version.wts >= at_least,
                     "block %u: node %u has %lu, its notice said %lu (invariant 11)", block,
                     from.value, got.version.wts.value, at_least.value);
    return missing;
}

// fetch: the block is inaccessible and clean, so its private copy may simply be overwritten,
// whatever must be acquired before it is shown.
// rebase: it holds unmerged bytes, and where it is pinned the program may be reading and writing.
Stamp Node::put_in_place(BlockId block, NodeId from, const std::byte* bytes, BlockWork how,
                         const PublicCopies::Read& read) noexcept {
    const Version& got = read.version;
    HIROBA_INVARIANT(got.wts >= copies_.own_wts(block), "block %u: got %lu for %lu (invariant 11)",
                     block, got.wts.value, copies_.own_wts(block).value);
    std::byte* const own = private_copy(block);
    const bool may = may_place(block, got.stamp);
    if (how == BlockWork::fetch) {
        if (bytes != own) std::memcpy(own, bytes, block_bytes());
    } else {
        if (!may) return got.stamp;
        const Scratch seen{scratch_};
        std::memcpy(seen.get(), own, block_bytes());
        // What has no twin was not written.
        const std::byte* const twin = entries_[block].no_twin ? seen.get() : twin_of(block);
        // The twin that tells of what both have written is replaced.
        races_.look_for_races(block, {seen.get(), twin, bytes}, from);
        store_foreign(own, seen.get(), twin, bytes, block_bytes());
    }
    // Also of a block that a release has merged while it was inaccessible: no byte is lacking now.
    entries_[block].held_back = false;
    if ((entries_[block].no_twin = may_lack_twin(block))) {
        copies_.adopt(block, got);
    } else {
        copies_.publish(block, bytes, got);
    }
    note_wandering(entries_[block].trial, true);
    races_.note_brought(block, got.change);
    count(&PlaceCounters::bytes_fetched, read.bytes);
    trace("dsm.fetch", block, got.wts.value);
    record_fetched(program_range(block).address, from.value, read.bytes);
    return may ? Stamp{} : got.stamp;
}

void Node::set_lease(BlockId block, Timestamp rts) noexcept {
    BlockEntry& entry = entries_[block];
    entry.rts = rts;
    entry.brought = false;
    if (entry.queued) return;
    entry.queued = true;
    leases_.push({rts, block});
}

}  // namespace hiroba::dsm
