// SPDX-License-Identifier: BSD-3-Clause
// Role: one node's shared memory: carries out what dsm/protocol decides, over gas and net, on the
// pages of dsm/memory. Spread over node.cpp (making it, news), fault_path.cpp and node_*.cpp.
// Invariant: the order of locks is release_ role, acquire_ role, then block latches, then a block's
// lock, then signature_latch_ or a queue's latch. Only the acquire role waits for a block latch
// while it holds another; others that hold several have tried for them.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/sparse_array.hpp"
#include "dsm/dsm.hpp"
#include "dsm/engine/block_lock.hpp"
#include "dsm/engine/block_table.hpp"
#include "dsm/engine/change_log.hpp"
#include "dsm/engine/early_block.hpp"
#include "dsm/engine/flush_object.hpp"
#include "dsm/engine/lease_queue.hpp"
#include "dsm/engine/moved_blocks.hpp"
#include "dsm/engine/news_board.hpp"
#include "dsm/engine/news_encoding.hpp"
#include "dsm/engine/place_table.hpp"
#include "dsm/engine/public_copies.hpp"
#include "dsm/engine/read_ahead.hpp"
#include "dsm/engine/scratch_pool.hpp"
#include "dsm/engine/use_predictor.hpp"
#include "dsm/engine/wanted_runs.hpp"
#include "dsm/memory/merge.hpp"
#include "dsm/memory/private_memory.hpp"
#include "dsm/protocol/block.hpp"
#include "dsm/protocol/signature.hpp"

namespace hiroba::dsm {

/// What an acquire leaves accessible and brings up to date: blocks first to end - 1.
struct Kept {
    BlockId first = 0, end = 0;
    bool has(BlockId block) const noexcept { return block >= first && block < end; }
};

class Node final : public SharedMemory,
                   private FaultTarget,
                   private WrittenSink,
                   private BlockLock::Keeper {
public:
    struct Made {
        gas::Segment data, records, changes, flushed, moved, boards;
        PrivateMemory private_memory;
    };
    Node(net::Endpoint& endpoint, const AddressMap& map, std::unique_ptr<FaultEngine> engine,
         const MemoryOptions& options, Made made);
    ~Node() override;

    Result<void> attach(AddressRange early) override;
    Result<void> adopt(AddressRange range) override;
    const AddressMap& map() const noexcept override { return map_; }
    const EngineFacts& engine() const noexcept override { return engine_->facts(); }
    void release(Others others) noexcept override;
    void acquire(Others others) noexcept override;
    void acquire_in_place(const void* address, std::size_t bytes) noexcept override;
    void bring_expected() noexcept override;
    std::size_t news_for(NodeId peer, MutableBytes out) noexcept override;
    std::size_t news_for_anyone(MutableBytes out) noexcept override;
    std::size_t news_bytes_max() const noexcept override;
    void everyone_knows_through(std::span<const NodeId> told) noexcept override;
    void learn(NodeId from, Bytes news) noexcept override;
    void prefetch(const void* address, std::size_t bytes) noexcept override;
    void make_accessible(const void* address, std::size_t bytes, bool write) noexcept override;
    void pin(const void* address, std::size_t bytes, bool write) noexcept override;
    void unpin(const void* address, std::size_t bytes) noexcept override;
    void hold_stack(AddressRange stack, std::size_t guard_bytes) noexcept override;
    void drop_stack(AddressRange stack, std::size_t guard_bytes) noexcept override;
    void allow_execution(AddressRange range) noexcept override;
    bool discard(std::span<const AddressRange> ranges) noexcept override;
    void discarded_everywhere() noexcept override;
    bool enter_atomic(void* address, std::size_t bytes) noexcept override;
    void leave_atomic(void* address, std::size_t bytes) noexcept override;
    void flush() noexcept override;
    bool flush_aside() noexcept override;
    bool somebody_spins() noexcept override;
    bool pay() noexcept override;
    bool has_to_pay() noexcept override;
    bool owes_release() noexcept override;
    void before_release(void (*hook)() noexcept) noexcept override { before_release_ = hook; }
    void flush_alone_by(Standstill standstill) noexcept override { standstill_ = standstill; }
    void learn_unread_by(UnreadNews unread) noexcept override { unread_ = unread; }
    void on_race(RaceReport report, void* context) noexcept override;
    MemoryCounts counts() const noexcept override { return sum_of(counters_); }
    void each_place(PlaceVisit visit, void* context) const noexcept override;

    /// How often each row of the block protocol was taken here, at least.
    using RowCounts = std::array<std::array<std::uint64_t, block_events>, block_states>;
    RowCounts rows() const noexcept;

    /// A block between two steps of the protocol, for checkers of its invariants.
    struct BlockView {
        BlockState state;
        Timestamp rts;
        Timestamp expired_to;   ///< leases before it have been looked at
        bool moved;             ///< the block is marked: its lock has left this node
        bool acquiring;         ///< a thread here is in the middle of an acquire,
        bool releasing;         ///< or of a release: what it has collected is not merged yet
        bool may_be_shown;      ///< what came before the public copy's bytes has been acquired
        const std::byte* twin;  ///< what of the private copy differs from it was written here
        const BlockRecord& record;
        const std::byte* private_bytes;
        const std::byte* public_bytes;
    };
    /// Nothing while a thread is at work on the block. Valid until any thread goes on.
    std::optional<BlockView> look_at(BlockId block) noexcept;

    /// Shows `visit` all that decides what this node does next with `blocks`, for explorers; of
    /// each the first `block_bytes`: nobody uses the others. Thread: while no other runs.
    void show_state(std::span<const BlockId> blocks, std::size_t block_bytes,
                    void (*visit)(void* context, Bytes part), void* context) noexcept;

    static std::size_t blocks_of(const AddressMap& map) {
        return map.space_bytes() / map.shape().block_bytes;
    }

    static std::size_t bytes_of_changes(const AddressMap& map, const MemoryOptions& options);

private:
    /// In the node's sum, and at the thread's place if those are kept.
    void count(PlaceCounters::Member member, std::uint64_t by = 1) noexcept {
        if (by == 0) return;  // a locked instruction for nothing
        add_to(counters_.*member, by);
        if (places_ != nullptr) [[unlikely]]
            add_to(places_->at(this_thread().place).*member, by);
    }
    /// Counts the time from its making to its end, where places are kept.
    class Timed {
    public:
        Timed(Node& node, PlaceCounters::Member member) noexcept
            : node_(node), member_(member), begun_ns_(node.places_ != nullptr ? now_ns() : 0) {}
        Timed(const Timed&) = delete;
        Timed& operator=(const Timed&) = delete;
        ~Timed() {
            if (begun_ns_ != 0) node_.count(member_, now_ns() - begun_ns_);
        }

    private:
        Node& node_;
        PlaceCounters::Member member_;
        std::uint64_t begun_ns_;
    };

    /// What the protocol says of `event`, counted. With the block's latch.
    BlockStep take(const BlockEntry& entry, BlockEvent event) noexcept {
        auto& row = rows_[static_cast<unsigned>(entry.state)][static_cast<unsigned>(event)];
        // Relaxed, and no read-modify-write: statistics, on the path of every fault.
        row.store(row.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        return step(entry.state, event);
    }

    void keep_cores_small() noexcept;
    void publish_adopted(std::uint64_t offset, std::size_t bytes) noexcept;

    // Geometry.
    std::uint64_t offset_of(BlockId block) const noexcept {
        return std::uint64_t{block} << block_shift_;
    }
    BlockId block_at(std::uint64_t offset) const noexcept {
        return static_cast<BlockId>(offset >> block_shift_);
    }
    std::byte* private_copy(BlockId block) const noexcept {
        return private_memory_.at(offset_of(block));
    }
    AddressRange program_range(BlockId block) const noexcept;
    bool is_pinned(std::uint64_t offset) const noexcept;
    /// Pinned, or held for system calls or as a stack. With the block's latch.
    bool must_stay(BlockId block) noexcept {
        return is_pinned(offset_of(block)) || entries_[block].pins > 0;
    }
    // Not inlined, so that test/cluster/switched_off.py can switch it off.
    [[gnu::noinline]] bool is_stack_guard(std::uint64_t offset) const noexcept;
    [[gnu::noinline]] void close_guard(AddressRange guard) noexcept;
    /// Whether a block may be fetched that the program has not asked for.
    bool may_come_unasked(BlockState state) const noexcept {
        // Acquire: pairs with discarded_everywhere().
        return state == BlockState::invalid ||
               (state == BlockState::discarded &&
                discards_open_.load(std::memory_order_acquire) == 0);
    }
    bool discard_blocks(BlockId first, BlockId end) noexcept;
    void finish_discards() noexcept;
    template <class Visit>
    void for_blocks(const void* address, std::size_t bytes, Visit&& visit) noexcept;

    // Fault path (fault_path.cpp). All but on_fault() with the block's latch held.
    bool on_fault(std::uintptr_t address, bool write) noexcept override;
    /// Each of these returns what must be acquired first, nothing having been shown; none: done.
    Stamp resolve(BlockId block, BlockEvent event) noexcept;
    Stamp bring_current(BlockId block, BlockWork how) noexcept;
    Stamp fetch_by_home(BlockId block, BlockWork how) noexcept;
    Stamp fetch_with_lock(BlockId block, BlockWork how) noexcept;
    Stamp install(BlockId block, NodeId from, BlockWork how, Timestamp at_least) noexcept;
    Stamp put_in_place(BlockId block, NodeId from, const std::byte* bytes, BlockWork how,
                       Version got) noexcept;
    /// False: there is no notice to go by.
    bool fetch_by_notice(BlockId block, BlockWork how, Stamp& missing) noexcept;
    /// False: the lock is held, or something newer would come where `how` is none.
    bool fetch_without_lock(BlockId block, BlockWork how, Stamp& missing,
                            bool may_wait = true) noexcept;
    std::optional<bool> take_from_home(BlockId block, NodeId home, BlockWork how, Timestamp newest,
                                       const std::optional<Version>& read, const std::byte* bytes,
                                       Stamp& missing) noexcept;
    Timestamp lease_to_ask_for(BlockId block, const BlockLock::HomeView& home, bool moves) noexcept;
    void note_lease(BlockId block, Timestamp until, bool moves) noexcept;
    void note_notice_used(BlockId block, Timestamp rts, Stamp missing) noexcept;
    bool fetch_from_home_ahead(BlockId block) noexcept;
    bool is_current(BlockId block) noexcept;
    Stamp use_block(BlockId block, bool write) noexcept;
    Stamp pin_block(BlockId block, bool write, AddressRange& again) noexcept;
    BlockEvent event_of_fault(BlockId block, bool write) noexcept;
    bool is_being_written(BlockId block) noexcept;
    std::uint64_t word_at(std::uint64_t offset) const noexcept {
        return std::atomic_ref{*reinterpret_cast<std::uint64_t*>(private_memory_.at(offset & ~7ul))}
            .load(std::memory_order_relaxed);  // only compared
    }
    bool seems_to_spin() noexcept;
    void note_spin() noexcept;
    static void on_spin_seen(void* self, NodeId from, Bytes body) noexcept;
    static constexpr std::uint8_t write_guess_sure = 2;
    static void note_write_after_read(BlockEntry& entry) noexcept {
        if (entry.write_guess < write_guess_sure) ++entry.write_guess;
    }
    void note_use(BlockEntry& entry) noexcept;
    static constexpr std::uint8_t followed_min = 2, follow_max = 5;
    static void note_followed(BlockEntry& entry) noexcept;
    bool is_still_used(UsePredictor::Run& run) noexcept;
    std::size_t latch_expected(const UsePredictor::Run& run, std::span<BlockId> latched) noexcept;
    void bring_run(UsePredictor::Run& run) noexcept;
    void open_ahead(BlockId block) noexcept;
    void fetch_around(BlockId block, std::uint32_t last_time) noexcept;
    bool fetch_ahead(BlockId block) noexcept;
    std::uint32_t latch_for_fetch(BlockId first, std::uint32_t count, std::uintptr_t at) noexcept;
    static constexpr std::size_t together_max = BlockLock::together_max;
    struct JointFetch;
    /// Returns of which blocks, by position, this is true now. With the latches of all of them.
    std::uint32_t fetch_ahead_together(std::span<const BlockId> blocks, bool from_home) noexcept;
    void bring_together(std::span<JointFetch> fetches, std::span<const BlockId> blocks,
                        BlockWork from_home, std::byte* room) noexcept;
    void rebase_together() noexcept;
    static std::uint32_t length_of_run(BlockEntry& entry) noexcept;
    void map_ahead(BlockId first, std::uint32_t count, Access access) noexcept;
    void set_lease(BlockId block, Timestamp rts) noexcept;
    void put_on_unmerged(BlockId block) noexcept;

    // Atomics (node_atomic.cpp), and turns between nodes (node_turns.cpp).
    void let_write_faults_end(BlockId block, std::uint64_t offset) noexcept;
    bool try_enter_atomic(BlockId block, bool gives_way, Stamp& missing) noexcept;
    Stamp stamp_of_atomic(BlockId block) noexcept;
    Stamp owe_release() noexcept;
    std::uint64_t give_turn(BlockId block) noexcept;
    bool await_turn(BlockId block, std::uint64_t offset, std::uint64_t since_ns) noexcept;
    bool has_moved_on(NodeId holder, BlockId block, std::uint64_t at, std::uint64_t word) noexcept;
    void ask_turn(NodeId node, BlockId block, NewsBoard::Turn turn) noexcept;
    void end_turn(BlockEntry& entry) noexcept;

    // Blocks of this node's own (node_exclusive.cpp).
    void note_streak(BlockId block, const LockToken& token) noexcept;
    bool is_to_be_tried(BlockEntry& entry, const LockToken& token) noexcept;
    bool is_unread(BlockId block) noexcept;
    bool may_be_exclusive(BlockId block, const LockToken& token) noexcept;
    bool make_exclusive(BlockId block) noexcept;
    void share_again(BlockId block) noexcept;
    enum class GiveUp { wanted, near, ahead, needed };
    void note_life(Trial& trial, GiveUp when) const noexcept;
    void give_up(BlockId block, GiveUp when) noexcept;
    void give_up_expected() noexcept;
    void stop_exclusive(BlockId block) noexcept;
    void ask_for(NodeId holder, BlockId block) noexcept override;
    void wanted(NodeId requester, BlockId block) noexcept override;
    void wait() noexcept override { serve_wanted(); }
    void wake_for_wanted(BlockId block) noexcept;
    static void on_block_wanted(void* self, NodeId from, Bytes body) noexcept;
    bool try_give_up(BlockId block) noexcept;
    void give_up_near(BlockId block) noexcept;
    void serve_wanted() noexcept;

    // Debts (node_debts.cpp).
    /// Whether the program may see bytes of this stamp, and in place those of this block.
    bool may_show(Stamp stamp) noexcept;
    bool may_place(BlockId block, Stamp stamp) noexcept;
    enum class Writer : std::uint8_t { anywhere, in_turn };
    void catch_up_with(Stamp stamp, Writer writer = Writer::anywhere) noexcept;
    void pull(Stamp stamp, Writer writer = Writer::anywhere) noexcept;
    bool learn_from_board(Stamp stamp) noexcept;
    bool has_learned(Stamp stamp) noexcept;
    void show_news() noexcept;
    void start_payer();
    void stop_payer() noexcept;
    static void on_release_asked(void* self, NodeId from, Bytes body) noexcept;

    // Release (node_release.cpp).
    enum class Flusher : std::uint8_t { program, background };
    bool flush_on_runtime_stack(Flusher flusher, Others others) noexcept;
    bool flush_in_order(Flusher flusher, Others others) noexcept;
    void learn_notices(NodeId from, Bytes news) noexcept;
    void note_flushes(Bytes news) noexcept;
    void acquire_flushed(Flusher flusher, Others others) noexcept;
    void wait_for_flushes(Others others) noexcept;
    bool learn_flushed() noexcept;
    void learn_flushed(const FlushObject::Content& flushed, bool orders) noexcept;
    void raise_known_release(ReleaseNumber release) noexcept;
    bool has_untold_work() noexcept;
    NewsSequence last_sequence() noexcept;
    void release_on_runtime_stack(Others others) noexcept;
    bool has_nothing_to_release() noexcept;
    void note_release() noexcept;
    void begin_release() noexcept;
    void end_release() noexcept;
    void merge_until_quiet(Others others) noexcept;
    void put_off_work() noexcept;
    void take_over_needs() noexcept;
    void gather_work(Others others) noexcept;
    void drop_unchanged_work() noexcept;
    static void note_unchanged(BlockEntry& entry) noexcept;
    void merge_work(Others others) noexcept;
    void written(AddressRange range) noexcept override;
    bool has_changed_unless_watched(BlockId block) noexcept;
    bool begin_merge(std::size_t at) noexcept;
    struct JointMerge;
    std::size_t merge_together(std::size_t from, Others others) noexcept;
    void merge(BlockId block, Others others) noexcept;
    void merge_locked(BlockId block, const LockToken& token, Others others) noexcept;
    void publish_live(BlockId block, const LockToken& token) noexcept;
    void merge_with_home(BlockId block, std::optional<LockToken> held, Others others,
                         PublicCopies::Reading* brought = nullptr) noexcept;
    template <class Publish>
    void publish_merged(BlockId block, const LockToken& token, Publish&& publish) noexcept;
    Stamp stamp_of_merge(BlockId block) noexcept;
    void note_own_changes(BlockId block, const std::byte* ours, const std::byte* twin) noexcept;
    /// What of the private copy differs from it was written here, and is not merged.
    const std::byte* twin_of(BlockId block) noexcept {
        return entries_[block].held_back ? bases_.data() + offset_of(block) : copies_.own(block);
    }
    bool has_changed(BlockId block) noexcept;
    bool must_hold_back(BlockId block, Stamp stamp) noexcept;
    void hold_back(BlockId block, const std::byte* ours) noexcept;
    void stop_holding_back(BlockId block) noexcept;
    /// Whether nobody has merged the block since this node's public copy was made.
    bool has_bytes_of(const LockToken& token, BlockId block) noexcept {
        return token.home == self_ || token.wts == copies_.own_wts(block);
    }
    void add_own_notice(BlockId block, Timestamp wts, Timestamp rts) noexcept;

    // Races (node_races.cpp).
    static constexpr unsigned races_per_merge_max = 16;
    static constexpr Epoch first_epoch = 1;
    bool looks_for_races() const noexcept { return !known_.empty(); }
    bool is_worth_telling(const MergeOutcome& outcome) const noexcept;
    void look_for_races(BlockId block, const ThreeCopies& copies, NodeId other) noexcept;
    void look_for_unordered(BlockId block, const std::byte* ours, const std::byte* twin) noexcept;
    bool is_seen_elsewhere(BlockId block) noexcept;
    bool may_ask(NodeId node, LastChange last, bool all) const noexcept;
    bool is_known(LastChange change) const noexcept;
    void raise_known(NodeId node, Epoch epoch) noexcept;
    void note_known(BlockId block) noexcept;
    void know_what_atomics_ordered() noexcept;
    void know_what_was_told() noexcept;
    void note_brought(BlockId block, LastChange last) noexcept;
    void note_first_access(BlockId block, std::uint64_t at, bool written, bool meets) noexcept;
    void look_at_early_blocks() noexcept;
    void learn_known(Bytes news) noexcept;
    void acquire_known() noexcept;
    std::size_t encode_known(MutableBytes out) noexcept;
    void remember_flushed(Bytes news) noexcept;
    void keep_flushed(MutableBytes news) noexcept;
    void know_what_was_flushed() noexcept;
    /// With the release role: what was merged up to now is told by the next news.
    void end_epoch() noexcept { epoch_.fetch_add(1, std::memory_order_release); }
    LastChange this_change() const noexcept {
        return {self_, epoch_.load(std::memory_order_relaxed)};  // changes in the release role
    }
    /// note(words): as ChangeLog::note() has it, or with nullptr where nobody asks.
    template <class Note>
    void note_in_log(BlockId block, Note&& note) noexcept {
        if (!looks_for_races()) return note(nullptr);
        const Scratch words{scratch_};
        change_log_.note(block, this_change().epoch, words.get(), note);
    }
    void report_races(BlockId block, const ThreeCopies& copies, NodeId other) noexcept;
    void report_race(std::uintptr_t address, std::uint32_t bytes, NodeId other) noexcept;
    void note_made(BlockId block, Timestamp wts, Timestamp rts) noexcept;

    // Acquire (node_acquire.cpp).
    struct Invalidation {
        std::vector<AddressRange> ranges;
        std::vector<BlockId> blocks;
    };
    void acquire_unless_current(Others others, Kept kept) noexcept;
    void acquire_on_runtime_stack(Others others = Others::running,
                                  Flusher flusher = Flusher::program, Kept kept = {}) noexcept;
    Stamp acquire_round(Others others, Flusher flusher, Kept kept) noexcept;
    void take_pending() noexcept;
    void join_pending() noexcept;
    void join_clocks() noexcept;
    bool is_followed(BlockEntry& entry) noexcept;
    bool is_stale_just_now(const BlockEntry& entry) const noexcept;
    void put_off(BlockId block) noexcept;
    Stamp rebase_pinned() noexcept;
    Stamp open_need() noexcept;
    bool show_held_back(Others others) noexcept;
    void apply_taken() noexcept;
    void apply_notice(const Notice& notice) noexcept;
    void apply_to_block(BlockId block, const Notice& notice) noexcept;
    void make_stale(BlockId block) noexcept;
    bool may_be_overwritten(BlockId block) noexcept;
    void finish_invalidations() noexcept;
    void expire_leases() noexcept;
    void look_at_moved() noexcept;

    template <class Value>
    Value least_of(const std::vector<Value>& sent, std::span<const NodeId> told) const noexcept;
    /// What was sent need not have been received: a peer may take a lock, with the news that lie
    /// there, long before it looks at the message of a barrier it has not reached.
    NewsSequence known_to_all() const noexcept { return known_to_all_; }
    std::size_t encode_since(NewsSequence since, NodeId skip, MutableBytes out) noexcept;
    void trim_signature() noexcept;
    void show_min_wts() noexcept;
    /// Under signature_latch_.
    void note_untold() noexcept { has_untold_.store(true, std::memory_order_release); }
    Timestamp min_wts() const noexcept {
        return Timestamp{min_wts_.load(std::memory_order_seq_cst)};
    }

    net::Endpoint& endpoint_;
    const AddressMap& map_;
    std::unique_ptr<FaultEngine> engine_;
    MemoryOptions options_;
    NodeId self_;
    std::size_t block_bytes_;
    unsigned block_shift_;
    gas::Segment data_, records_, changes_;
    FlushObject flush_object_;
    NewsBoard board_;
    PrivateMemory private_memory_;
    std::uint64_t pinned_begin_ = 0, pinned_end_ = 0;  ///< offsets of this node's stack slices

    SparseArray<BlockEntry> entries_;
    ReadAhead read_ahead_;
    UsePredictor predictor_;
    UsePredictor wanted_;
    MovedBlocks moved_;
    BlockLock lock_;
    PublicCopies copies_;
    ChangeLog change_log_, atomic_log_;
    std::atomic<Epoch> epoch_{first_epoch};  ///< changes in the release role
    /// Per node, empty if races are not looked for: the program here is synchronized with all that
    /// the node did in earlier epochs.
    std::vector<std::atomic<Epoch>> known_;
    std::vector<Epoch> pending_known_;  ///< learned, not yet acquired, under pending_latch_
    std::atomic<bool> has_pending_known_{false};
    std::vector<Epoch> flushed_known_;  ///< as the flush object has it, under flush_latch_
    /// Atomics here that followed one of another node; those behind which the program knows what
    /// that one followed.
    std::atomic<std::uint64_t> atomics_behind_others_{0}, atomics_known_{0};
    Latch early_latch_;
    std::vector<SeenEarly> seen_early_;  ///< per node, under early_latch_
    SparseArray<EarlyBlock> early_;      ///< under the block's latch
    static constexpr std::size_t early_blocks_max = 64;
    std::array<BlockId, early_blocks_max> early_blocks_{};  ///< some of them, under early_latch_
    std::atomic<std::size_t> early_count_{0};               ///< likewise
    LeaseQueue leases_;
    ScratchPool scratch_, joint_scratch_;  ///< of a block, and of together_max blocks

    Latch signature_latch_;
    SparseArray<Signature::Entry> signature_entries_;
    SparseArray<std::uint32_t> signature_index_;
    Signature signature_;
    /// Per peer, under signature_latch_: what of the signature it was sent, and up to which of this
    /// node's releases that told, by notices or by min_wts.
    std::vector<NewsSequence> sent_;
    std::vector<ReleaseNumber> sent_releases_;
    NewsSequence known_to_all_ = 0;  ///< likewise; as of the last everyone_knows()
    /// The newest that this node has from elsewhere than a barrier's or a fork's news, likewise.
    NewsSequence learned_aside_ = 0;
    /// False: nothing was added to the signature since everyone knew all of it. Changes under
    /// signature_latch_; read without it by synchronizations that have nothing to say.
    std::atomic<bool> has_untold_{false};
    std::atomic<std::uint64_t> min_wts_{0};  ///< copy of the signature's for the fault path

    /// Of one node's releases.
    struct Clock {
        ReleaseNumber told = 0;    ///< the signature tells of them
        ReleaseNumber needed = 0;  ///< bytes that this node has published were read from them
        Epoch epoch = 0;           ///< what those told of have merged is of earlier ones
        NewsSequence changed = 0;
    };
    SparseArray<Clock> clocks_;  ///< per node, under signature_latch_
    /// Per node: what its releases up to this one have made stale is inaccessible here.
    SparseArray<std::atomic<ReleaseNumber>> acquired_;
    /// Likewise, but what this node has held back of them may not have been shown yet.
    SparseArray<std::atomic<ReleaseNumber>> inaccessible_;
    std::atomic<bool> needs_open_{false};  ///< something needed is not acquired; as clocks_
    std::atomic<ReleaseNumber> begun_{0}, completed_{0};  ///< change in the release role
    std::atomic<ReleaseNumber> debt_{0};  ///< of this node's releases, the last that an atomic owes
    std::atomic<std::uint32_t> show_unasked_{0};
    /// All nodes know what this node's releases up to it have told of; as clocks_.
    std::atomic<ReleaseNumber> known_release_{0};
    bool all_mapped_ = false;  ///< the other nodes' memory is reached without their doing
    bool joins_ = false;       ///< exchanges for several blocks are one
    Latch board_latch_, pull_latch_, wanted_latch_;
    WantedRuns wanted_runs_;         ///< under wanted_latch_
    SparseArray<std::byte> pulled_;  ///< under pull_latch_
    std::atomic<std::uint32_t> asked_{0};
    std::atomic<bool> stopping_{false};
    std::thread payer_;

    Latch pending_latch_;
    SparseArray<Notice> pending_;  ///< learned, not yet acquired
    std::size_t pending_count_ = 0;
    SparseArray<Clock> pending_clocks_;
    Timestamp pending_min_wts_;
    bool pending_aside_ = false;  ///< some of them are from nobody in particular
    std::atomic<bool> has_pending_{false};
    std::atomic<bool> unfinished_{false};  ///< an acquire has rounds to go
    /// Up to which min_wts leases have been looked at; this node's own may be ahead (invariant 6).
    std::atomic<std::uint64_t> expired_to_{0};

    Latch release_;  ///< the release role
    /// Where the program's threads synchronized last, 0: nowhere yet; only told, never decided by.
    std::atomic<std::uintptr_t> last_synchronized_{0};
    SparseArray<BlockId> work_;
    std::size_t work_count_ = 0, reported_count_ = 0;  ///< of work_, what the engine saw written
    SparseArray<Notice> made_;  ///< by the release under way, told of when it is over
    std::size_t made_count_ = 0, merged_count_ = 0;  ///< notices, blocks of the release under way
    bool had_work_ = false;                          ///< there were blocks to look at
    Timestamp release_wts_;                          ///< of its newest merge
    SparseArray<ReleaseNumber> made_needs_;          ///< per node, likewise
    std::atomic<bool> made_needs_any_{false};
    Latch unmerged_latch_;
    SparseArray<BlockId> unmerged_;
    std::atomic<std::size_t> unmerged_count_{0};  ///< changes under unmerged_latch_
    SparseArray<std::byte> bases_;                ///< twins of the blocks held back
    SparseArray<BlockId> held_back_;              ///< under unmerged_latch_
    std::size_t held_back_count_ = 0;
    ReleaseNumber shown_up_to_ = 0;  ///< what releases up to it hold back may be shown

    Latch acquire_;  ///< the acquire role
    SparseArray<Notice> taken_;
    std::size_t taken_count_ = 0;
    std::atomic<std::uint16_t> rounds_{0};  ///< of all acquires, modulo; changes in the role
    SparseArray<ReleaseNumber> applied_;    ///< per node: of what was taken
    SparseArray<BlockId> stale_pinned_;     ///< to be brought up to date when the rest is stale
    std::size_t stale_pinned_count_ = 0;
    Invalidation invalidation_;
    Flusher acquirer_ = Flusher::program;     ///< on whose behalf the role is held,
    Kept kept_;                               ///< and what it brings up to date in place
    bool stopped_ = false, follows_ = false;  ///< no program thread runs; followed blocks, too

    std::atomic<std::uint32_t> discards_open_{0};      ///< begun here, not over everywhere
    OwnFlush flushed_last_;                            ///< under flush_latch_
    std::atomic<FlushObject::Version> flush_seen_{0};  ///< changes under flush_latch_
    Latch flush_latch_;
    NewsSequence flush_sequence_ = 0;  ///< what this node had when it last flushed, likewise
    std::atomic<std::uint32_t> vain_flushes_{0};   ///< in a row
    std::atomic<std::uint64_t> vain_flush_ns_{0};  ///< when the last of them ended
    net::CoreShortage flush_shortage_;             ///< what they have learned of this node's cores
    std::atomic<bool> program_flushes_{false};     ///< it has done so, here or elsewhere
    /// When a thread, here or elsewhere, was last seen to wait for a plain write, 0: never; and
    /// when the others were last told of one here.
    std::atomic<std::uint64_t> spun_at_ns_{0}, told_of_spin_ns_{0};
    std::atomic<std::uint64_t> acquired_aside_ns_{0};  ///< when the publisher last acquired

    void (*before_release_)() noexcept = nullptr;
    Standstill standstill_;
    UnreadNews unread_;
    std::atomic<RaceReport> race_report_{nullptr};
    void* race_context_ = nullptr;
    PlaceCounters counters_;
    std::unique_ptr<PlaceTable> places_;  ///< nullptr: not kept
    std::array<std::array<std::atomic<std::uint64_t>, block_events>, block_states> rows_{};
};

/// Visits the blocks of [address, +bytes) up to the end of the extent.
template <class Visit>
void Node::for_blocks(const void* address, std::size_t bytes, Visit&& visit) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    for (std::uintptr_t at = begin; at < begin + bytes;) {
        const auto offset = map_.offset_of(at);
        if (!offset) return;
        visit(block_at(*offset));
        at += block_bytes_ - (*offset & (block_bytes_ - 1));
    }
}

}  // namespace hiroba::dsm
