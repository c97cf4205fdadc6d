// SPDX-License-Identifier: BSD-3-Clause
// Role: see verbs_provider.hpp; how nodes meet, then what users post.
#include "net/provider/verbs/verbs_provider.hpp"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "base/fatal.hpp"
#include "base/own_libraries.hpp"
#include "base/settings.hpp"
#include "base/thread_context.hpp"
#include "net/provider/apply_atomic.hpp"
#include "net/provider/checks.hpp"
#include "net/provider/exchange_cards.hpp"
#include "net/provider/store_whole.hpp"

namespace hiroba::net::verbs {
namespace {

constexpr Limits limits_of_verbs{.name = "verbs",
                                 .message_bytes_max = VerbsProvider::message_bytes_max,
                                 .completes_inline = false,
                                 .parallel = true,
                                 .maps_peers = false,
                                 .lists_in_order = true,
                                 .pins_memory = true};
constexpr std::uint32_t card_version = 2;
constexpr std::uint64_t lanes_max = 16;

/// A node's own description; one CardRegion for each region follows.
struct Card {
    std::uint32_t version = card_version;
    std::uint32_t regions = 0;
    std::uint64_t job_key = 0;
    MeetingAddress address;
};
struct CardRegion {
    std::uint64_t bytes = 0, start = 0;
    std::uint64_t processor_atomics = 0;
};

}  // namespace

Result<std::unique_ptr<Provider>> make_verbs_provider(ProviderSetup setup) {
    if (auto checked = check_rank(setup); !checked) return checked.error();
    const auto silence_s = setting_number("HIROBA_PEER_TIMEOUT");
    if (!silence_s) return silence_s.error();
    const auto lanes = setting_number("HIROBA_VERBS_QUEUES");
    if (!lanes) return lanes.error();
    if (*lanes < 1 || *lanes > lanes_max)
        return Error{ErrorKind::usage,
                     "HIROBA_VERBS_QUEUES=" + std::to_string(*lanes) + ": 1 to 16"};
    const auto break_after = setting_number("HIROBA_VERBS_BREAK");
    if (!break_after) return break_after.error();
    const auto ibv = IbverbsLibrary::load();
    if (!ibv) return ibv.error();
    const std::string wanted =
        setup.device.empty() ? std::string(setting("HIROBA_VERBS_DEVICE")) : setup.device;
    auto device = Device::open(**ibv, wanted, setup.network);
    if (!device) return device.error();
    return std::unique_ptr<Provider>(std::make_unique<VerbsProvider>(
        std::move(setup), std::move(*device), static_cast<std::uint32_t>(*lanes), *silence_s,
        static_cast<std::uint32_t>(std::min<std::uint64_t>(*break_after, 1u << 31))));
}

VerbsProvider::VerbsProvider(ProviderSetup setup, std::unique_ptr<Device> device,
                             std::uint32_t lanes, std::uint64_t silence_max_s,
                             std::uint32_t break_after)
    : limits_(limits_of_verbs),
      setup_(std::move(setup)),
      device_(std::move(device)),
      silence_max_ns_(std::min<std::uint64_t>(silence_max_s, 1'000'000) * 1'000'000'000),
      break_after_(break_after),
      regions_(*device_),
      messages_(*device_, meeting_, setup_.nodes),
      meeting_(*device_, setup_.self, setup_.job_key ^ setup_.job_key_high),
      lanes_(lanes),
      peers_(setup_.nodes) {
    limits_.queue_pairs = lanes;
}

VerbsProvider::~VerbsProvider() = default;

const Limits& VerbsProvider::limits() const noexcept { return limits_; }

// --- meeting -------------------------------------------------------------------------------------

Result<RegionId> VerbsProvider::allocate(std::size_t bytes) {
    constexpr std::size_t region_bytes_max = std::size_t{1} << 46;
    HIROBA_INVARIANT(!connected_, "region of %lu bytes allocated after connect()", bytes);
    if (bytes > region_bytes_max)
        return refused(setup_.self, "a region of " + std::to_string(bytes) +
                                        " bytes does not fit the address space; lower HIROBA_HEAP");
    wanted_.push_back({bytes, false});
    return RegionId{static_cast<std::uint32_t>(wanted_.size() - 1)};
}

void VerbsProvider::processor_atomics(RegionId region) noexcept {
    wanted_[region.value].processor_atomics = true;
}

Result<void> VerbsProvider::open_queues() {
    const LoadingOwnLibraries descriptors{AtExit::leave_usable};
    if (auto opened = messages_.open(); !opened) return opened;
    if (auto opened = meeting_.open(messages_.srq(), messages_.receives()); !opened) return opened;
    messages_.queue().break_after(break_after_);
    std::uint32_t index = 1;
    for (auto& lane : lanes_) {
        lane = std::make_unique<Lane>(*device_, meeting_, static_cast<LaneHost&>(*this), regions_,
                                      *keys_, index++, setup_.nodes);
        if (auto opened = lane->queue().open(); !opened) return opened;
        lane->queue().break_after(break_after_);
    }
    return {};
}

// Memory is shared, though nobody else maps it: a fork of the program leaves this node, and with it
// the device, the pages that are pinned.
Result<void> VerbsProvider::take_memory() {
    for (std::uint32_t i = 0; i < wanted_.size(); ++i) {
        const std::size_t bytes = wanted_[i].bytes;
        if (setup_.memory) {
            regions_.add(setup_.memory(i).data(), bytes, false);
            continue;
        }
        void* const start =
            mmap(nullptr, round_up(std::max<std::size_t>(bytes, 1), page_bytes),
                 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (start == MAP_FAILED)
            return Error{ErrorKind::environment,
                         "mmap of " + std::to_string(bytes) + " bytes: " + strerror(errno) +
                             "; see ulimit -v and vm.max_map_count, or lower HIROBA_HEAP"};
        madvise(start, bytes, MADV_DONTDUMP);
        regions_.add(static_cast<std::byte*>(start), bytes, bytes != 0);
    }
    return {};
}

std::vector<std::byte> VerbsProvider::make_card() const {
    Card card;
    card.regions = static_cast<std::uint32_t>(wanted_.size());
    card.job_key = setup_.job_key;
    card.address = {device_->address(), meeting_.number()};
    std::vector<std::byte> bytes(sizeof card + wanted_.size() * sizeof(CardRegion));
    std::memcpy(bytes.data(), &card, sizeof card);
    // Where another provider's processors change the words of the regions, and where the device
    // has no atomics, they are the processors'.
    const bool all = setup_.memory || device_->limits().atomic_cap == IBV_ATOMIC_NONE;
    for (std::uint32_t i = 0; i < wanted_.size(); ++i) {
        const CardRegion region{wanted_[i].bytes,
                                reinterpret_cast<std::uintptr_t>(regions_.memory(i).data()),
                                static_cast<std::uint64_t>(all || wanted_[i].processor_atomics)};
        std::memcpy(bytes.data() + sizeof card + i * sizeof region, &region, sizeof region);
    }
    return bytes;
}

Result<void> VerbsProvider::learn(const std::vector<std::vector<std::byte>>& cards) {
    std::vector<MeetingAddress> addresses;
    for (std::uint32_t rank = 0; rank < setup_.nodes; ++rank) {
        const std::string who = "node " + std::to_string(rank);
        Card card;
        if (cards[rank].size() < sizeof card) return refused(setup_.self, who + " has no card");
        std::memcpy(static_cast<void*>(&card), cards[rank].data(), sizeof card);
        if (card.version != card_version)
            return refused(setup_.self, who + " has version " + std::to_string(card.version) +
                                            " of provider verbs, this node " +
                                            std::to_string(card_version));
        if (card.job_key != setup_.job_key)
            return refused(setup_.self, who + " has another job key");
        if (card.regions != wanted_.size() ||
            cards[rank].size() != sizeof card + card.regions * sizeof(CardRegion))
            return refused(setup_.self, who + " has " + std::to_string(card.regions) +
                                            " regions, this node " +
                                            std::to_string(wanted_.size()));
        for (std::uint32_t i = 0; i < wanted_.size(); ++i) {
            CardRegion region;
            std::memcpy(&region, cards[rank].data() + sizeof card + i * sizeof region,
                        sizeof region);
            if (region.bytes != wanted_[i].bytes)
                return refused(setup_.self, "sizes of regions: " + who + " has " +
                                                std::to_string(region.bytes) +
                                                " bytes where this node has " +
                                                std::to_string(wanted_[i].bytes));
            peers_[rank].starts.push_back(region.start);
            if (region.processor_atomics != 0) wanted_[i].processor_atomics = true;
        }
        addresses.push_back(card.address);
    }
    meeting_.learn(std::move(addresses));
    return {};
}

Result<void> VerbsProvider::connect() {
    HIROBA_INVARIANT(!connected_, "connect() called twice on node %u", setup_.self.value);
    std::vector<std::size_t> bytes;
    for (const Wanted& wanted : wanted_) bytes.push_back(wanted.bytes);
    keys_ = std::make_unique<PeerKeys>(setup_.nodes, std::move(bytes));
    if (auto taken = take_memory(); !taken) return taken;
    if (auto opened = open_queues(); !opened) return opened;
    const auto cards = exchange_cards(setup_, make_card());
    if (!cards) return cards.error();
    auto learned = learn(*cards);
    connected_ = static_cast<bool>(learned);
    return learned;
}

// --- posting -------------------------------------------------------------------------------------

MutableBytes VerbsProvider::local(RegionId region) noexcept { return own_memory(regions_, region); }

std::byte* VerbsProvider::mapped(NodeId node, RegionId region) noexcept {
    return node == setup_.self ? local(region).data() : nullptr;
}

std::byte* VerbsProvider::own_place(RegionId region, std::uint64_t offset,
                                    std::size_t bytes) noexcept {
    return own_part(regions_, region, offset, bytes);
}

/// A thread keeps to its lane, so that threads do not wait for each other's latch.
Lane& VerbsProvider::lane_of_thread() noexcept {
    const auto context = reinterpret_cast<std::uintptr_t>(&this_thread());
    return *lanes_[(context / sizeof(ThreadContext) * 0x9E37'79B9u >> 8) % lanes_.size()];
}

bool VerbsProvider::do_here(const Work& work, bool is_behind) noexcept {
    // Regions have one size on all nodes.
    std::byte* const place =
        own_place(work.region, work.offset, work.kind == Work::Kind::atomic ? 8 : work.bytes);
    if (work.kind == Work::Kind::atomic) {
        const bool is_aligned = work.offset % 8 == 0;
        HIROBA_INVARIANT(is_aligned, "atomic at offset %lu", work.offset);
        if (is_behind || work.peer != setup_.self || !is_by_processor(work.region.value))
            return false;
        const std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(place));
        *work.old = apply_atomic(word, work.op, work.operand, work.expected);
        return true;
    }
    if (work.bytes == 0) return true;
    if (is_behind || work.peer != setup_.self) return false;
    if (work.kind == Work::Kind::get) {
        std::memcpy(work.memory, place, work.bytes);
    } else if (reinterpret_cast<std::uintptr_t>(place) % work.bytes != 0 ||
               !store_whole(place, {work.memory, work.bytes})) {
        std::memcpy(place, work.memory, work.bytes);
    }
    return true;
}

/// False: there is no place for it.
bool VerbsProvider::enlist(Lane& lane, const Work& work, Behind& behind) noexcept {
    Op** const last = std::find_if(behind.lasts.begin(), behind.lasts.begin() + behind.count,
                                   [&](const Op* op) { return op->peer == work.peer; });
    const auto at = static_cast<std::size_t>(last - behind.lasts.begin());
    if (at == behind.lasts.size()) return false;
    Op* const op = lane.take();
    if (op == nullptr) return false;
    op->id = work.id;
    op->peer = work.peer;
    op->kind = work.kind;
    op->region = work.region.value;
    op->offset = work.offset;
    if (work.kind == Work::Kind::atomic) {
        op->op = work.op;
        op->operand = work.operand;
        op->expected = work.expected;
        op->old = work.old;
        op->by_processor = is_by_processor(op->region);
    } else {
        op->memory = work.memory;
        op->bytes = work.bytes;
    }
    if (at == behind.count) {
        ++behind.count;
        behind.started[at] = lane.start(*op);
    } else if (!behind.started[at] || Lane::would_overtake(*op, **last)) {
        (*last)->after = op;
        behind.started[at] = false;
    } else {
        behind.started[at] = lane.start(*op);
    }
    *last = op;
    return true;
}

std::size_t VerbsProvider::post(std::span<Work> list) noexcept {
    std::size_t taken = 0;
    Behind behind;
    Lane& lane = lane_of_thread();
    bool locked = false, has_room = true, own_with_device = false;
    for (Work& work : list) {
        HIROBA_INVARIANT(work.peer.value < setup_.nodes, "node %u of %u", work.peer.value,
                         setup_.nodes);
        if (work.kind == Work::Kind::send) {
            work.outcome = send(work.peer, work.message, work.urgency, work.parts);
        } else if (do_here(work, own_with_device && work.peer == setup_.self)) {
            work.outcome = Post::done;
        } else {
            if (!std::exchange(locked, true)) {
                lane.queue().latch().lock();
                // All or none: what comes with a later call is not behind what is taken now.
                has_room = lane.has_room(list.size() - taken);
            }
            const bool is_taken = has_room && enlist(lane, work, behind);
            work.outcome = is_taken ? Post::posted : Post::again;
            own_with_device |= work.peer == setup_.self;
        }
        if (work.outcome == Post::again) break;
        ++taken;
    }
    if (locked) {
        lane.queue().ring();
        lane.queue().latch().unlock();
    }
    return taken;
}

Post VerbsProvider::post_one(Work work) noexcept {
    return post({&work, 1}) == 0 ? Post::again : work.outcome;
}

Post VerbsProvider::put(OpId id, NodeId to, RegionId region, std::uint64_t offset,
                        Bytes from) noexcept {
    return post_one({.kind = Work::Kind::put,
                     .peer = to,
                     .region = region,
                     .id = id,
                     .offset = offset,
                     .memory = const_cast<std::byte*>(from.data()),
                     .bytes = from.size()});
}

Post VerbsProvider::get(OpId id, MutableBytes to, NodeId from, RegionId region,
                        std::uint64_t offset) noexcept {
    return post_one({.kind = Work::Kind::get,
                     .peer = from,
                     .region = region,
                     .id = id,
                     .offset = offset,
                     .memory = to.data(),
                     .bytes = to.size()});
}

Post VerbsProvider::atomic(OpId id, AtomicOp op, NodeId at, RegionId region, std::uint64_t offset,
                           std::uint64_t operand, std::uint64_t expected,
                           std::uint64_t* old) noexcept {
    return post_one({.kind = Work::Kind::atomic,
                     .op = op,
                     .peer = at,
                     .region = region,
                     .id = id,
                     .offset = offset,
                     .operand = operand,
                     .expected = expected,
                     .old = old});
}

Post VerbsProvider::send(NodeId to, MessageKind kind, Urgency urgency,
                         std::span<const Bytes> parts) noexcept {
    HIROBA_INVARIANT(to.value < setup_.nodes, "node %u of %u", to.value, setup_.nodes);
    check_message_bytes(parts, message_bytes_max);
    if (to != setup_.self) {
        if (is_gone(to)) return Post::done;
        return messages_.send(to, kind, urgency, parts);
    }
    constexpr std::size_t own_messages_max = 1024;
    {
        const std::scoped_lock guard{own_latch_};
        if (own_messages_.size() >= own_messages_max) return Post::again;
        OwnMessage message{kind, {}};
        for (const Bytes& part : parts)
            message.body.insert(message.body.end(), part.begin(), part.end());
        own_messages_.push_back(std::move(message));
        any_own_.store(true, std::memory_order_relaxed);
    }
    sleepers_[static_cast<std::size_t>(Sleeper::waiter)].ring();
    if (urgency == Urgency::wake_service)
        sleepers_[static_cast<std::size_t>(Sleeper::service)].ring();
    return Post::done;
}

// --- what lanes ask ------------------------------------------------------------------------------

bool VerbsProvider::is_gone(NodeId peer) const noexcept {
    return peers_[peer.value].gone.load(std::memory_order_relaxed);
}

bool VerbsProvider::is_lost(NodeId peer) const noexcept {
    return peers_[peer.value].lost.load(std::memory_order_relaxed);
}

void VerbsProvider::broke(NodeId peer) noexcept {
    peers_[peer.value].broken.store(true, std::memory_order_relaxed);
    any_broken_.store(true, std::memory_order_release);  // pairs with look_after_peers()
}

std::uint64_t VerbsProvider::start_of(NodeId peer, std::uint32_t region) const noexcept {
    return peers_[peer.value].starts[region];
}

void VerbsProvider::ask_for_key(NodeId peer, std::uint32_t region, std::uint32_t chunk) noexcept {
    Word word;
    word.what = Word::What::key_wanted;
    word.region = region;
    word.chunk = chunk;
    messages_.say(peer, word);
}

void VerbsProvider::ask_for_atomic(const Op& op, std::uint32_t lane, std::uint32_t place) noexcept {
    Word word;
    word.what = Word::What::atomic_wanted;
    word.region = op.region;
    word.chunk = lane;
    word.number = place;
    word.generation = op.generation;
    word.op = static_cast<std::uint32_t>(op.op);
    word.offset = op.offset;
    word.operand = op.operand;
    word.expected = op.expected;
    messages_.say(op.peer, word);
}

}  // namespace hiroba::net::verbs
