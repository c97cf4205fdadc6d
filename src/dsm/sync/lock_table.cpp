// SPDX-License-Identifier: BSD-3-Clause
// Role: the lock table (see the header).
//
// Between nodes a lock is passed along a queue of nodes (MCS: each is told which node is behind
// it). The first node of the queue has the lock and keeps it, held by a thread or open, until a
// node is behind it. So locking and unlocking again on one node is one swap each, and owes the
// release. A node that comes behind says so in the first one's cell, where its unlocks see it; they
// hand over after some more holds (LockKeeping). Should no unlock come for a while (HandOverCost),
// the node that waits *presses*: it asks for urgency, and if the lock lies open, sends a message,
// upon which the DebtPayer there hands over. It presses again and again, since a lock that has to
// pay off first (LockKeeping) stays while threads there use it.
//
// A lock is handed over by releasing, putting the news beside the successor's cell, and a store
// there. Or, where it lies *published*, the successor takes it: the news lie beside the cell of the
// node that had it.
//
// Invariant: in `away`, `joining` and `fetching` this node does not have the lock, and only threads
// of this node change the state. The thread that has set `held`, `joining` or `leaving`
// alone may use the cell's other words and its news, until it changes the state again. Other nodes
// may make `leaving` of `published`, and a promise of `open`, and undo that. `next` is stored by
// the node behind, once, and cleared before the lock leaves.
#include "dsm/sync/lock_table.hpp"

#include <array>
#include <cstring>
#include <mutex>

#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"
#include "base/thread_context.hpp"
#include "dsm/messages.hpp"
#include "dsm/sync/lock_cells.hpp"
#include "dsm/sync/sync_table.hpp"
#include "dsm/thread_part.hpp"

namespace hiroba::dsm {

namespace {

using enum LockState;
using gas::Segment;

/// Looks at a lock held on this node before the thread waits as for another node.
constexpr int spins_max = 64;

struct LockMessage {
    /// `what`: a cell's index; a key; whether it was held.
    enum class Kind : std::uint64_t { wanted, unset, unset_answer } kind;
    std::uint64_t what;
};

[[noreturn]] void die_unlocking_free(LockKey key) noexcept {
    die(exit_environment, "unlock of the lock at 0x%lx, which nobody holds", key);
}

constexpr std::uint64_t raw(LockState state) { return static_cast<std::uint64_t>(state); }

class Table final : public LockTable {
public:
    Table(net::Endpoint& endpoint, SharedMemory& memory, DebtPayer& payer, Segment segment)
        : endpoint_(endpoint),
          memory_(memory),
          payer_(payer),
          cells_(endpoint, memory, std::move(segment)) {
        endpoint.on(message::lock_request, &on_message, this);
    }
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;
    ~Table() override { payer_.stop(); }

    void attach() override { cells_.attach(); }
    void interrupt_waits_for(Interruptions interruptions) noexcept override {
        interruptions_ = interruptions;
    }
    void release_by(Releaser releaser) noexcept override { releaser_ = releaser; }
    void overflow_to(SyncTable& objects) noexcept override { objects_ = &objects; }
    void lock(LockKey key) noexcept override;
    bool try_lock(LockKey key) noexcept override;
    void unlock(LockKey key) noexcept override {
        if (!unlock_if_held(key, Then::goes_on)) die_unlocking_free(key);
    }
    bool unlock_if_held(LockKey key, Then then) noexcept override;
    bool is_held(LockKey key) noexcept override;
    void forget(LockKey) noexcept override {}

private:
    using Access = Segment::Access;
    using Cells = LockCells;

    // Seq_cst, all of it: a thread that stores a state then looks for waiters; a waiter says first
    // that it waits, and then looks at the state. On this node and between nodes.
    LockState state(std::uint32_t cell) noexcept {
        return static_cast<LockState>(cells_.shared(cell).state.load());
    }
    bool change(std::uint32_t cell, LockState from, LockState to) noexcept {
        std::uint64_t expected = raw(from);
        return cells_.shared(cell).state.compare_exchange_strong(expected, raw(to));
    }
    void leave_state(std::uint32_t cell, LockState to) noexcept {
        cells_.shared(cell).state.store(raw(to));
        if (cells_.own(cell).waiters.load() != 0) endpoint_.wake_local();
    }
    bool take_here(std::uint32_t cell) noexcept;
    void has_taken(std::uint32_t cell) noexcept;
    void has_come(std::uint32_t cell) noexcept;
    bool may_go_on(std::uint32_t cell) noexcept;

    SyncTable& objects_for(LockKey key) noexcept;

    // Towards this node.
    void lock_slowly(std::uint32_t cell) noexcept;
    bool try_to_get(std::uint32_t cell) noexcept;
    void await_change(std::uint32_t cell) noexcept;
    bool queue_up(std::uint32_t cell) noexcept;
    bool take_published(std::uint32_t cell, LockCell holder, bool behind) noexcept;
    void take_granted(std::uint32_t cell) noexcept;
    void learn(std::uint32_t cell, std::uint64_t bytes) noexcept;
    void press(std::uint32_t cell) noexcept;
    bool try_elsewhere(std::uint32_t cell) noexcept;
    bool take_end_of_queue(std::uint32_t cell, LockCell holder) noexcept;
    bool try_published(std::uint32_t cell, LockCell holder) noexcept;
    LockState try_open(std::uint32_t cell, LockCell holder) noexcept;

    // Away from it.
    enum class By : std::uint8_t { holder, payer };
    void unlock_here(std::uint32_t cell, By who, Then then = Then::goes_on) noexcept;
    void publish(std::uint32_t cell, By who) noexcept;
    void hand_over(std::uint32_t cell) noexcept;
    bool unlock_elsewhere(LockKey key) noexcept;

    void send(NodeId to, LockMessage::Kind kind, std::uint64_t what) noexcept;
    static void on_message(void* table, NodeId from, Bytes body) noexcept;
    static void pay(void* table, std::uint64_t cell, NodeId) noexcept;
    bool pay_from(std::uint32_t cell, LockState from) noexcept;
    static void unset_for(void* table, std::uint64_t key, NodeId who) noexcept;

    net::Endpoint& endpoint_;
    SharedMemory& memory_;
    DebtPayer& payer_;
    LockCells cells_;
    HandOverCost cost_;
    Interruptions interruptions_;
    Releaser releaser_;
    SyncTable* objects_ = nullptr;
    Latch unset_latch_;  ///< held by the thread in unlock_elsewhere()
    enum class UnsetAnswer : std::uint8_t { none, not_held, done };
    std::atomic<UnsetAnswer> unset_answer_{UnsetAnswer::none};
};

// --- towards this node ---------------------------------------------------------------------------

bool Table::take_here(std::uint32_t cell) noexcept {
    const LockState now = state(cell);
    if ((now != open && now != published) || !change(cell, now, held)) return false;
    has_taken(cell);
    return true;
}

/// In state `held`, which this thread has made.
void Table::has_taken(std::uint32_t cell) noexcept {
    cells_.own(cell).keeping.locked(thread_part(this_thread()).missed_ns);
}

/// The objects among which a lock lies that has no cell.
SyncTable& Table::objects_for(LockKey key) noexcept {
    if (objects_ == nullptr) die(exit_environment, "too many locks: no place for 0x%lx", key);
    return *objects_;
}

/// The runtime's own locks are numbers, of which 0 is no object's address.
constexpr SyncKey object_of(LockKey key) noexcept { return key == 0 ? ~SyncKey{0} : key; }

void Table::lock(LockKey key) noexcept {
    std::uint32_t cell;
    if (!cells_.bind(key, &cell)) {
        objects_for(key).lock_mutex(object_of(key), MutexType::lock, {});
        return;
    }
    if (!take_here(cell)) lock_slowly(cell);
}

void Table::lock_slowly(std::uint32_t cell) noexcept {
    Backoff backoff;
    for (int i = 0; i < spins_max && state(cell) == held; ++i) backoff.pause();
    bool through = false;
    while (!through) {
        // No other thread looks at what lies on the program's stack here.
        on_runtime_stack([&] {
            while (!(through = try_to_get(cell)) && !interruptions_.are_pending()) {
                await_change(cell);
            }
        });
        if (!through) interruptions_.serve();
    }
}

/// Whether a thread that does not hold the lock has something to do.
bool Table::may_go_on(std::uint32_t cell) noexcept {
    switch (state(cell)) {
        case away:
        case open:
        case published: return true;
        case fetching: return cells_.shared(cell).granted.load() != 0;
        default: return false;
    }
}

bool Table::try_to_get(std::uint32_t cell) noexcept {
    if (take_here(cell)) return true;
    if (change(cell, away, joining)) return queue_up(cell);
    std::atomic<std::uint64_t>& granted = cells_.shared(cell).granted;
    if (granted.load() == 0 || !change(cell, fetching, held)) return false;
    // Another thread may have had it, and the node be in the queue again.
    if (granted.load() == 0) {
        leave_state(cell, fetching);
        return false;
    }
    take_granted(cell);
    return true;
}

void Table::await_change(std::uint32_t cell) noexcept {
    Cells::Own& own = cells_.own(cell);
    own.waiters.fetch_add(1);
    const auto over = [&] { return may_go_on(cell) || interruptions_.are_pending(); };
    // One thread of this node has queued up, and that one finds this state. It presses again and
    // again: a lock in use may be left where it is.
    if (state(cell) == fetching && !own.presses.exchange(true)) {
        while (!endpoint_.wait_until(over, now_ns() + cost_.patience_ns())) press(cell);
        own.presses.store(false);
    } else {
        endpoint_.wait_until(over);
    }
    own.waiters.fetch_sub(1);
}

/// In state `joining`. True: the lock is here, and held; else the state is `fetching`.
bool Table::queue_up(std::uint32_t cell) noexcept {
    Cells::Own& own = cells_.own(cell);
    own.keeping.wanted_again(now_ns(), cost_.soon_ns());
    const LockCell before{cells_.segment().swap(cells_.tail_of(cell), cells_.here(cell).raw)};
    if (!before) {
        leave_state(cell, held);
        has_come(cell);
        return true;
    }
    if (take_published(cell, before, true)) {
        has_come(cell);
        return true;
    }
    own.before.store(before.raw);
    leave_state(cell, fetching);
    return false;
}

/// In state `joining`. If the lock lies published at `holder`, takes it.
/// @param behind  this node is behind it in the queue, and says so in any case
bool Table::take_published(std::uint32_t cell, LockCell holder, bool behind) noexcept {
    const auto place = [&](Cells::Word word) { return cells_.at(holder, word).offset; };
    Segment& segment = cells_.segment();
    std::uint64_t bytes = 0;
    std::array<Access, 3> look{
        Access::store(segment, place(Cells::next_word), cells_.here(cell).raw),
        Access::compare_swap(segment, place(Cells::state_word), raw(published), raw(leaving)),
        Access::get(segment, place(Cells::news_bytes_word),
                    std::as_writable_bytes(std::span(&bytes, 1)))};
    Segment::in_order(holder.node(), std::span(look).subspan(behind ? 0 : 1));
    if (look[1].found != raw(published)) return false;
    if (!behind && !take_end_of_queue(cell, holder)) {
        segment.store(cells_.at(holder, Cells::state_word), raw(published));
        send(holder.node(), LockMessage::Kind::wanted, holder.index());
        return false;
    }
    segment.get(cells_.news_of(holder), cells_.news(cell).first(bytes));
    std::array<Access, 3> leave{Access::store(segment, place(Cells::next_word), 0),
                                Access::store(segment, place(Cells::urgent_word), 0),
                                Access::store(segment, place(Cells::state_word), raw(away))};
    Segment::in_order(holder.node(), leave);
    endpoint_.wake(holder.node());
    leave_state(cell, held);
    learn(cell, bytes);
    return true;
}

/// In state `held`, which this thread has made of `fetching` or `joining`.
void Table::take_granted(std::uint32_t cell) noexcept {
    const std::uint64_t bytes = cells_.shared(cell).granted.load() - 1;
    cells_.shared(cell).granted.store(0);
    learn(cell, bytes);
    has_come(cell);
}

void Table::learn(std::uint32_t cell, std::uint64_t bytes) noexcept {
    const std::uint64_t begun_ns = now_ns();
    memory_.learn(NodeId{~0u}, cells_.news(cell).first(bytes));
    memory_.acquire(Others::running);
    cost_.note_acquire(now_ns() - begun_ns);
}

/// The first hold of a stay begins.
void Table::has_come(std::uint32_t cell) noexcept {
    cells_.own(cell).keeping.came(now_ns());
    has_taken(cell);
}

/// The node in front sees `urgent` at its next unlock. If the lock lies open there, perhaps no
/// thread comes to unlock it: a message asks for it.
void Table::press(std::uint32_t cell) noexcept {
    const LockCell before{cells_.own(cell).before.load()};
    Segment& segment = cells_.segment();
    segment.store(cells_.at(before, Cells::urgent_word), 1);
    const std::uint64_t there = segment.load(cells_.at(before, Cells::state_word));
    if (there == raw(open) || there == raw(published))
        send(before.node(), LockMessage::Kind::wanted, before.index());
}

// A lock that is on its way, or that another thread here asks for, is soon somewhere: to have been
// given up or handed on is not to be held, and whoever does that may be held up in the middle.
bool Table::try_lock(LockKey key) noexcept {
    std::uint32_t cell;
    if (!cells_.bind(key, &cell))
        return objects_for(key).lock_mutex(object_of(key), MutexType::lock, {false}) ==
               SyncOutcome::done;
    if (take_here(cell)) return true;
    bool locked = false;
    on_runtime_stack([&] {
        for (Backoff backoff; !(locked = take_here(cell)); backoff.pause()) {
            const LockState now = state(cell);
            if (now == held || now == fetching) return;
            if (!change(cell, away, joining)) continue;
            locked = try_elsewhere(cell);
            if (!locked) leave_state(cell, away);
            return;
        }
    });
    return locked;
}

// A thread that queues behind the lock's holder cannot leave the queue. So a try first
// secures the lock where it lies open, and then the queue behind it, which must be empty.
bool Table::try_elsewhere(std::uint32_t cell) noexcept {
    for (Backoff backoff;; backoff.pause()) {
        const LockCell holder{cells_.segment().load(cells_.tail_of(cell))};
        if (!holder) {
            if (!take_end_of_queue(cell, holder)) return false;
            leave_state(cell, held);
            has_come(cell);
            return true;
        }
        if (try_published(cell, holder)) return true;
        const LockState there = try_open(cell, holder);
        if (there == open) return true;
        // Its payer may have looked for a node behind it, and leave the state as it was.
        if (there != leaving && there != published) return false;
    }
}

bool Table::take_end_of_queue(std::uint32_t cell, LockCell holder) noexcept {
    return cells_.segment().compare_swap(cells_.tail_of(cell), holder.raw, cells_.here(cell).raw) ==
           holder.raw;
}

bool Table::try_published(std::uint32_t cell, LockCell holder) noexcept {
    if (!take_published(cell, holder, false)) return false;
    cells_.own(cell).keeping.wanted_again(now_ns(), cost_.soon_ns());
    has_come(cell);
    return true;
}

/// What the lock was at `holder`; `open`: it is here now, and held. `held`: somebody wants it.
LockState Table::try_open(std::uint32_t cell, LockCell holder) noexcept {
    Segment& segment = cells_.segment();
    const gas::GlobalAddress at = cells_.at(holder, Cells::state_word);
    const std::uint64_t mine = raw(promised_to(endpoint_.self()));
    const std::uint64_t before = segment.compare_swap(at, raw(open), mine);
    if (before != raw(open)) return static_cast<LockState>(before);
    if (!take_end_of_queue(cell, holder)) {
        // A node that has come behind the holder may have pressed in vain; or the lock was handed
        // over, after all.
        Backoff backoff;
        std::uint64_t there;
        while ((there = segment.compare_swap(at, mine, raw(open))) == raw(leaving)) backoff.pause();
        if (there == mine) send(holder.node(), LockMessage::Kind::wanted, holder.index());
        return held;
    }
    cells_.own(cell).keeping.wanted_again(now_ns(), cost_.soon_ns());
    segment.store(cells_.at(holder, Cells::next_word), cells_.here(cell).raw);
    send(holder.node(), LockMessage::Kind::wanted, holder.index());
    endpoint_.wait_until([&] { return cells_.shared(cell).granted.load() != 0; });
    leave_state(cell, held);
    take_granted(cell);
    return open;
}

// --- away from this node -------------------------------------------------------------------------

bool Table::unlock_if_held(LockKey key, Then then) noexcept {
    std::uint32_t cell;
    if (!cells_.bind(key, &cell))
        return objects_for(key).unlock_mutex(object_of(key), MutexType::lock) == SyncOutcome::done;
    if (state(cell) != held) return unlock_elsewhere(key);
    unlock_here(cell, By::holder, then);
    return true;
}

// A lock on its way is not held for a moment, and is in use.
bool Table::is_held(LockKey key) noexcept {
    std::uint32_t cell;
    if (!cells_.bind(key, &cell)) return objects_for(key).is_mutex_held(object_of(key));
    const LockState here = state(cell);
    if (here != away) return here != open && here != published;
    bool held_there = false;
    on_runtime_stack([&] {
        const LockCell holder{cells_.segment().load(cells_.tail_of(cell))};
        if (!holder) return;
        const std::uint64_t there = cells_.segment().load(cells_.at(holder, Cells::state_word));
        held_there = there != raw(open) && there != raw(published);
    });
    return held_there;
}

void Table::unlock_here(std::uint32_t cell, By who, Then then) noexcept {
    Cells::Shared& shared = cells_.shared(cell);
    LockKeeping& keeping = cells_.own(cell).keeping;
    keeping.unlocked();
    if (who == By::holder) keeping.missed(thread_part(this_thread()).missed_ns);
    const bool wanted = shared.next.load() != 0;
    const bool sleeps = then == Then::sleeps;
    const bool stays = wanted && !sleeps && keeping.has_to_pay_off(now_ns(), cost_.both_ns());
    const bool may_stay =
        !wanted || stays || (!sleeps && shared.urgent.load() == 0 && keeping.keeps());
    if (!may_stay || (!wanted && keeping.publishes(sleeps))) {
        return on_runtime_stack([&] {
            publish(cell, who);
            if (wanted) {
                leave_state(cell, leaving);
                return hand_over(cell);
            }
            leave_state(cell, published);
            if (shared.next.load() != 0 && change(cell, published, leaving)) hand_over(cell);
        });
    }
    leave_state(cell, open);
    // A thread that became urgent in between has seen the lock held.
    if (!stays && shared.urgent.load() != 0 && shared.next.load() != 0 &&
        change(cell, open, leaving)) {
        on_runtime_stack([&] {
            publish(cell, who);
            hand_over(cell);
        });
    }
}

/// In state `held` or `leaving`.
/// @param who  `holder`: a thread of the program, at its unlock
void Table::publish(std::uint32_t cell, By who) noexcept {
    const std::uint64_t begun_ns = now_ns();
    if (who == By::holder && releaser_.release != nullptr) {
        releaser_.release(releaser_.context);
    } else {
        memory_.release(Others::running);
    }
    cells_.shared(cell).news_bytes.store(memory_.news_for_anyone(cells_.news(cell)));
    cost_.note_release(now_ns() - begun_ns);
}

/// In state `leaving`, published, with a node behind.
void Table::hand_over(std::uint32_t cell) noexcept {
    Cells::Shared& shared = cells_.shared(cell);
    const LockCell successor{shared.next.load()};
    const std::uint64_t bytes = shared.news_bytes.load();
    // The next stay may begin as soon as the successor has it.
    shared.next.store(0);
    shared.urgent.store(0);
    cells_.own(cell).keeping.left(now_ns());
    Segment& segment = cells_.segment();
    std::array<Access, 2> grant{
        Access::put(segment, cells_.news_of(successor).offset, cells_.news(cell).first(bytes)),
        Access::store(segment, cells_.at(successor, Cells::granted_word).offset, bytes + 1)};
    Segment::in_order(successor.node(), grant);
    endpoint_.wake(successor.node());
    leave_state(cell, away);
}

/// On the payer's thread: another node wants the lock, and no unlock may come.
void Table::pay(void* table, std::uint64_t what, NodeId) noexcept {
    auto& self = *static_cast<Table*>(table);
    const auto cell = static_cast<std::uint32_t>(what);
    self.cells_.own(cell).debt.store(false);
    Cells::Shared& shared = self.cells_.shared(cell);
    if (shared.next.load() == 0) return;
    shared.urgent.store(1);
    const LockState now = self.state(cell);
    if (now == open || now == published || is_promised(now)) self.pay_from(cell, now);
}

bool Table::pay_from(std::uint32_t cell, LockState from) noexcept {
    if (!change(cell, from, leaving)) return false;  // held: its unlock sees `urgent`
    // The lock may have left and come back since.
    if (cells_.shared(cell).next.load() == 0) {
        leave_state(cell, from);
        return false;
    }
    LockKeeping& keeping = cells_.own(cell).keeping;
    if (from == open) {
        // The node that waits asks again.
        if (keeping.has_to_pay_off(now_ns(), cost_.both_ns()) && keeping.was_used()) {
            leave_state(cell, open);
            return false;
        }
        keeping.was_kept_in_vain();
    }
    if (from != published) publish(cell, By::payer);
    hand_over(cell);
    return true;
}

// This node does not know which node holds the lock; it stays there until it is unset. One node is
// asked after the other: the next holder, which gets it then, must not be asked too. A program that
// does this does it seldom.
bool Table::unlock_elsewhere(LockKey key) noexcept {
    const RuntimeScope here;
    const std::scoped_lock guard{unset_latch_};
    bool found = false;
    on_runtime_stack([&] {
        // Shows others what was written here under the lock.
        memory_.flush();
        for (std::uint32_t node = 0; node < endpoint_.nodes() && !found; ++node) {
            if (NodeId{node} == endpoint_.self()) continue;
            unset_answer_.store(UnsetAnswer::none);
            send(NodeId{node}, LockMessage::Kind::unset, key);
            endpoint_.wait_until([&] { return unset_answer_.load() != UnsetAnswer::none; });
            found = unset_answer_.load() == UnsetAnswer::done;
        }
    });
    return found;
}

void Table::unset_for(void* table, std::uint64_t key, NodeId who) noexcept {
    auto& self = *static_cast<Table*>(table);
    self.memory_.flush();
    std::uint32_t cell = 0;
    const bool found = self.cells_.find(key, &cell) && self.state(cell) == held;
    if (found) self.unlock_here(cell, By::payer);
    self.send(who, LockMessage::Kind::unset_answer, found ? 1 : 0);
}

// --- messages ------------------------------------------------------------------------------------

void Table::send(NodeId to, LockMessage::Kind kind, std::uint64_t what) noexcept {
    const LockMessage message{kind, what};
    const Bytes body = std::as_bytes(std::span(&message, 1));
    endpoint_.send(to, message::lock_request, net::Urgency::wake_service, {&body, 1});
}

void Table::on_message(void* table, NodeId from, Bytes body) noexcept {
    auto& self = *static_cast<Table*>(table);
    LockMessage message{};
    HIROBA_INVARIANT(body.size() == sizeof message, "a lock's message of %lu bytes", body.size());
    std::memcpy(&message, body.data(), sizeof message);
    switch (message.kind) {
        case LockMessage::Kind::wanted: {
            const auto cell = static_cast<std::uint32_t>(message.what);
            // One debt of a cell at a time: the ring holds them all.
            if (!self.cells_.own(cell).debt.exchange(true))
                self.payer_.add({&pay, table, message.what, from});
            return;
        }
        case LockMessage::Kind::unset: {
            std::uint32_t cell = 0;
            if (self.cells_.find(message.what, &cell) && self.state(cell) == held)
                return self.payer_.add({&unset_for, table, message.what, from});
            return self.send(from, LockMessage::Kind::unset_answer, 0);
        }
        case LockMessage::Kind::unset_answer:
            self.unset_answer_.store(message.what != 0 ? UnsetAnswer::done : UnsetAnswer::not_held);
            return;
    }
    fatal("node %u sent a lock's message of kind %lu", from.value,
          static_cast<unsigned long>(message.kind));
}

}  // namespace

Result<std::unique_ptr<LockTable>> LockTable::create(net::Endpoint& endpoint, SharedMemory& memory,
                                                     DebtPayer& payer) {
    auto segment = Segment::allocate(endpoint, LockCells::segment_bytes(memory, endpoint.nodes()));
    if (!segment) return segment.error();
    return std::unique_ptr<LockTable>{new Table{endpoint, memory, payer, std::move(*segment)}};
}

}  // namespace hiroba::dsm
