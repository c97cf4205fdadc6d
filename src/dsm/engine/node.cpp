// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/engine/node.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/thread_context.hpp"
#include "dsm/memory/kernel_calls.hpp"
#include "dsm/memory/kernel_constants.hpp"
#include "dsm/memory/page_calls.hpp"
#include "dsm/messages.hpp"
#include "dsm/news/news_encoding.hpp"

namespace hiroba::dsm {

namespace {
bool is_zero(Bytes bytes) noexcept {
    return bytes[0] == std::byte{} &&
           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
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
        return Error{ErrorKind::usage, "the lease is " + std::to_string(options.lease) +
                                           ": it may be from 1 to 1073741824"};
    }
    if (BlockSpace::blocks_of(map) > ~BlockId{0}) {
        return Error{ErrorKind::usage, "HIROBA_HEAP is " + std::to_string(map.shape().heap_bytes) +
                                           ": on " + std::to_string(map.shape().nodes) +
                                           " nodes that is more than " +
                                           std::to_string(~BlockId{0}) + " blocks of " +
                                           std::to_string(map.shape().block_bytes) + " bytes"};
    }
    auto data = gas::Segment::allocate(endpoint, map.space_bytes());
    if (!data) return data.error();
    auto records =
        gas::Segment::allocate(endpoint, BlockSpace::blocks_of(map) * sizeof(BlockRecord));
    if (!records) return records.error();
    auto changes = gas::Segment::allocate(endpoint, RaceSearch::bytes_of_changes(map, options));
    if (!changes) return changes.error();
    const std::size_t news_bytes = KnownNews::bytes_max(endpoint.nodes(), options);
    auto flushed = FlushObject::allocate(endpoint, news_bytes);
    if (!flushed) return flushed.error();
    auto moved = MovedBlocks::allocate(endpoint, BlockSpace::blocks_of(map));
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
      engine_(std::move(engine)),
      options_(options),
      self_(endpoint.self()),
      is_alone_(endpoint.nodes() == 1),
      statistics_(options.by_place),
      space_(map, std::move(made.private_memory), self_),
      entries_(BlockSpace::blocks_of(map)),
      sealed_(entries_.size(), options.sealed_blocks),
      moved_(std::move(made.moved), entries_.size(), self_),
      copies_(std::move(made.data), std::move(made.records), self_, block_bytes()),
      lock_(endpoint, copies_.records(), moved_, map, options.lock_hops),
      leases_(entries_.size()),
      scratch_(block_bytes()),
      joint_scratch_(together_max * block_bytes()),
      release_(endpoint.nodes(), entries_.size()),
      acquire_(endpoint.nodes(), entries_.size()),
      news_(self_, endpoint.nodes(), options, release_.numbers(), statistics_),
      held_back_(space_, entries_, copies_, scratch_),
      races_(std::move(made.changes),
             {self_, space_, entries_, copies_, held_back_, news_, scratch_, statistics_}, options),
      debts_(endpoint, std::move(made.boards), news_bytes_max(), release_.numbers(), news_),
      flushes_(endpoint, std::move(made.flushed), news_bytes_max(), news_) {
    endpoint.on(message::release_asked, &Node::on_release_asked, this);
    lock_.ask_by(*this);
    endpoint.on(
        message::answered,
        [](void* self, NodeId, Bytes) noexcept { static_cast<Node*>(self)->debts_.note_answer(); },
        this);
    endpoint.on(message::block_wanted, &Node::on_block_wanted, this);
    options_.exclusive &= !is_alone_;
    if (options_.open_at_once) entries_.passes().start_for_tests();
    endpoint.on(message::spin_seen, &Node::on_spin_seen, this);
    endpoint.on(message::turn_asked, &Node::on_turn_asked, this);
}

Node::~Node() {
    debts_.payer().stop();
    engine_->end_faults(*this);
}

// With what threads have done since they were last asked.
MemoryCounts Node::counts() const noexcept {
    MemoryCounts all = statistics_.counts();
    each_atomic_window([](AtomicWindow& window,
                          void* sum) { static_cast<MemoryCounts*>(sum)->atomics += window.made(); },
                       &all);
    all.waited_ns = guess_.quantum.waited_ns();
    all.page_calls = page_calls.count();
    return all;
}

Result<void> Node::attach(AddressRange early) {
    copies_.attach(endpoint_.nodes());
    races_.attach();
    flushes_.attach();
    moved_.attach();
    debts_.attach();
    if (self_.value == 0 && early.bytes > 0) {
        const std::uint64_t offset = *map().offset_of(early.address);
        publish_adopted(offset, {reinterpret_cast<const std::byte*>(early.address), early.bytes});
    }
    engine_->begin_faults(*this);
    const AddressRange range = map().main_range();
    const std::uint64_t offset = *map().offset_of(range.address);
    auto attached =
        engine_->attach(range, space_.memory().fd(), offset, space_.memory().at(offset));
    if (!attached) return attached;
    keep_cores_small();
    start_payer();
    return {};
}

// The kernel would walk the whole address space, and fill in what nobody has touched. What a
// debugger needs is the stacks, which whoever starts a thread puts in; images are small and stay.
void Node::keep_cores_small() noexcept {
    const AddressRange all = map().main_range();
    kernel_call(SYS_madvise, all.address, all.bytes, MADV_DONTDUMP);
}

// The others start with nothing and find node 0, the initial home; they must not look before it
// has published. The last block's wts is published last: it stands for the whole image.
Result<void> Node::adopt(AddressRange range) {
    const std::uint64_t offset = *map().offset_of(range.address);
    if (self_.value == 0) {
        publish_adopted(offset, {reinterpret_cast<const std::byte*>(range.address), range.bytes});
    } else {
        const std::uint64_t last = block_at(offset + range.bytes - 1);
        const gas::GlobalAddress done{
            NodeId{0}, last * sizeof(BlockRecord) + offsetof(BlockRecord, token_wts)};
        endpoint_.wait_until([&] { return copies_.records().load(done) != 0; });
    }
    // A library may come later, while other threads collect and unmap, which this role excludes.
    const RuntimeScope latches;
    const std::scoped_lock role{acquire_};
    return engine_->attach(range, space_.memory().fd(), offset, space_.memory().at(offset));
}

// Node 0: the bytes become its private copies, and public ones of time 1. What is zero, most of it
// memory that nobody has touched, stays as blocks are that nobody has touched; but the last.
void Node::publish_adopted(std::uint64_t offset, Bytes bytes) noexcept {
    kernel_call(SYS_madvise, reinterpret_cast<std::uintptr_t>(bytes.data()), bytes.size(),
                madv_populate_read);  // a hint: one call instead of a fault a page
    const BlockId last = block_at(offset + bytes.size() - 1);
    for (BlockId block = block_at(offset); block <= last; ++block) {
        const std::size_t at = offset_of(block) - offset;
        const Bytes part = bytes.subspan(at, std::min(block_bytes(), bytes.size() - at));
        if (block != last && is_zero(part)) continue;
        std::memcpy(private_copy(block), part.data(), part.size());
        lock_.lock(block);
        copies_.publish(block, private_copy(block), {Timestamp{1}, {}, {}});
        lock_.unlock(block, {self_, Timestamp{1}, Timestamp{1 + options_.lease}});
    }
}

std::size_t Node::news_bytes_max() const noexcept {
    return KnownNews::bytes_max(endpoint_.nodes(), options_);
}

std::size_t Node::news_for(NodeId peer, MutableBytes out) noexcept {
    const std::size_t bytes = news_.encode_for(peer, out);
    const bool is_far = joins() && !copies_.is_mapped(peer);
    return is_far ? carry_little_changes(out, bytes) : bytes;
}

// The reader need not ask for what is this small, and not wait for a thread of this node while that
// computes: what main or a `single` has written for all, sums, flags.
std::size_t Node::carry_little_changes(MutableBytes news, std::size_t bytes) noexcept {
    constexpr std::uint32_t looked_at_max = 64;
    const std::size_t end = bytes + options_.carried_max;
    const NewsView view{self_, news.first(bytes), news_.epochs().nodes()};
    NewsHeader header = view.header();
    std::uint32_t looked_at = 0;
    view.each_notice([&](const Notice& notice) {
        if (notice.node != self_ || notice.count != 1 || notice.rts < notice.wts) return;
        if (++looked_at > looked_at_max) return;
        BlockEntry& entry = entries_[notice.block];
        if (!entry.latch.try_lock()) return;
        const auto made = copies_.little_changed(notice.block, notice.wts);
        entry.latch.unlock();
        if (!made || bytes + made->travelling_bytes() > end) return;
        std::memcpy(news.data() + bytes, &*made, made->travelling_bytes());
        bytes += made->travelling_bytes();
        ++header.carried;
    });
    std::memcpy(news.data(), &header, sizeof header);
    return bytes;
}

// With the latch. What the notice tells of, if that came along with it.
std::optional<PublicCopies::Read> Node::take_carried(BlockId block, NodeId from, Timestamp wts,
                                                     std::byte* to) noexcept {
    const BlockEntry& entry = entries_[block];
    if (!joins() || entry.state == BlockState::discarded || entry.held_back) return std::nullopt;
    const std::byte* const base = entry.no_twin ? private_copy(block) : nullptr;
    auto put = copies_.put_together(from, block, wts, base, to);
    if (put) count(&PlaceCounters::carried);
    return put;
}

std::size_t Node::news_for_anyone(MutableBytes out) noexcept {
    return news_.encode_for_anyone(out);
}

void Node::everyone_knows_through(std::span<const NodeId> told) noexcept {
    news_.everyone_knows_through(told);
}

void Node::learn(NodeId from, Bytes news) noexcept {
    if (from == self_) return;
    const NewsView told = view(from, news);
    told.each_carried([&](const CarriedLines& came) { copies_.came().keep(came); });
    news_.epochs().learn(told.told());
    learn_notices(from, news);
}

void Node::learn_notices(NodeId from, Bytes news) noexcept {
    const NewsView told = view(from, news);
    const NewsHeader& header = told.header();
    const Timestamp min_wts = news_.least_needed(header);
    // Nothing new: what a min_wts that old made stale is inaccessible, but for blocks that this
    // node was the home of, and its own is not below it.
    if (header.count == 0 && header.clocks == 0 && acquire_.has_expired(min_wts) && !moved_.any()) {
        return;
    }
    note_flushes(told);
    news_.learned().learn(from, told, min_wts);
}

void Node::prefetch(const void* address, std::size_t bytes) noexcept {
    const RuntimeScope latches;
    space_.for_blocks(address, bytes, [&](BlockId block) {
        BlockEntry& entry = entries_[block];
        const std::scoped_lock guard{entry.latch};
        // A block whose bytes must be acquired first stays away until a thread asks for it.
        if (may_come_unasked(entry.state) && !entry.guards_stack && !must_stay(block)) {
            static_cast<void>(resolve(block, BlockEvent::read_fault));
        }
    });
}

void Node::make_accessible(const void* address, std::size_t bytes, bool write) noexcept {
    const RuntimeScope latches;
    space_.for_blocks(address, bytes, [&](BlockId block) {
        if (write) let_writes(block);
        until_acquired(block, [&] { return use_block(block, write); });
    });
}

Stamp Node::use_block(BlockId block, bool write) noexcept {
    BlockEntry& entry = entries_[block];
    const std::scoped_lock guard{entry.latch};
    if (entry.guards_stack) return {};  // the kernel's to refuse
    if (must_stay(block)) return resolve(block, BlockEvent::pinned_fault);
    const bool suffices = write ? entry.state == BlockState::writable || keeps_lock(entry.state)
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
    space_.for_blocks(address, bytes, [&](BlockId block) {
        if (write) let_writes(block);
        until_acquired(block, [&] { return pin_block(block, write, again); });
    });
    while (again.bytes > 0) {
        const std::size_t part = map().extent_left(*map().offset_of(again.address), again.bytes);
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
        stop_keeping(block);
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
    space_.for_blocks(address, bytes, [&](BlockId block) {
        BlockEntry& entry = entries_[block];
        const std::scoped_lock guard{entry.latch};
        HIROBA_INVARIANT(entry.pins > 0, "block %u is not pinned", block);
        --entry.pins;
    });
}

bool Node::lacks_page(const void* address, std::size_t bytes) const noexcept {
    const auto begin = round_down(reinterpret_cast<std::uintptr_t>(address), page_bytes);
    const auto end =
        round_up(reinterpret_cast<std::uintptr_t>(address) + bytes, std::uintptr_t{page_bytes});
    for (AddressRange rest{begin, end - begin}; rest.bytes > 0;) {
        const auto offset = map().offset_of(rest.address);
        if (!offset) return false;
        const std::size_t part = map().extent_left(*offset, rest.bytes);
        if (engine_->lacks_page({rest.address, part})) return true;
        rest = {rest.address + part, rest.bytes - part};
    }
    return false;
}

}  // namespace hiroba::dsm
