// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/engine/node.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/thread_context.hpp"
#include "dsm/memory/kernel_calls.hpp"
#include "dsm/messages.hpp"

namespace hiroba::dsm {

namespace {
// Notices of one synchronization: every peer's whole signature, many times over.
constexpr std::size_t pending_max = std::size_t{4} << 20;
constexpr std::size_t blocks_per_invalidation = 1024;

/// Of how many nodes news say what is known of them.
std::size_t known_count(const net::Endpoint& endpoint, const MemoryOptions& options) noexcept {
    return options.race == MemoryOptions::Race::off ? 0 : endpoint.nodes();
}
constexpr std::size_t bytes_of_news(std::size_t clocks, std::size_t notices,
                                    std::size_t known) noexcept {
    return sizeof(NewsHeader) + clocks * sizeof(ClockNews) + notices * sizeof(Notice) +
           known * sizeof(Epoch);
}

template <class Visit>
void for_clocks(Bytes news, Visit&& visit) noexcept {
    NewsHeader header;
    std::memcpy(&header, news.data(), sizeof header);
    for (std::uint32_t i = 0; i < header.clocks; ++i) {
        ClockNews told;
        std::memcpy(&told, news.data() + sizeof header + i * sizeof told, sizeof told);
        visit(told);
    }
}
}  // namespace

Result<std::unique_ptr<SharedMemory>> SharedMemory::create(net::Endpoint& endpoint,
                                                           const AddressMap& map,
                                                           std::unique_ptr<FaultEngine> engine,
                                                           const MemoryOptions& options) {
    if (options.notices_max < 1 || options.notices_max > 1u << 20) {
        return Error{ErrorKind::usage, "HIROBA_NOTICES is " + std::to_string(options.notices_max) +
                                           ": set it from 1 to 1048576"};
    }
    if (options.lease < 1 || options.lease > 1u << 30) {
        return Error{ErrorKind::usage, "HIROBA_LEASE is " + std::to_string(options.lease) +
                                           ": set it from 1 to 1073741824"};
    }
    if (Node::blocks_of(map) > ~BlockId{0}) {
        return Error{ErrorKind::usage, "HIROBA_HEAP is " + std::to_string(map.shape().heap_bytes) +
                                           ": on " + std::to_string(map.shape().nodes) +
                                           " nodes that is more than " +
                                           std::to_string(~BlockId{0}) + " blocks of " +
                                           std::to_string(map.shape().block_bytes) + " bytes"};
    }
    auto data = gas::Segment::allocate(endpoint, map.space_bytes());
    if (!data) return data.error();
    auto records = gas::Segment::allocate(endpoint, Node::blocks_of(map) * sizeof(BlockRecord));
    if (!records) return records.error();
    auto changes = gas::Segment::allocate(endpoint, Node::bytes_of_changes(map, options));
    if (!changes) return changes.error();
    const std::size_t news_bytes =
        bytes_of_news(endpoint.nodes(), options.notices_max, known_count(endpoint, options));
    auto flushed = FlushObject::allocate(endpoint, news_bytes);
    if (!flushed) return flushed.error();
    auto moved = MovedBlocks::allocate(endpoint, Node::blocks_of(map));
    if (!moved) return moved.error();
    auto boards = NewsBoard::allocate(endpoint, news_bytes);
    if (!boards) return boards.error();
    auto memory = PrivateMemory::create(map.space_bytes());
    if (!memory) return memory.error();
    return std::unique_ptr<SharedMemory>{
        new Node{endpoint,
                 map,
                 std::move(engine),
                 options,
                 {std::move(*data), std::move(*records), std::move(*changes), std::move(*flushed),
                  std::move(*moved), std::move(*boards), std::move(*memory)}}};
}

Node::Node(net::Endpoint& endpoint, const AddressMap& map, std::unique_ptr<FaultEngine> engine,
           const MemoryOptions& options, Made made)
    : endpoint_(endpoint),
      map_(map),
      engine_(std::move(engine)),
      options_(options),
      self_(endpoint.self()),
      block_bytes_(map.shape().block_bytes),
      block_shift_(static_cast<unsigned>(std::countr_zero(block_bytes_))),
      data_(std::move(made.data)),
      records_(std::move(made.records)),
      changes_(std::move(made.changes)),
      flush_object_(
          endpoint, std::move(made.flushed),
          bytes_of_news(endpoint.nodes(), options.notices_max, known_count(endpoint, options))),
      board_(endpoint, std::move(made.boards),
             bytes_of_news(endpoint.nodes(), options.notices_max, known_count(endpoint, options))),
      private_memory_(std::move(made.private_memory)),
      entries_(blocks_of(map)),
      moved_(std::move(made.moved), blocks_of(map), self_),
      lock_(endpoint, records_, moved_, map, options.lock_hops),
      copies_(data_, records_, self_, block_bytes_),
      change_log_(changes_, block_bytes_, 0),
      atomic_log_(changes_, block_bytes_, blocks_of(map) * ChangeLog::entry_bytes(block_bytes_)),
      known_(known_count(endpoint, options)),
      pending_known_(known_.size(), first_epoch),
      flushed_known_(known_.size(), first_epoch),
      seen_early_(known_.size()),
      early_(known_.empty() ? 0 : blocks_of(map)),
      leases_(blocks_of(map)),
      scratch_(block_bytes_),
      joint_scratch_(together_max * block_bytes_),
      signature_entries_(Signature::entries_for(options.notices_max)),
      signature_index_(Signature::index_slots(options.notices_max)),
      signature_(options.notices_max, signature_entries_.span(), signature_index_.span()),
      sent_(endpoint.nodes(), 0),
      sent_releases_(endpoint.nodes(), 0),
      clocks_(endpoint.nodes()),
      acquired_(endpoint.nodes()),
      inaccessible_(endpoint.nodes()),
      pulled_(bytes_of_news(endpoint.nodes(), options.notices_max, known_count(endpoint, options))),
      pending_(pending_max),
      pending_clocks_(endpoint.nodes()),
      work_(blocks_of(map)),
      made_(2 * blocks_of(map)),
      made_needs_(endpoint.nodes()),
      unmerged_(blocks_of(map)),
      bases_(map.space_bytes()),
      held_back_(blocks_of(map)),
      taken_(pending_max),
      applied_(endpoint.nodes()),
      stale_pinned_(blocks_of(map)) {
    if (options.by_place) places_ = std::make_unique<PlaceTable>();
    invalidation_.ranges.reserve(blocks_per_invalidation);
    invalidation_.blocks.reserve(blocks_per_invalidation);
    endpoint.on(message::release_asked, &Node::on_release_asked, this);
    lock_.ask_by(*this);
    endpoint.on(message::block_wanted, &Node::on_block_wanted, this);
    // A job of one node has no other that could read.
    options_.exclusive &= endpoint.nodes() > 1;
    endpoint.on(message::spin_seen, &Node::on_spin_seen, this);
    for (auto& epoch : known_) epoch.store(first_epoch, std::memory_order_relaxed);
    const std::uint32_t threads = map.shape().threads_per_node;
    const AddressRange first = map.stack_slice(self_.value * threads);
    const AddressRange last = map.stack_slice(self_.value * threads + threads - 1);
    pinned_begin_ = *map.offset_of(first.address);
    pinned_end_ = *map.offset_of(last.end() - 1) + 1;
}

Node::~Node() {
    stop_payer();
    engine_->end_faults(*this);
}

Result<void> Node::attach(AddressRange early) {
    data_.attach();
    records_.attach();
    changes_.attach();
    flush_object_.attach();
    moved_.attach();
    board_.attach();
    all_mapped_ = true;
    for (std::uint32_t node = 0; node < endpoint_.nodes(); ++node)
        all_mapped_ &= records_.reach({NodeId{node}, 0}, 0) != nullptr;
    joins_ = !all_mapped_ && options_.join;
    if (self_.value == 0 && early.bytes > 0) {
        const std::uint64_t offset = *map_.offset_of(early.address);
        std::memcpy(private_memory_.at(offset), reinterpret_cast<const void*>(early.address),
                    early.bytes);
        publish_adopted(offset, early.bytes);
    }
    engine_->begin_faults(*this);
    const AddressRange range = map_.main_range();
    const std::uint64_t offset = *map_.offset_of(range.address);
    auto attached =
        engine_->attach(range, private_memory_.fd(), offset, private_memory_.at(offset));
    if (!attached) return attached;
    keep_cores_small();
    start_payer();
    return {};
}

// The kernel would walk the whole address space, and fill in what nobody has touched. What a
// debugger needs is the stacks, which whoever starts a thread puts in; images are small and stay.
void Node::keep_cores_small() noexcept {
    const AddressRange all = map_.main_range();
    kernel_call(SYS_madvise, all.address, all.bytes, MADV_DONTDUMP);
}

// The others start with nothing and find node 0, the initial home; they must not look before it
// has published. The last block's wts is published last: it stands for the whole image.
Result<void> Node::adopt(AddressRange range) {
    const std::uint64_t offset = *map_.offset_of(range.address);
    if (self_.value == 0) {
        std::memcpy(private_memory_.at(offset), reinterpret_cast<const void*>(range.address),
                    range.bytes);
        publish_adopted(offset, range.bytes);
    } else {
        const std::uint64_t last = block_at(offset + range.bytes - 1);
        const gas::GlobalAddress done{
            NodeId{0}, last * sizeof(BlockRecord) + offsetof(BlockRecord, token_wts)};
        endpoint_.wait_until([&] { return records_.load(done) != 0; });
    }
    // A library may come later, while other threads collect and unmap, which this role excludes.
    const RuntimeScope latches;
    const std::scoped_lock role{acquire_};
    return engine_->attach(range, private_memory_.fd(), offset, private_memory_.at(offset));
}

// Node 0: its private bytes become the public copies of time 1.
void Node::publish_adopted(std::uint64_t offset, std::size_t bytes) noexcept {
    const BlockId last = block_at(offset + bytes - 1);
    for (BlockId block = block_at(offset); block <= last; ++block) {
        lock_.lock(block);
        copies_.publish(block, private_copy(block), {Timestamp{1}, {}, {}});
        lock_.unlock(block, {self_, Timestamp{1}, Timestamp{1 + options_.lease}});
    }
}

AddressRange Node::program_range(BlockId block) const noexcept {
    const std::uint64_t offset = offset_of(block);
    return {map_.address_of(offset), map_.extent_left(offset, block_bytes_)};
}

bool Node::is_pinned(std::uint64_t offset) const noexcept {
    return offset - pinned_begin_ < pinned_end_ - pinned_begin_;
}

std::size_t Node::news_bytes_max() const noexcept {
    return bytes_of_news(endpoint_.nodes(), options_.notices_max, known_.size());
}

std::size_t Node::bytes_of_changes(const AddressMap& map, const MemoryOptions& options) {
    if (options.race == MemoryOptions::Race::off) return ChangeLog::entry_bytes(0);
    // Of plain writes and of atomics.
    return 2 * blocks_of(map) * ChangeLog::entry_bytes(map.shape().block_bytes);
}

/// What all of `told` have; of none, what all peers have.
template <class Value>
Value Node::least_of(const std::vector<Value>& sent, std::span<const NodeId> told) const noexcept {
    Value least = ~Value{0};
    for (const NodeId peer : told) least = std::min(least, sent[peer.value]);
    for (std::uint32_t peer = 0; told.empty() && peer < sent.size(); ++peer) {
        if (NodeId{peer} != self_) least = std::min(least, sent[peer]);
    }
    return least;
}

// Under signature_latch_.
void Node::trim_signature() noexcept {
    count(&PlaceCounters::notices_dropped, signature_.trim(known_to_all()));
    show_min_wts();
}

// Under signature_latch_. Stored only where it rises: the store costs what a latch costs, and a
// synchronization with nothing to say would make several.
void Node::show_min_wts() noexcept {
    const std::uint64_t value = signature_.min_wts().value;
    if (min_wts_.load(std::memory_order_relaxed) == value) return;  // changes under this latch only
    min_wts_.store(value, std::memory_order_seq_cst);               // pairs with min_wts()
}

// Under signature_latch_. Notices that `skip` wrote itself are no news to it.
std::size_t Node::encode_since(NewsSequence since, NodeId skip, MutableBytes out) noexcept {
    trim_signature();
    NewsHeader header{signature_.min_wts().value, 0, 0};
    std::size_t at = sizeof header;
    const std::uint32_t flushes =
        program_flushes_.load(std::memory_order_relaxed) ? 1 : 0;  // a hint
    for (std::uint32_t node = 0; node < clocks_.size(); ++node) {
        const Clock& clock = clocks_[node];
        if (clock.changed <= since) continue;
        const ClockNews told{node, flushes, clock.told, clock.needed, clock.epoch};
        std::memcpy(out.data() + at, &told, sizeof told);
        at += sizeof told;
        ++header.clocks;
    }
    signature_.since(since, [&](const Notice& notice) {
        if (notice.node == skip) return;
        HIROBA_INVARIANT(at + sizeof notice <= out.size(), "news of %lu bytes into %lu",
                         at + sizeof notice, out.size());
        std::memcpy(out.data() + at, &notice, sizeof notice);
        at += sizeof notice;
        ++header.count;
    });
    std::memcpy(out.data(), &header, sizeof header);
    return at + encode_known(out.subspan(at));
}

std::size_t Node::news_for(NodeId peer, MutableBytes out) noexcept {
    // Acquire: pairs with note_untold(). What this thread must tell was added by itself, or by
    // others before this thread took a role after them.
    if (!has_untold_.load(std::memory_order_acquire)) {
        const NewsHeader nothing{min_wts().value, 0, 0};
        std::memcpy(out.data(), &nothing, sizeof nothing);
        return sizeof nothing + encode_known(out.subspan(sizeof nothing));
    }
    const std::scoped_lock guard{signature_latch_};
    const std::size_t bytes = encode_since(sent_[peer.value], peer, out);
    sent_[peer.value] = signature_.last_sequence();
    sent_releases_[peer.value] = completed_.load(std::memory_order_relaxed);  // same latch
    return bytes;
}

std::size_t Node::news_for_anyone(MutableBytes out) noexcept {
    const std::scoped_lock guard{signature_latch_};
    return encode_since(known_to_all(), NodeId{~0u}, out);
}

// By several threads, each of which has learned it another way.
void Node::raise_known_release(ReleaseNumber release) noexcept {
    ReleaseNumber known = known_release_.load(std::memory_order_relaxed);
    // Release: pairs with may_be_exclusive().
    while (known < release &&
           !known_release_.compare_exchange_weak(known, release, std::memory_order_release)) {
    }
}

void Node::everyone_knows_through(std::span<const NodeId> told) noexcept {
    if (!has_untold_.load(std::memory_order_acquire)) return;  // as in news_for()
    const std::scoped_lock guard{signature_latch_};
    const NewsSequence known = least_of(sent_, told);
    // A notice that another thread here has made since the last news_for() went to nobody; nor did
    // one that another thread has learned since, by a lock or a flush or because it came upon its
    // bytes: peers need not have it.
    bool untold = learned_aside_ > known || clocks_[self_.value].changed > known;
    signature_.since(known, [&](const Notice& n) { untold |= n.node == self_; });
    known_to_all_ = untold ? known : signature_.last_sequence();
    for (NewsSequence& sent : sent_) sent = std::max(sent, known_to_all_);
    if (untold) return;
    raise_known_release(least_of(sent_releases_, told));
    signature_.forget_all();
    show_min_wts();
    has_untold_.store(false, std::memory_order_release);  // pairs with news_for()
}

void Node::learn(NodeId from, Bytes news) noexcept {
    if (from == self_) return;
    learn_known(news);
    learn_notices(from, news);
}

// Whether the program flushes, here or elsewhere.
void Node::note_flushes(Bytes news) noexcept {
    for_clocks(news, [this](const ClockNews& told) {
        if (told.program_flushes != 0)
            program_flushes_.store(true, std::memory_order_relaxed);  // as flush()
    });
}

void Node::learn_notices(NodeId from, Bytes news) noexcept {
    NewsHeader header;
    HIROBA_INVARIANT(news.size() >= sizeof header, "news of %lu bytes from node %u", news.size(),
                     from.value);
    std::memcpy(&header, news.data(), sizeof header);
    const std::size_t clock_bytes = header.clocks * sizeof(ClockNews);
    HIROBA_INVARIANT(news.size() == bytes_of_news(header.clocks, header.count, known_.size()),
                     "news of %lu bytes with %u notices and %u clocks from node %u", news.size(),
                     header.count, header.clocks, from.value);
    // Nothing new: what a min_wts that old made stale is inaccessible, but for blocks that this
    // node was the home of, and its own is not below it. Acquire, pairs with acquire_round().
    if (header.count == 0 && header.clocks == 0 &&
        header.min_wts <= expired_to_.load(std::memory_order_acquire) && !moved_.any()) {
        return;
    }
    const std::scoped_lock guard{pending_latch_};
    HIROBA_INVARIANT(pending_count_ + header.count <= pending_.size(), "%lu notices pending",
                     pending_count_);
    for_clocks(news, [&](const ClockNews& told) {
        Clock& clock = pending_clocks_[told.node];
        clock.told = std::max(clock.told, told.told);
        clock.needed = std::max(clock.needed, told.needed);
        clock.epoch = std::max(clock.epoch, told.epoch);
    });
    note_flushes(news);
    std::memcpy(pending_.data() + pending_count_, news.data() + sizeof header + clock_bytes,
                header.count * sizeof(Notice));
    pending_count_ += header.count;
    pending_min_wts_ = std::max(pending_min_wts_, Timestamp{header.min_wts});
    pending_aside_ |= from == NodeId{~0u};
    has_pending_.store(true, std::memory_order_release);  // pairs with acquire()
}

void Node::prefetch(const void* address, std::size_t bytes) noexcept {
    const RuntimeScope latches;
    for_blocks(address, bytes, [&](BlockId block) {
        BlockEntry& entry = entries_[block];
        const std::scoped_lock guard{entry.latch};
        // What must be acquired first stays away until it is asked for.
        if (may_come_unasked(entry.state) && !entry.guards_stack && !must_stay(block)) {
            static_cast<void>(resolve(block, BlockEvent::read_fault));
        }
    });
}

void Node::make_accessible(const void* address, std::size_t bytes, bool write) noexcept {
    const RuntimeScope latches;
    for_blocks(address, bytes, [&](BlockId block) {
        for (Stamp missing; !(missing = use_block(block, write)).is_none();) catch_up_with(missing);
    });
}

Stamp Node::use_block(BlockId block, bool write) noexcept {
    BlockEntry& entry = entries_[block];
    const std::scoped_lock guard{entry.latch};
    if (entry.guards_stack) return {};  // the kernel's to refuse
    if (must_stay(block)) return resolve(block, BlockEvent::pinned_fault);
    const bool suffices =
        write ? entry.state == BlockState::writable || entry.state == BlockState::exclusive
              : readable(entry.state) && !entry.watched;
    if (suffices) return {};
    note_use(entry);
    return resolve(block, write ? BlockEvent::write_fault : BlockEvent::read_fault);
}

// For the kernel to read, the block keeps its state and make_stale() spares it; to be written, it
// must also keep its write access when a release re-arms write tracking: the kernel takes no fault.
// Blocks that were accessible before are mapped again run by run, in case the kernel or the engine
// has dropped them; that needs no latch, for with its pin none becomes inaccessible.
void Node::pin(const void* address, std::size_t bytes, bool write) noexcept {
    const RuntimeScope here;
    AddressRange again;
    for_blocks(address, bytes, [&](BlockId block) {
        for (Stamp missing; !(missing = pin_block(block, write, again)).is_none();) {
            catch_up_with(missing);
        }
    });
    while (again.bytes > 0) {
        const std::size_t part = map_.extent_left(*map_.offset_of(again.address), again.bytes);
        engine_->map({again.address, part}, write ? Access::write : Access::read);
        again = {again.address + part, again.bytes - part};
    }
}

Stamp Node::pin_block(BlockId block, bool write, AddressRange& again) noexcept {
    BlockEntry& entry = entries_[block];
    const std::scoped_lock guard{entry.latch};
    HIROBA_INVARIANT(entry.pins < UINT16_MAX, "block %u: %u pins", block, entry.pins);
    const bool stays = must_stay(block);
    note_use(entry);
    const bool suffices = !write && readable(entry.state) && !stays;
    if (entry.guards_stack) {  // the kernel's to refuse
    } else if (entry.state == BlockState::pinned || suffices) {
        const AddressRange range = program_range(block);
        if (again.bytes == 0) again.address = range.address;
        again.bytes = range.end() - again.address;
    } else {
        stop_exclusive(block);
        const auto event = write || stays ? BlockEvent::pinned_fault : BlockEvent::read_fault;
        const Stamp missing = resolve(block, event);
        if (!missing.is_none()) return missing;
    }
    ++entry.pins;
    return {};
}

// A block pinned to be written keeps that state until it becomes stale: the next call on the same
// buffer finds it mapped.
void Node::unpin(const void* address, std::size_t bytes) noexcept {
    const RuntimeScope here;
    for_blocks(address, bytes, [&](BlockId block) {
        BlockEntry& entry = entries_[block];
        const std::scoped_lock guard{entry.latch};
        HIROBA_INVARIANT(entry.pins > 0, "block %u is not pinned", block);
        --entry.pins;
    });
}

void Node::on_race(RaceReport report, void* context) noexcept {
    race_context_ = context;
    race_report_.store(report, std::memory_order_release);  // pairs with report_race()
}

Node::RowCounts Node::rows() const noexcept {
    RowCounts counts{};
    for (unsigned state = 0; state < block_states; ++state) {
        for (unsigned event = 0; event < block_events; ++event) {
            counts[state][event] = rows_[state][event].load(std::memory_order_relaxed);
        }
    }
    return counts;
}

std::optional<Node::BlockView> Node::look_at(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    if (!entry.latch.try_lock()) return std::nullopt;
    const bool acquiring = !acquire_.try_lock();
    if (!acquiring) acquire_.unlock();
    const bool releasing = !release_.try_lock();
    if (!releasing) release_.unlock();
    const Stamp stamp = copies_.own_stamp(block);
    const BlockView view{
        entry.state,
        entry.rts,
        Timestamp{expired_to_.load(std::memory_order_acquire)},  // acquire_on_runtime_stack()
        moved_.is_marked(block),
        acquiring,
        releasing,
        may_show(stamp) || stamp.writer() == self_,
        twin_of(block),
        reinterpret_cast<const BlockRecord*>(records_.local())[block],
        private_copy(block),
        copies_.own(block)};
    entry.latch.unlock();
    return view;
}

void Node::each_place(PlaceVisit visit, void* context) const noexcept {
    if (places_ != nullptr) places_->each(visit, context);
}

}  // namespace hiroba::dsm
