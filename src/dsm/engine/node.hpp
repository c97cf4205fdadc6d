// SPDX-License-Identifier: BSD-3-Clause
// Role: one node's shared memory: carries out what dsm/protocol decides, over gas and net, on the
// pages of dsm/memory. Spread over node.cpp (making it, news), fault_path.cpp and node_*.cpp. What
// it knows and keeps has rooms, each with its own latch (docs/layers/dsm.md#rooms).
// Invariant: the order of locks is flushes_, release_ role, acquire_ role, then block latches, then
// a block's lock, then the latch of a room: of debts_, under which the next ones are taken; of
// news_, under which that of its learned news is; of any other, under which none is. Only the
// acquire role waits for a block latch while it holds another; others that hold several have tried
// for them.
#pragma once

#include <memory>
#include <optional>

#include "base/atomic_window.hpp"
#include "base/sparse_array.hpp"
#include "dsm/block/block_lock.hpp"
#include "dsm/block/block_space.hpp"
#include "dsm/block/block_table.hpp"
#include "dsm/block/held_passes.hpp"
#include "dsm/block/lease_queue.hpp"
#include "dsm/block/moved_blocks.hpp"
#include "dsm/block/public_copies.hpp"
#include "dsm/block/scratch_pool.hpp"
#include "dsm/block/sealed_chunks.hpp"
#include "dsm/counts/statistics.hpp"
#include "dsm/dsm.hpp"
#include "dsm/guess/guesses.hpp"
#include "dsm/news/acquire_under_way.hpp"
#include "dsm/news/debts.hpp"
#include "dsm/news/flushes.hpp"
#include "dsm/news/held_back.hpp"
#include "dsm/news/known_news.hpp"
#include "dsm/news/release_under_way.hpp"
#include "dsm/protocol/block.hpp"
#include "dsm/protocol/signature.hpp"
#include "dsm/races/race_search.hpp"

namespace hiroba::dsm {

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
    const AddressMap& map() const noexcept override { return space_.map(); }
    const EngineFacts& engine() const noexcept override { return engine_->facts(); }
    void release(Others others) noexcept override;
    bool has_news() noexcept override {
        return news_.learned().any() || news_.epochs().has_learned();
    }
    void acquire(Others others) noexcept override;
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
    bool lacks_page(const void* address, std::size_t bytes) const noexcept override;
    void hold_stack(AddressRange stack, std::size_t guard_bytes) noexcept override;
    void drop_stack(AddressRange stack, std::size_t guard_bytes) noexcept override;
    void allow_execution(AddressRange range) noexcept override;
    bool discard(std::span<const AddressRange> ranges) noexcept override;
    void discarded_everywhere() noexcept override;
    bool enter_atomic(void* address, std::size_t bytes) noexcept override;
    void leave_atomic(void* address, std::size_t bytes) noexcept override;
    OwnAtomics own_atomics() noexcept override;
    void let_atomics_go_by() noexcept override { entries_.passes().start(); }
    void flush() noexcept override;
    void others_rest(bool rest) noexcept override { flushes_.others_rest(rest); }
    bool flush_aside() noexcept override;
    bool somebody_spins() noexcept override;
    void await_write(const void* address) noexcept override;
    bool pay() noexcept override;
    bool has_to_pay() noexcept override;
    bool owes_release() noexcept override;
    void before_release(void (*hook)() noexcept) noexcept override { release_.before_by(hook); }
    void flush_alone_by(Standstill standstill) noexcept override {
        flushes_.stand_still_by(standstill);
    }
    void learn_unread_by(UnreadNews unread) noexcept override { debts_.learn_unread_by(unread); }
    void on_race(RaceReport report, void* context) noexcept override {
        races_.on_race(report, context);
    }
    MemoryCounts counts() const noexcept override;
    void each_place(PlaceVisit visit, void* context) const noexcept override {
        statistics_.each_place(visit, context);
    }

private:
    friend class NodeView;  // shows it to tests: test/sim/dsm/node_view.hpp

    using Timed = Statistics::Timed;
    void count(Statistics::Member member, std::uint64_t by = 1) noexcept {
        statistics_.count(member, by);
    }
    BlockStep take(const BlockEntry& entry, BlockEvent event) noexcept {
        return statistics_.take(entry, event);
    }

    void keep_cores_small() noexcept;
    void publish_adopted(std::uint64_t offset, Bytes bytes) noexcept;

    // Where blocks lie.
    std::size_t block_bytes() const noexcept { return space_.block_bytes(); }
    std::uint64_t offset_of(BlockId block) const noexcept { return space_.offset_of(block); }
    BlockId block_at(std::uint64_t offset) const noexcept { return space_.block_at(offset); }
    std::byte* private_copy(BlockId block) const noexcept { return space_.private_copy(block); }
    AddressRange program_range(BlockId block) const noexcept { return space_.program_range(block); }
    bool is_pinned(std::uint64_t offset) const noexcept { return space_.is_pinned(offset); }
    std::uint64_t word_at(std::uint64_t offset) const noexcept { return space_.word_at(offset); }
    /// Pinned, or held for system calls or as a stack. With the block's latch.
    bool must_stay(BlockId block) noexcept {
        return is_pinned(offset_of(block)) || entries_[block].pins > 0;
    }
    // Not inlined, so that test/cluster/switched_off.py can switch it off.
    [[gnu::noinline]] void close_guard(AddressRange guard) noexcept;
    bool may_come_unasked(BlockState state) const noexcept {
        return entries_.may_come_unasked(state);
    }
    bool discard_blocks(BlockId first, BlockId end) noexcept;
    void finish_discards() noexcept;

    // Fault path (fault_path.cpp). All but the first two with the block's latch held.
    bool on_fault(std::uintptr_t address, bool write) noexcept override;
    bool is_overflow(BlockId block, std::uint64_t offset, std::uintptr_t address) noexcept;
    bool restore(std::uintptr_t address) noexcept override;
    /// Each of these returns what must be acquired first, nothing having been shown; none: done.
    Stamp resolve(BlockId block, BlockEvent event) noexcept;
    Stamp bring_current(BlockId block, BlockWork how) noexcept;
    Stamp fetch_by_home(BlockId block, BlockWork how) noexcept;
    Stamp fetch_with_lock(BlockId block, BlockWork how) noexcept;
    void open_as_home(BlockId block, LockToken token) noexcept;
    Stamp install(BlockId block, NodeId from, BlockWork how, Timestamp at_least) noexcept;
    Stamp put_in_place(BlockId block, NodeId from, const std::byte* bytes, BlockWork how,
                       const PublicCopies::Read& read) noexcept;
    /// False: there is no notice to go by.
    bool fetch_by_notice(BlockId block, BlockWork how, Stamp& missing) noexcept;
    std::size_t carry_little_changes(MutableBytes news, std::size_t bytes) noexcept;
    std::optional<PublicCopies::Read> take_carried(BlockId block, NodeId from, Timestamp wts,
                                                   std::byte* to) noexcept;
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
    static constexpr std::uint8_t write_guess_sure = 2;
    static void note_write_after_read(BlockEntry& entry) noexcept {
        if (entry.writes.guess < write_guess_sure) ++entry.writes.guess;
    }
    void note_use(BlockEntry& entry) noexcept;
    static constexpr std::uint8_t followed_min = 2, follow_max = 5, follow_far_max = 7;
    void note_followed(BlockEntry& entry) const noexcept;
    bool is_still_used(UsePredictor::Run& run) noexcept;
    std::size_t latch_expected(const UsePredictor::Run& run, std::span<BlockId> latched) noexcept;
    void bring_run(UsePredictor::Run& run) noexcept;
    void open_ahead(BlockId block) noexcept;
    void fetch_around(BlockId block, std::uint32_t last_time) noexcept;
    void fetch_part(BlockId block) noexcept;
    std::uint32_t fetch_row(BlockId first_of_row, std::uint32_t count_max, std::uintptr_t end,
                            bool writes) noexcept;
    bool fetch_ahead(BlockId block) noexcept;
    std::uint32_t latch_for_fetch(BlockId first, std::uint32_t count, std::uintptr_t at) noexcept;
    static constexpr std::size_t together_max = BlockLock::together_max;
    struct JointFetch;
    /// Returns of which blocks, by position, this is true now. With the latches of all of them.
    /// takes: what will be written becomes this node's own if another node has handed it over.
    std::uint32_t fetch_ahead_together(std::span<const BlockId> blocks, bool from_home,
                                       bool takes) noexcept;
    bool fetch_ahead_alone(BlockId block, bool from_home, bool takes) noexcept;
    void bring_together(std::span<JointFetch> fetches, std::span<const BlockId> blocks,
                        BlockWork from_home, std::byte* room) noexcept;
    void rebase_together() noexcept;
    static std::uint32_t length_of_run(BlockEntry& entry) noexcept;
    void map_ahead(BlockId first, std::uint32_t count, Access access) noexcept;
    void set_lease(BlockId block, Timestamp rts) noexcept;
    void put_on_unmerged(BlockId block) noexcept {
        release_.unmerged().put(entries_[block], block);
    }

    // Twins made at first writes (node_twins.cpp).
    void seal(BlockId block) noexcept;
    AddressRange range_of_chunk(BlockId block) const noexcept;
    void let_writes(BlockId block) noexcept;
    void lift_seal(BlockId first) noexcept;
    void make_twin(BlockId block) noexcept;
    bool may_lack_twin(BlockId block) noexcept;

    // Atomics (node_atomic.cpp), turns (node_turns.cpp), loads that wait (node_spins.cpp).
    void let_write_faults_end(BlockId block, std::uint64_t offset) noexcept;
    bool try_enter_atomic(BlockId block, bool gives_way, std::uint64_t now,
                          PublicCopies::Reading* along, Stamp& missing) noexcept;
    Stamp bring_for_atomic(BlockId block, const LockToken& token,
                           const PublicCopies::Reading* along) noexcept;
    Stamp stamp_of_atomic(BlockId block) noexcept;
    bool enter_own(BlockId block) noexcept;
    // Compiled without vector registers: node_own_atomic.cpp.
    static bool try_enter_own(void* node, void* address, std::size_t bytes) noexcept;
    static bool try_leave_own(void* node, void* address, std::size_t bytes) noexcept;
    bool may_enter_own(void* address, std::size_t bytes) noexcept;
    bool may_leave_own(ThreadContext& thread, void* address, std::size_t bytes) noexcept;
    bool note_held_atomic_now(BlockId block, std::uint64_t offset, std::size_t bytes) noexcept;
    static bool try_go_by(void* node, void* address) noexcept;
    static void end_going_by(void* node) noexcept;
    void close_to_atomics(BlockId block) noexcept;
    void let_next_go_by(BlockId block, std::uintptr_t address) noexcept;
    void may_let_go_by(BlockId block, std::uintptr_t address) noexcept;
    bool open_to_atomics(BlockId block, bool is_held, std::uintptr_t address) noexcept;
    std::uint32_t settle_window(AtomicWindow& window, bool is_held) noexcept;
    void note_passed(BlockId block) noexcept;
    void close_held_passes() noexcept;
    void open_version(BlockId block, const LockToken& token, Timestamp wts) noexcept;
    void end_atomic(BlockEntry& entry) noexcept;
    // Blocks whose lock this node holds meanwhile (node_held.cpp).
    bool may_hold(BlockId block, const LockToken& token, std::uint64_t now) noexcept;
    bool hold(BlockId block) noexcept;
    void note_held_atomic(BlockId block, std::uint64_t offset, std::size_t bytes) noexcept;
    void end_quantum() noexcept;
    bool is_to_let_go(const BlockEntry& entry) noexcept;
    bool is_token_wanted() noexcept {
        return guess_.quantum.has_token() && debts_.board().is_token_wanted();
    }
    void let_token_go(BlockId block) noexcept;
    bool is_contested(BlockId block) noexcept;
    void await_token(std::uint64_t now) noexcept;
    bool is_used_lately(BlockId block, std::uint64_t now) noexcept;
    void end_hold(BlockId block) noexcept;
    void merge_held(BlockId block) noexcept;
    void note_row(AtomicUse& use) const noexcept;
    Stamp owe_release() noexcept {
        return is_alone_ ? Stamp{} : Stamp{self_, release_.numbers().owe()};
    }
    std::uint64_t give_turn(BlockId block) noexcept;
    bool await_turn(BlockId block, std::uint64_t offset, std::uint64_t since_ns) noexcept;
    bool has_moved_on(NodeId holder, BlockId block, std::uint64_t at, std::uint64_t word) noexcept;
    void ask_turn(NodeId node, BlockId block, NewsBoard::Turn turn) noexcept;
    void end_turn(BlockEntry& entry) noexcept;
    struct TurnMessage;
    void tell_turn(NodeId node, const TurnMessage& told) noexcept;
    static void on_turn_asked(void* self, NodeId from, Bytes body) noexcept;
    void ask_turn_after(unsigned tries, NodeId writer, BlockId block, bool atomic) noexcept;
    /// Calls use() until it lacks nothing that must be acquired first. With nothing held.
    template <class Use>
    void until_acquired(BlockId block, Use&& use) noexcept {
        unsigned tries = 0;
        for (Stamp missing; !(missing = use()).is_none(); ++tries) {
            ask_turn_after(tries, missing.writer(), block, false);
            catch_up_with(missing);
        }
        if (tries > 0) end_turn(entries_[block]);
    }
    bool seems_to_spin() const noexcept { return guess_.spins.is_behind_aside(now_ns()); }
    void note_spin(BlockId block) noexcept;
    void note_spin_by_flushes() noexcept;
    void tell_of_spin() noexcept;
    static void on_spin_seen(void* self, NodeId from, Bytes body) noexcept;
    void await_written(BlockId block, std::uint64_t offset) noexcept;
    bool is_written_elsewhere(BlockId block, std::uint64_t offset, std::uint64_t word) noexcept;
    void pay_own() noexcept;
    void close(BlockId block) noexcept;

    // Blocks of this node's own (node_exclusive.cpp).
    void note_streak(BlockId block, const LockToken& token) noexcept;
    bool is_to_be_tried(BlockEntry& entry, const LockToken& token) noexcept;
    /// first: of several in a row.
    enum class Tried : std::uint8_t { no, first, again };
    Tried try_version(BlockEntry& entry, const LockToken& token, Timestamp wts) noexcept;
    bool is_unread(BlockId block) noexcept;
    bool may_be_exclusive(BlockId block, const LockToken& token) noexcept;
    bool make_exclusive(BlockId block) noexcept;
    void share_again(BlockId block) noexcept;
    enum class GiveUp { wanted, near, ahead, needed };
    void note_life(Trial& trial, GiveUp when) const noexcept;
    /// False: as it was when it was taken, and nothing is owed.
    bool give_up(BlockId block, GiveUp when) noexcept;
    void give_back(BlockId block) noexcept;
    bool is_as_taken(BlockId block) const noexcept;
    void note_taken(BlockEntry& entry) noexcept;
    LockToken publish_given_up(BlockId block, GiveUp when) noexcept;
    void give_up_expected() noexcept;
    void give_up_run(UsePredictor::Run& run) noexcept;
    bool hands_over() const noexcept;
    bool hands_over_all() const noexcept {
        return options_.hand_over == MemoryOptions::HandOver::all;
    }
    bool goes_whole(BlockId block) noexcept;
    void gather_to_hand_over(BlockId block) noexcept;
    void hand_over_gathered() noexcept;
    Stamp take_whole(BlockId block) noexcept;
    static void note_wandering(Trial& trial, bool wanders) noexcept {
        if (std::exchange(trial.away, false)) trial.wanders = wanders;
    }
    bool take_untouched(BlockId block) noexcept;
    std::uint32_t take_ahead(BlockId first, std::uint32_t count_max) noexcept;
    bool fetch_below(BlockId block) noexcept;
    std::uint32_t take_below(BlockId block, std::uint32_t count_max) noexcept;
    void stop_keeping(BlockId block) noexcept;
    void forget_kept(BlockId block) noexcept;
    void ask_for(NodeId holder, BlockId block) noexcept override;
    std::uint32_t answers() noexcept override { return debts_.answers(); }
    void await_answer(std::uint32_t seen, std::uint64_t until_ns) noexcept override;
    void answer_askers() noexcept;
    void wanted(NodeId requester, BlockId block) noexcept override;
    void wait() noexcept override { serve_wanted(); }
    void wake_for_wanted(BlockId block) noexcept;
    static void on_block_wanted(void* self, NodeId from, Bytes body) noexcept;
    bool goes_on_holding(BlockId block) noexcept;
    bool try_give_up(BlockId block) noexcept;
    void give_up_near(BlockId block) noexcept;
    bool give_up_rest() noexcept;
    WantedBlocks::Given give_up_row(BlockId first, std::uint32_t count_max,
                                    std::uint32_t most) noexcept;
    void serve_wanted() noexcept;

    // Debts (node_debts.cpp).
    /// Whether the program may see bytes of this stamp, and in place those of this block.
    bool may_show(Stamp stamp) noexcept;
    bool may_place(BlockId block, Stamp stamp) noexcept;
    enum class Writer : std::uint8_t { anywhere, in_turn };
    void catch_up_with(Stamp stamp, Writer writer = Writer::anywhere) noexcept;
    void pull(Stamp stamp, Writer writer = Writer::anywhere) noexcept;
    bool learn_from_board(Stamp stamp, bool* wants) noexcept;
    void start_payer();
    static void on_release_asked(void* self, NodeId from, Bytes body) noexcept;

    // Release (node_release.cpp).
    bool flush_on_runtime_stack(Flusher flusher, Others others) noexcept;
    bool flush_in_order(Flusher flusher, Others others) noexcept;
    void flush_for_spins(Others others) noexcept;
    void learn_notices(NodeId from, Bytes news) noexcept;
    NewsView view(NodeId from, Bytes news) const noexcept {
        return {from, news, news_.epochs().nodes()};
    }
    void note_flushes(const NewsView& news) noexcept {
        if (news.tells_of_flushes()) news_.note_program_flushes();
    }
    void acquire_flushed(Flusher flusher, Others others) noexcept;
    bool learn_flushed() noexcept;
    void learn_flushed(const FlushObject::Content& flushed, bool orders) noexcept;
    bool has_untold_work() noexcept;
    void release_on_runtime_stack(Others others) noexcept;
    void begin_release() noexcept;
    void ask_what_is_acquired() noexcept;
    bool has_nothing_to_release() noexcept;
    void note_release() noexcept;
    void end_release() noexcept;
    void await_last_look() noexcept;
    void merge_until_quiet(Others others) noexcept;
    void put_off_work() noexcept;
    void gather_work(Others others) noexcept;
    /// Which of the looks of a release; it looks again for what was written while it looked.
    enum class Look : bool { first, again };
    void drop_unchanged_work(Look look) noexcept;
    static void note_unchanged(BlockEntry& entry) noexcept;
    void merge_work(Others others) noexcept;
    void written(AddressRange range) noexcept override;
    bool has_changed_unless_watched(BlockId block) noexcept;
    bool counts_as_changed(Merging& merging) const noexcept;
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
    const std::byte* twin_of(BlockId block) noexcept { return held_back_.twin_of(block); }
    bool has_changed(BlockId block) noexcept;
    bool must_hold_back(BlockId block, Stamp stamp) noexcept;
    void hold_back(BlockId block, const std::byte* ours) noexcept {
        held_back_.hold_back(block, ours, release_.number());
    }
    /// Whether nobody has merged the block since this node's public copy was made.
    bool has_bytes_of(const LockToken& token, BlockId block) noexcept {
        return token.home == self_ || token.wts == copies_.own_wts(block);
    }
    void add_own_notice(BlockId block, Timestamp wts, Timestamp rts) noexcept;

    void note_made(BlockId block, Timestamp wts, Timestamp rts) noexcept;

    // Acquire (node_acquire.cpp).
    void acquire_on_runtime_stack(Others others = Others::running,
                                  Flusher flusher = Flusher::program) noexcept;
    Stamp acquire_round(Others others, Flusher flusher) noexcept;
    void take_pending() noexcept;
    bool is_followed(BlockId block) noexcept;
    bool has_come(BlockId block) noexcept;
    bool is_stale_just_now(const BlockEntry& entry) const noexcept;
    void put_off(BlockId block) noexcept;
    Stamp rebase_pinned() noexcept;
    Stamp open_need() noexcept;
    bool show_held_back(Others others) noexcept;
    void apply_taken() noexcept;
    void apply_to_block(BlockId block, const Notice& notice) noexcept;
    void make_stale(BlockId block) noexcept;
    bool may_be_overwritten(BlockId block) noexcept;
    void finish_invalidations() noexcept;
    void expire_leases() noexcept;
    void look_at_moved() noexcept;

    Timestamp min_wts() const noexcept { return news_.min_wts(); }
    /// Exchanges for several blocks are one.
    bool joins() const noexcept { return options_.join && !copies_.all_mapped(); }

    net::Endpoint& endpoint_;
    std::unique_ptr<FaultEngine> engine_;
    MemoryOptions options_;
    NodeId self_;
    bool is_alone_;  ///< a job of one node: no other can be told anything
    Statistics statistics_;
    BlockSpace space_;

    BlockTable entries_;
    SealedChunks sealed_;
    HeldPasses held_passes_;
    MovedBlocks moved_;
    PublicCopies copies_;
    BlockLock lock_;
    LeaseQueue leases_;
    ScratchPool scratch_, joint_scratch_;  ///< of a block, and of together_max blocks

    ReleaseUnderWay release_;
    AcquireUnderWay acquire_;
    KnownNews news_;
    HeldBack held_back_;
    RaceSearch races_;
    Debts debts_;
    Flushes flushes_;
    Guesses guess_;
};

}  // namespace hiroba::dsm
