// SPDX-License-Identifier: BSD-3-Clause
// Role: nobody reads a byte without having acquired what came before it at its writer
// (docs/protocol.md#before): which releases of each node this one has acquired, and how it gets the
// others'.
// Invariant: nothing is held while a release of another node is waited for, and whoever waits makes
// the releases that others want of this node meanwhile. So no wait for a release is part of a
// cycle.
#include <algorithm>

#include "base/clock.hpp"
#include "base/thread_context.hpp"
#include "base/trace.hpp"
#include "base/turns.hpp"
#include "dsm/engine/node.hpp"
#include "dsm/messages.hpp"

namespace hiroba::dsm {

namespace {
// A thread of the writer that waits in the runtime, or releases, sees what is wanted by itself.
// Only one that computes has to be stood in for, by a thread that must be woken.
constexpr std::uint64_t wake_after_ns = 10'000;
// A writer that has the block of this node's atomics in turn is known to come back soon.
constexpr std::uint64_t wake_after_turn_ns = 50'000;
// A look at a board that is not mapped is a round trip. So looks get rarer: a quarter of the time
// waited so far lies between two, at most so much.
constexpr std::uint64_t look_at_once_ns = 20'000;
constexpr std::uint64_t pause_max_ns = 100'000;
}  // namespace

bool Node::may_show(Stamp stamp) noexcept {
    if (stamp.is_none()) return true;
    // This node itself wrote the bytes, perhaps on top of others that it must acquire yet.
    if (stamp.writer() == self_) {
        return !release_.needed().any() && !news_.needs_open();
    }
    return acquire_.acquired().has(stamp);
}

// A pinned block that the acquire under way brings up to date: all else that is stale is
// inaccessible already. What a release of this node has held back of a block is not there before an
// acquire has shown it, which may be waiting for this latch.
bool Node::may_place(BlockId block, Stamp stamp) noexcept {
    const bool is_own = !stamp.is_none() && stamp.writer() == self_;
    if (is_own && entries_[block].held_back) return false;
    if (may_show(stamp)) return true;
    return entries_[block].stale.pinned && stamp.writer() != self_ &&
           acquire_.acquired().is_inaccessible(stamp);
}

// With nothing held.
void Node::catch_up_with(Stamp stamp, Writer writer) noexcept {
    on_runtime_stack([&] {
        trace("dsm.catch_up", stamp.writer().value, stamp.release());
        // A release of this node that is not over yet may be in the way: it waits for nobody.
        Backoff backoff;
        // An acquire shows what a release has held back, also if another thread has acquired all
        // that the release needed before it ended: then nothing is open, and no other thread comes.
        if (stamp.writer() == self_) acquire_on_runtime_stack();
        while (!may_show(stamp)) {
            if (stamp.writer() != self_) pull(stamp, writer);
            acquire_on_runtime_stack();
            if (news_.program_flushes()) races_.acquire_known();
            if (!may_show(stamp)) backoff.pause();
        }
    });
}

// Learns the news of the release. With nothing held. The board does not repeat what its node has
// told all others; some of that may lie here unread (dsm.hpp, UnreadNews).
void Node::pull(Stamp stamp, Writer kind) noexcept {
    const NodeId writer = stamp.writer();
    if (news_.has_heard_of(stamp)) return;
    count(&PlaceCounters::pulls);
    const std::uint64_t begin_ns = now_ns();
    Backoff backoff;
    std::uint64_t wake_at_ns = 0;  // 0: the writer does not know yet that this is wanted
    bool wakes = false;
    for (;;) {
        const bool asks = wake_at_ns == 0;
        const std::uint32_t answers = debts_.answers();
        if (learn_from_board(stamp, asks ? &wakes : nullptr)) {
            guess_.pull_times.note(now_ns() - begin_ns);
            if (news_.has_heard_of(stamp)) return;
            debts_.learn_unread();
            // On its way yet, or another thread's to take. The caller acquires before it asks
            // again: what was learned twice would fill the list.
            pay();
            endpoint_.poll();
            return yield();
        }
        if (asks) {  // unless it wakes, who told the writer before does
            wake_at_ns = now_ns();
            if (turns_of_this_thread() == nullptr)
                wake_at_ns += kind == Writer::in_turn ? wake_after_turn_ns : wake_after_ns;
        }
        if (wakes && now_ns() >= wake_at_ns) {
            wakes = false;
            endpoint_.send(writer, message::release_asked, net::Urgency::wake_service, {});
        }
        pay();
        endpoint_.poll();
        const std::uint64_t now = now_ns(), waited = now - begin_ns;
        if (turns_of_this_thread() != nullptr || waited < look_at_once_ns) {
            backoff.pause();
        } else {
            endpoint_.wait_until([&] { return has_to_pay() || debts_.answers() != answers; },
                                 now + std::min(waited / 4, pause_max_ns));
        }
    }
}

// False: the board's node has not finished that release yet.
/// @param wants  if given, that release is wanted then: whether nobody had said so before
bool Node::learn_from_board(Stamp stamp, bool* wants) noexcept {
    const auto learn = [&](Bytes news) {
        // As a flush that the program is about to make would tell it, and before its bytes can be
        // shown.
        note_flushes(view(stamp.writer(), news));
        if (news_.program_flushes()) news_.epochs().learn(news);
        learn_notices(told_by_nobody, news);
    };
    return wants != nullptr ? debts_.read_or_want(stamp, *wants, learn) : debts_.read(stamp, learn);
}

// --- the other side ------------------------------------------------------------------------------

bool Node::has_to_pay() noexcept { return debts_.has_to_pay(); }

// A hint: who comes too late for it is asked.
bool Node::owes_release() noexcept {
    return release_.numbers().has_debt(std::memory_order_relaxed);
}

bool Node::pay() noexcept {
    if (!has_to_pay()) return false;
    serve_wanted();
    if (!debts_.is_release_wanted()) {
        if (debts_.board().is_block_wanted()) yield();  // the thread that has its latch goes on
        return true;
    }
    const ReleaseNumber wanted = debts_.board().wanted();
    on_runtime_stack([&] {
        debts_.note_asked();
        // A release that is over is in the news.
        if (release_.numbers().completed() < wanted) {
            release_.call_hook();
            release_on_runtime_stack(Others::running);
        }
        debts_.show();
    });
    answer_askers();
    return true;
}

void Node::answer_askers() noexcept {
    if (copies_.all_mapped()) return;
    debts_.answer(endpoint_.nodes(), [this](NodeId node) {
        endpoint_.send(node, message::answered, net::Urgency::wake_service, {});
    });
}

// Where threads are simulated a look takes no time of the other node.
void Node::await_answer(std::uint32_t seen, std::uint64_t until_ns) noexcept {
    if (turns_of_this_thread() != nullptr) return;
    endpoint_.wait_until(
        [&] { return debts_.answers() != seen || debts_.board().is_block_wanted(); }, until_ns);
}

// The release that this node's atomics owe, if it is not over.
void Node::pay_own() noexcept {
    if (!owes_release()) return;
    debts_.want_own();
    pay();
}

void Node::on_release_asked(void* self, NodeId from, Bytes) noexcept {
    static_cast<Node*>(self)->debts_.note_asker(from);
    static_cast<Node*>(self)->debts_.payer().wake();
}

// A thread of the machine's: where threads are simulated, the simulation calls pay().
void Node::start_payer() {
    if (turns_of_this_thread() != nullptr) return;
    debts_.payer().start([this] {
        pay();
        answer_askers();  // also of what another thread has done
        const RuntimeScope latches;
        return give_up_rest() ||
               (debts_.board().is_block_wanted() && !guess_.quantum.goes_on(now_ns()));
    });
}

}  // namespace hiroba::dsm
