// SPDX-License-Identifier: BSD-3-Clause
// Role: blocks that come unasked, several at a time: what the fetch of each reads first is read in
// one exchange, and so are their leases asked for. Where the other nodes' memory is mapped, nothing
// would be gained.
// Invariant: the latches of all are held from before the reading until the end: what is read is no
// older than the notice it is read by, and no thread here brings any of them meanwhile. A lease is
// asked for only after the bytes it is for have been read (invariant 6).
#include <algorithm>
#include <array>
#include <utility>

#include "dsm/engine/node.hpp"

namespace hiroba::dsm {

namespace {
constexpr std::size_t fetches_max = 16;
}

/// One of the blocks, and what is read for it.
struct Node::JointFetch {
    enum class Way : std::uint8_t {
        alone,      ///< needs no exchange, or what was read said nothing
        by_notice,  ///< the copy that its notice names
        by_home,    ///< where the home is taken to be: its words, then its copy or its time
        over,
        held,  ///< a node has its lock: it does not come unasked
    };
    using Access = gas::Segment::Access;

    Way way = Way::alone;
    BlockId block = 0;
    NodeId at;
    BlockWork how = BlockWork::fetch;  ///< none: only if the version here is the newest
    std::byte* bytes = nullptr;
    std::optional<PublicCopies::Reading> reading;
    std::optional<PublicCopies::Read> came;  ///< along with the notice
    BlockLock::HomeWords words{};
    std::uint64_t newest = 0;
    std::optional<std::array<Access, 1 + PublicCopies::Reading::accesses>> accesses;
    std::size_t access_count = 0;

    std::optional<Access> extension;  ///< asks for a lease at the home,
    Timestamp until;                  ///< until then
    bool moved = false;
    Stamp missing;

    /// What is brought if the home has to be asked: none: nothing newer than what is here.
    void prepare(Node& node, BlockId which, BlockWork from_home, std::byte* room) noexcept;
    void take_what_was_read(Node& node) noexcept;
    bool is_brought(Node& node) const noexcept;
    gas::Segment::List list() { return {at, std::span{*accesses}.first(access_count)}; }

private:
    void prepare_home(Node& node, bool with_copy) noexcept;
    void take_by_notice(Node& node) noexcept;
    void take_from_home(Node& node) noexcept;
};

namespace {

template <class Fetches>
void read_together(Fetches fetches) noexcept {
    std::array<gas::Segment::List, fetches_max> lists;
    std::size_t count = 0;
    for (auto& fetch : fetches)
        if (fetch.access_count > 0) lists[count++] = fetch.list();
    if (count == 0) return;
    gas::Segment::together(std::span{lists}.first(count));
    for (auto& fetch : fetches)
        if (fetch.reading) fetch.reading->made_at(fetch.at);
}

template <class Fetches>
void extend_together(Fetches fetches) noexcept {
    std::array<gas::Segment::List, fetches_max> lists;
    std::size_t count = 0;
    for (auto& fetch : fetches)
        if (fetch.extension) lists[count++] = {fetch.at, {&*fetch.extension, 1}};
    if (count > 0) gas::Segment::together(std::span{lists}.first(count));
}

}  // namespace

// The first reads of all, then all leases.
/// @param room  a block for each
void Node::bring_together(std::span<JointFetch> fetches, std::span<const BlockId> blocks,
                          BlockWork from_home, std::byte* room) noexcept {
    for (std::size_t i = 0; i < blocks.size(); ++i)
        fetches[i].prepare(*this, blocks[i], from_home, room + i * block_bytes());
    read_together(fetches);
    for (JointFetch& fetch : fetches) fetch.take_what_was_read(*this);
    extend_together(fetches);
}

// As fetch_ahead() or, for those without a notice if `from_home`, fetch_from_home_ahead().
std::uint32_t Node::fetch_ahead_together(std::span<const BlockId> blocks, bool from_home,
                                         bool takes) noexcept {
    static_assert(together_max == fetches_max);
    HIROBA_INVARIANT(blocks.size() <= together_max, "%lu blocks at once", blocks.size());
    std::uint32_t brought = 0;
    const auto note = [&](std::size_t i, bool came) { brought |= std::uint32_t{came} << i; };
    const auto alone = [&](BlockId block) { return fetch_ahead_alone(block, from_home, takes); };
    if (!joins()) {
        for (std::size_t i = 0; i < blocks.size(); ++i) note(i, alone(blocks[i]));
        return brought;
    }
    on_runtime_stack([&] {
        std::array<JointFetch, together_max> all;
        const std::span fetches = std::span{all}.first(blocks.size());
        const Scratch room{joint_scratch_};
        bring_together(fetches, blocks, from_home ? BlockWork::fetch : BlockWork::none, room.get());
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            note(i, fetches[i].way == JointFetch::Way::alone ? alone(blocks[i])
                                                             : fetches[i].is_brought(*this));
        }
    });
    return brought;
}

bool Node::fetch_ahead_alone(BlockId block, bool from_home, bool takes) noexcept {
    BlockEntry& entry = entries_[block];
    if (takes && entry.state == BlockState::invalid && entry.writes.guess >= write_guess_sure) {
        // What must be acquired first stays away, and nobody's but for the next who comes.
        if (!take_whole(block).is_none()) return false;
        if (readable(entry.state)) return true;
    }
    const bool looks = from_home && entry.notice_wts == Timestamp{};
    return looks && !lock_.is_here(block) ? fetch_from_home_ahead(block) : fetch_ahead(block);
}

// Rebases, of the blocks that the acquire has put off, all that need nothing but reading. The rest
// stays for rebase_pinned(). With the acquire role.
void Node::rebase_together() noexcept {
    std::size_t kept = 0;
    const std::span put_off = acquire_.put_off_blocks();
    for (std::size_t first = 0; first < put_off.size();) {
        const std::size_t count = std::min(together_max, put_off.size() - first);
        const std::span blocks = put_off.subspan(first, count);
        std::array<JointFetch, together_max> all;
        const std::span fetches = std::span{all}.first(count);
        const Scratch room{joint_scratch_};
        for (const BlockId block : blocks) entries_[block].latch.lock();
        bring_together(fetches, blocks, BlockWork::rebase, room.get());
        for (std::size_t i = 0; i < count; ++i) {
            BlockEntry& entry = entries_[blocks[i]];
            const BlockId block = blocks[i];
            entry.stale.pinned = !fetches[i].is_brought(*this);
            if (entry.stale.pinned) put_off[kept++] = block;
            entry.latch.unlock();
        }
        first += count;
    }
    acquire_.shrink_put_off(kept);
}

// With the block's latch, as all of these.
void Node::JointFetch::prepare(Node& node, BlockId which, BlockWork from_home,
                               std::byte* room) noexcept {
    const BlockEntry& entry = node.entries_[which];
    block = which;
    bytes = room;
    const bool rebases = from_home == BlockWork::rebase;
    if (rebases && (!readable(entry.state) || entry.brought)) return;
    how = rebases ? from_home : BlockWork::fetch;
    const bool has_notice = entry.notice_wts != Timestamp{};
    const bool has_lease = has_notice && entry.notice_wts <= entry.notice_rts;
    if (has_lease) {
        if (entry.notice_rts < node.min_wts()) return;
        if (entry.notice_wts <= node.copies_.own_wts(block)) return;
        at = entry.notice_node;
    } else {
        if (!has_notice && node.lock_.is_here(block)) return;
        at = node.lock_.first_stop(block, home_guess(entry, node.self_));
        if (!has_notice) how = from_home;
    }
    if (at == node.self_ || node.copies_.is_mapped(at)) return;
    way = has_lease ? Way::by_notice : Way::by_home;
    if (has_lease && (came = node.take_carried(block, at, entry.notice_wts, bytes))) return;
    // A block that was renewed the last time will be renewed again.
    if (has_lease || entry.run.renewals == 0) reading.emplace(node.copies_, block, bytes);
    if (!has_lease) return prepare_home(node, reading.has_value());
    const auto copy = reading->list();
    accesses.emplace(std::array{copy[0], copy[1], copy[2], copy[2]});
    access_count = copy.size();
}

void Node::JointFetch::prepare_home(Node& node, bool with_copy) noexcept {
    const Access look = node.lock_.look_for_home(block, words);
    if (!with_copy) {
        const Access time = node.copies_.look_at_wts(block, newest);
        accesses.emplace(std::array{look, time, time, time});
        access_count = 2;
        return;
    }
    const auto copy = reading->list();
    accesses.emplace(std::array{look, copy[0], copy[1], copy[2]});
    access_count = accesses->size();
}

// Private memory gets the bytes; whether they may be shown is said in is_brought().
void Node::JointFetch::take_what_was_read(Node& node) noexcept {
    if (way == Way::by_notice) take_by_notice(node);
    if (way == Way::by_home) take_from_home(node);
}

void Node::JointFetch::take_by_notice(Node& node) noexcept {
    BlockEntry& entry = node.entries_[block];
    if (!came) {
        const auto read = reading->read_from(at);
        way = read ? Way::over : Way::alone;  // its owner was publishing
        if (!read) return;
        came = {*read, node.block_bytes()};
    }
    way = Way::over;
    HIROBA_INVARIANT(came->version.wts >= entry.notice_wts,
                     "block %u: node %u has %lu, its notice said %lu (invariant 11)", block,
                     at.value, came->version.wts.value, entry.notice_wts.value);
    const Timestamp wts = std::exchange(entry.notice_wts, {});
    missing = node.put_in_place(block, at, bytes, how, *came);
    if (how == BlockWork::rebase && !missing.is_none()) {
        entry.notice_wts = wts;  // nothing was brought
    } else {
        node.note_notice_used(block, entry.notice_rts, missing);
    }
}

void Node::JointFetch::take_from_home(Node& node) noexcept {
    const auto read = reading ? reading->read_from(at) : std::nullopt;
    const auto home = node.lock_.home_in(at, block, words);
    if (!home || (reading && !read)) {
        way = node.lock_.is_held_in(at, block, words) ? Way::held : Way::alone;
        return;
    }
    const auto took = node.take_from_home(block, at, how, read ? read->wts : Timestamp{newest},
                                          read, bytes, missing);
    if (!took) return;  // something newer would come
    moved = *took;
    until = node.lease_to_ask_for(block, *home, moved);
    extension.emplace(node.lock_.extension(block, *home, until));
}

// By the home: if its lock has not been taken meanwhile.
bool Node::JointFetch::is_brought(Node& node) const noexcept {
    BlockEntry& entry = node.entries_[block];
    if (way == Way::over) return missing.is_none() && entry.rts >= node.min_wts();
    if (!extension || !BlockLock::is_extended(*extension)) return false;
    node.note_lease(block, until, moved);
    if (how == BlockWork::fetch || (how == BlockWork::rebase && missing.is_none())) {
        entry.notice_wts = {};
        entry.brought = !missing.is_none();
    }
    return missing.is_none() && node.is_current(block);
}

}  // namespace hiroba::dsm
