// SPDX-License-Identifier: BSD-3-Clause
// Role: turns between nodes whose atomics are on the same block. A block goes where the atomic is,
// and with it what came before: a release of the node it leaves, an acquire of the node it goes to.
// A node in the middle of many atomics has several in a turn; one whose atomics change nothing is
// waiting for the others, so it lets go as soon as one of them asks, and waits for what it does.
// Without that it would take the block back, or owe another release, before they have made theirs.
// Invariant: a turn decides when an atomic begins, never what it does. Every wait here ends by
// itself, with nothing held.
#include <cstring>
#include <span>
#include <utility>

#include "base/clock.hpp"
#include "base/thread_context.hpp"
#include "dsm/engine/node.hpp"
#include "dsm/guess/bounded_wait.hpp"
#include "dsm/messages.hpp"

namespace hiroba::dsm {

namespace {
using Turn = NewsBoard::Turn;

constexpr std::uint64_t dense_ns = 5'000;   ///< between two operations of this node
constexpr std::uint64_t turn_ns = 100'000;  ///< more where releases take long
/// Where messages take so long that each turn is over before its news arrive: on busy machines.
constexpr std::uint64_t turn_of_starved_ns = 20'000'000;
constexpr unsigned tries_in_turn = 2;  ///< of an atomic, before it insists
constexpr unsigned tries_of_load = 2;  ///< before it asks for a turn
constexpr unsigned tries_to_starve = 5;
constexpr std::uint64_t lately_ns = 1'000'000;
constexpr std::uint64_t idle_ns = 3'000;  ///< without an operation of the other node: its turn ends
/// Likewise, where it was given: it may acquire and read what it has waited for.
constexpr std::uint64_t idle_after_giving_ns = 30'000;
}  // namespace

/// What a node says of its turn where it cannot store it.
struct Node::TurnMessage {
    BlockId block = 0;
    std::uint8_t asks = 0;  ///< 0: its turn is over
    Turn turn = Turn::patient;
    std::uint16_t unused = 0;
};

// Before an atomic on `block`. Gives the turn to a node that asks for it: that finds what it has to
// acquire, and no further atomic of this thread, until it has made its own. Who has not used the
// block for a while goes first itself: it may be about to tell the other what that waits for.
// Returns since when it has held back; 0: nobody has asked.
std::uint64_t Node::give_turn(BlockId block) noexcept {
    if (!debts_.board().is_turn_asked()) return 0;
    AtomicQuantum& quantum = guess_.quantum;
    const std::uint64_t begin = now_ns();
    const BlockEntry& entry = entries_[block];  // hints, read without the latch
    const bool dense = begin - entry.atomics.at_ns <= dense_ns, vain = entry.atomics.vain;
    bool paid = false;
    const std::uint64_t usual_ns = guess_.pull_times.longest_wait_ns(turn_ns);
    std::uint64_t longest_ns = usual_ns;
    const auto other = debts_.board().give_turn([&](Turn turn, BlockId asked) {
        // A thread that makes atomics here and there may come to that block late.
        if (asked != block && (turn == Turn::patient || !is_used_lately(asked, begin)))
            return false;
        const bool comes_back = asked == block ? dense : quantum.is_dense(begin);
        if (turn < Turn::insistent && (!comes_back || (turn == Turn::patient && !vain)))
            return false;
        longest_ns = turn == Turn::starved ? turn_of_starved_ns : usual_ns;
        if (std::exchange(paid, true)) return true;
        // Before it is told.
        debts_.want_own();
        pay();
        return true;
    });
    if (!other) return 0;
    for (BoundedWait wait{begin, longest_ns}; debts_.board().has_turn(other->node, other->block);
         wait.pause()) {
        if (wait.is_over()) {
            debts_.board().take_turn_back(other->node, other->block);
            return begin;
        }
        pay();
        endpoint_.poll();
    }
    return begin;
}

bool Node::is_used_lately(BlockId block, std::uint64_t now) noexcept {
    return block < entries_.size() && now - entries_[block].atomics.at_ns <= lately_ns;
}

// Before an atomic on a block that another node has, with nothing held: where both take blocks from
// each other all the time, the one with the token goes on until it has paid for what it brought,
// or pauses.
void Node::await_token(std::uint64_t now) noexcept {
    AtomicQuantum& quantum = guess_.quantum;
    if (!quantum.is_token_to_be_looked_for(now)) return;
    NewsBoard& board = debts_.board();
    auto holder = board.token_holder();
    if (holder == self_ && quantum.has_token()) return quantum.note_seen(now);
    quantum.lose_token();
    // Likewise where it was given and taken back between two looks.
    constexpr std::uint64_t tells_again_ns = 1'000'000;
    std::uint64_t active = 0, since = now, active_at = now, told_at = 0;
    for (BoundedWait wait{now, AtomicQuantum::longest_wait_ns(endpoint_.nodes())}; !wait.is_over();
         wait.pause()) {
        const auto has_it = board.token_holder();
        const bool is_other = has_it && *has_it != self_;
        if (has_it != holder) since = active_at = wait.now();
        if (is_other && (has_it != holder || wait.now() - told_at > tells_again_ns)) {
            board.want_token(*has_it);
            told_at = wait.now();
        }
        holder = has_it;
        if (is_other) {
            const std::uint64_t activity = board.activity_of(*holder);
            if (activity != active || activity % 2 != 0) active_at = wait.now();
            active = activity;
        }
        // The node that has given it lets the others go first.
        const std::uint64_t idle = wait.now() - active_at;
        const bool may = is_other ? idle > AtomicQuantum::idle_max_ns(active_at - since)
                                  : !quantum.has_just_given(wait.now());
        if (may && board.take_token(holder)) break;
        pay();
        endpoint_.poll();
    }
    const std::uint64_t got = now_ns();
    quantum.note_token_wait(got - now);
    quantum.begin(got);
}

// Waits while another node has its turn, if this one was in the middle of a burst too.
// @param since_ns  when the atomic came, if that is a while ago; 0: now
// Returns whether it was.
bool Node::await_turn(BlockId block, std::uint64_t offset, std::uint64_t since_ns) noexcept {
    const BlockEntry& entry = entries_[block];  // hints, read without the latch
    const std::uint64_t last = entry.atomics.at_ns;
    if (last == 0) return false;
    const auto holder = lock_.went_to(block);
    if (!holder) return false;
    const std::uint64_t begin = now_ns();
    if ((since_ns != 0 ? since_ns : begin) - last > dense_ns) return false;
    const bool vain = entry.atomics.vain;
    const std::uint64_t word = word_at(offset);
    ask_turn(*holder, block, Turn::patient);
    Timestamp seen = copies_.wts_of(*holder, block);
    std::uint64_t active = debts_.board().activity_of(*holder);
    std::uint64_t seen_at = begin;
    const std::uint64_t idle = since_ns != 0 ? idle_after_giving_ns : idle_ns;
    for (BoundedWait wait{begin, guess_.pull_times.longest_wait_ns(turn_ns)};
         !wait.is_over() && !debts_.board().is_turn_given(*holder, block);) {
        wait.pause();
        pay();
        endpoint_.poll();
        // The holder has the lock, and waits for the releases before its bytes, which it gets from
        // here.
        if (debts_.board().has_turn(*holder, block)) continue;
        if (vain) {
            if (has_moved_on(*holder, block, offset, word)) return true;
            continue;
        }
        const Timestamp wts = copies_.wts_of(*holder, block);
        const std::uint64_t activity = debts_.board().activity_of(*holder);
        if (wts != seen || activity != active) {
            seen = wts;
            active = activity;
            seen_at = wait.now();
        } else if (wait.now() - seen_at >= idle) {
            return true;
        }
    }
    return true;
}

// Whether an atomic that changed nothing, and found `word`, might find something else now.
bool Node::has_moved_on(NodeId holder, BlockId block, std::uint64_t at,
                        std::uint64_t word) noexcept {
    const std::size_t in_block = space_.offset_in_block(at) & ~std::size_t{7};
    return copies_.word_of(holder, block, in_block) != word || word_at(at) != word ||
           lock_.went_to(block) != holder;
}

// An atomic, or the fault of a load, has come upon bytes whose release it lacks, for so many times
// before this one. A load asks late: it takes nothing away from the writer, and most often nothing
// is written behind it.
void Node::ask_turn_after(unsigned tries, NodeId writer, BlockId block, bool atomic) noexcept {
    if (writer == self_ || (!atomic && tries < tries_of_load)) return;
    ask_turn(writer, block,
             tries >= tries_to_starve          ? Turn::starved
             : atomic && tries < tries_in_turn ? Turn::urgent
                                               : Turn::insistent);
}

// A node that asks another takes back what it has asked of the one before.
void Node::ask_turn(NodeId node, BlockId block, Turn turn) noexcept {
    BlockEntry& entry = entries_[block];
    // Relaxed: threads of this node may leave an old word there, which is a hint.
    const std::uint32_t before =
        entry.atomics.turn_asked.exchange(node.value + 1, std::memory_order_relaxed);
    if (before != 0 && before != node.value + 1) tell_turn(NodeId{before - 1}, {});
    tell_turn(node, {block, 1, turn});
}

// A store in memory that is not mapped is a round trip, which nobody has to wait for here: a turn
// is a hint.
void Node::tell_turn(NodeId node, const TurnMessage& told) noexcept {
    NewsBoard& board = debts_.board();
    if (!board.looks_in_one_exchange(node)) {
        if (told.asks != 0) return board.ask_turn(node, told.block, told.turn);
        return board.end_turn(node);
    }
    on_runtime_stack([&] {
        const Bytes part = std::as_bytes(std::span{&told, 1});
        endpoint_.send(node, message::turn_asked, net::Urgency::when_polled, {&part, 1});
    });
}

void Node::on_turn_asked(void* self, NodeId from, Bytes body) noexcept {
    TurnMessage told;
    HIROBA_INVARIANT(body.size() == sizeof told, "turn_asked of %lu bytes", body.size());
    std::memcpy(&told, body.data(), sizeof told);
    NewsBoard& board = static_cast<Node*>(self)->debts_.board();
    if (told.asks != 0) {
        board.note_turn(from, told.block, told.turn);
    } else {
        board.note_turn_ended(from);
    }
}

// Behind an atomic or the fault of a load, with nothing held.
void Node::end_turn(BlockEntry& entry) noexcept {
    // Relaxed, as above; no read-modify-write where nobody was asked.
    if (entry.atomics.turn_asked.load(std::memory_order_relaxed) == 0) return;
    const std::uint32_t asked = entry.atomics.turn_asked.exchange(0, std::memory_order_relaxed);
    if (asked != 0) tell_turn(NodeId{asked - 1}, {});
}

}  // namespace hiroba::dsm
