// SPDX-License-Identifier: BSD-3-Clause
// Role: sends and awaits the mails of regions.
// Invariant: release() comes before the first mail of a phase is encoded, acquire() after the
// last one was learned; remote frees go out right after a release and come in right after an
// acquire.
#include "omp/team/team_link.hpp"

#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <type_traits>

#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "dsm/dsm.hpp"
#include "dsm/heap/heap.hpp"
#include "dsm/sync/background_flusher.hpp"
#include "omp/messages.hpp"
#include "omp/team/team_shape.hpp"
#include "omp/team/told_apart.hpp"

namespace hiroba::omp {

namespace {
using net::kick::TreeNode;
constexpr std::uint32_t all_to_all_max = net::kick::tree_arity;
/// Bytes fetched ahead of the struct of its shared variables, which a region reads first.
constexpr std::size_t data_prefetch_bytes = 256;
/// Node 0 waits so long for the others at the end of the job; then the launcher ends them.
constexpr std::uint64_t rest_ns = 500'000'000;
static_assert(std::is_trivially_copyable_v<Fork>);
static_assert(JoinTerms::most * sizeof(JoinTerm) <= sizeof(Fork), "a join's mail is no longer");
}  // namespace

TeamLink::TeamLink(const Parts& parts, std::unique_ptr<net::kick::Mailboxes> mail)
    : parts_(parts), self_(parts.endpoint->self().value), mail_(std::move(mail)) {}

Result<std::unique_ptr<TeamLink>> TeamLink::create(const Parts& parts) {
    constexpr std::size_t most = net::kick::Mailboxes::mail_bytes_max;
    const std::size_t longest = sizeof(Header) + sizeof(Fork) + parts.memory->news_bytes_max();
    if (longest > most)
        return Error{ErrorKind::usage, "a fork's mail of " + std::to_string(longest) +
                                           " bytes is longer than " + std::to_string(most) +
                                           "; set HIROBA_NOTICES to a smaller number"};
    auto mail = net::kick::Mailboxes::create(*parts.endpoint, parts.board, message::team_news);
    if (!mail) return mail.error();
    std::unique_ptr<TeamLink> link(new TeamLink(parts, std::move(*mail)));
    parts.endpoint->on(
        message::quit,
        [](void* context, NodeId from, Bytes body) noexcept {
            static_cast<TeamLink*>(context)->on_quit(from, body);
        },
        link.get());
    parts.endpoint->on(
        message::cancelled,
        [](void* context, NodeId, Bytes body) noexcept {
            static_cast<TeamLink*>(context)->on_cancelled(body);
        },
        link.get());
    parts.endpoint->on(
        message::runs_between_regions,
        [](void* context, NodeId, Bytes) noexcept {
            TeamLink& link = *static_cast<TeamLink*>(context);
            link.others_never_rest_.store(true);
            link.let_others_rest(false);
        },
        link.get());
    return link;
}

void TeamLink::on_quit(NodeId from, Bytes body) noexcept {
    Ending ending{};
    HIROBA_INVARIANT(body.size() == sizeof ending, "%lu bytes of an end from node %u", body.size(),
                     from.value);
    std::memcpy(&ending, body.data(), sizeof ending);
    if (ending == Ending::rests || ending == Ending::leave) {
        if (ending == Ending::rests) resting_.fetch_add(1);
        if (ending == Ending::leave) may_leave_.store(true);
        return parts_.endpoint->wake_local();
    }
    if (ending == Ending::together) {
        pass_quit_on();
        leaves_together_.store(true);
    }
    over_.store(true);
    note_job_over();
    if (in_region_.load()) {
        // exit() in the middle of a region: no thread of it runs on.
        if (parts_.flush_streams != nullptr) parts_.flush_streams();
        if (parts_.leave != nullptr) parts_.leave();
        _exit(0);
    }
    parts_.endpoint->wake_local();
}

// A worker's background flusher goes on behind a region, and may be asking node 0 this moment. The
// launcher ends a worker soon that waits for what never comes; node 0 must say so instead.
void TeamLink::note_job_over() noexcept {
    if (parts_.flusher != nullptr) parts_.flusher->set_active(false);
    parts_.endpoint->note_job_over();
}

void TeamLink::release() noexcept {
    {
        const std::scoped_lock still{still_};
        const bool alone = !has_program_threads();
        parts_.memory->release(alone ? dsm::Others::stopped : dsm::Others::running);
    }
    parts_.heap->flush_remote_frees();
}

void TeamLink::release_in_program(bool alone) noexcept {
    if (!alone) return parts_.memory->release(dsm::Others::running);
    const std::scoped_lock still{still_};
    parts_.memory->release(has_program_threads() ? dsm::Others::running : dsm::Others::stopped);
}

bool TeamLink::begin_standstill() noexcept {
    // Tried only: a release that runs the program's own output functions may have it.
    if (!still_.try_lock()) return false;
    if (!has_program_threads()) return true;
    still_.unlock();
    return false;
}

void TeamLink::acquire() noexcept {
    const bool alone = !has_program_threads();
    parts_.memory->acquire(alone ? dsm::Others::stopped : dsm::Others::running);
    parts_.heap->accept_remote_frees();
}

void TeamLink::bring_expected() noexcept {
    if (!has_program_threads()) parts_.memory->bring_expected();
}

void TeamLink::send(std::uint32_t to, Kind kind, Bytes extra) noexcept {
    const std::uint32_t told =
        (cancellation_->region() ? is_cancelled : 0) |
        (program_tells_threads_apart.load(std::memory_order_relaxed) ? is_told_apart : 0);
    JoinTerms::List terms;
    const std::size_t count = kind == Kind::join ? terms_.take(terms) : 0;
    if (count > 0) extra = std::as_bytes(std::span(terms).first(count));
    const Header header{kind, phase_, region_, told, static_cast<std::uint32_t>(count)};
    const MutableBytes mail = mail_->compose(to);
    std::memcpy(mail.data(), &header, sizeof header);
    if (!extra.empty()) std::memcpy(mail.data() + sizeof header, extra.data(), extra.size());
    const std::size_t before_news = sizeof header + extra.size();
    const std::size_t news_bytes = parts_.memory->news_for(NodeId{to}, mail.subspan(before_news));
    mail_->post(to, before_news + news_bytes);
}

void TeamLink::receive(std::uint32_t from, Kind kind, MutableBytes extra) noexcept {
    if (!next_is(from, kind)) wait_for([this, from, kind] { return next_is(from, kind); });
    const Bytes body = mail_->front(from);
    HIROBA_INVARIANT(body.size() >= sizeof(Header) + extra.size(), "%lu bytes from node %u",
                     static_cast<unsigned long>(body.size()), from);
    Header header{};
    std::memcpy(&header, body.data(), sizeof header);
    if (kind == Kind::fork) region_ = header.region;
    if ((header.told & is_cancelled) != 0) cancellation_->cancel_region(header.region);
    if ((header.told & is_told_apart) != 0)
        program_tells_threads_apart.store(true, std::memory_order_relaxed);
    // Members of a cancelled region have not all passed as many barriers.
    const bool in_phase = header.phase == phase_ || (kind == Kind::join && cancellable_);
    HIROBA_INVARIANT(header.kind == kind && in_phase && header.region == region_,
                     "node %u sent kind %u of phase %u, region %lu; expected %u, %u, %lu", from,
                     static_cast<unsigned>(header.kind), header.phase,
                     static_cast<unsigned long>(header.region), static_cast<unsigned>(kind), phase_,
                     static_cast<unsigned long>(region_));
    if (!extra.empty()) std::memcpy(extra.data(), body.data() + sizeof header, extra.size());
    const std::size_t terms_bytes = header.terms * sizeof(JoinTerm);
    HIROBA_INVARIANT(body.size() >= sizeof header + extra.size() + terms_bytes,
                     "%lu bytes with %u terms from node %u",
                     static_cast<unsigned long>(body.size()), header.terms, from);
    receive_terms(body.subspan(sizeof header, terms_bytes));
    parts_.memory->learn(NodeId{from}, body.subspan(sizeof header + extra.size() + terms_bytes));
    mail_->take(from);
}

// The mails' places stay taken. The news are learned without their sender: those that are to be
// passed on are passed on when the mail is received.
void TeamLink::learn_unread() noexcept {
    // Relaxed: only the thread that stored itself finds itself.
    if (reader_.load(std::memory_order_relaxed) != &this_thread()) return;
    for (std::uint32_t from = 0; from < parts_.endpoint->nodes(); ++from) {
        if (from == self_ || !mail_->has_come(from)) continue;
        const Bytes body = mail_->front(from);
        Header header{};
        HIROBA_INVARIANT(body.size() >= sizeof header, "%lu bytes from node %u",
                         static_cast<unsigned long>(body.size()), from);
        std::memcpy(&header, body.data(), sizeof header);
        const std::size_t extra = header.kind == Kind::fork ? sizeof(Fork) : 0;
        const std::size_t news = sizeof header + extra + header.terms * sizeof(JoinTerm);
        HIROBA_INVARIANT(body.size() >= news, "%lu bytes with %u terms from node %u",
                         static_cast<unsigned long>(body.size()), header.terms, from);
        parts_.memory->learn(NodeId{~0u}, body.subspan(news));
    }
}

// A term that finds no room in terms_ is added to its variable at once, as the thread that made it
// would have done: several nodes below have reductions of more variables than a mail takes along.
void TeamLink::receive_terms(Bytes mail) noexcept {
    for (; !mail.empty(); mail = mail.subspan(sizeof(JoinTerm))) {
        JoinTerm term;
        std::memcpy(&term, mail.data(), sizeof term);
        if (terms_.add(term)) continue;
        void* const variable = reinterpret_cast<void*>(term.address);
        const bool entered = parts_.memory->enter_atomic(variable, term.arithmetic.bytes);
        HIROBA_INVARIANT(entered, "a term for 0x%lx, which is no shared memory", term.address);
        apply(term);
        parts_.memory->leave_atomic(variable, term.arithmetic.bytes);
    }
}

// --- cancelled regions ---------------------------------------------------------------------------

bool TeamLink::next_is(std::uint32_t from, Kind kind) noexcept {
    while (mail_->has_come(from)) {
        if (!cancellable_) return true;
        const Bytes body = mail_->front(from);
        Header header{};
        HIROBA_INVARIANT(body.size() >= sizeof header, "%lu bytes from node %u",
                         static_cast<unsigned long>(body.size()), from);
        std::memcpy(&header, body.data(), sizeof header);
        if (kind == Kind::gather && header.kind == Kind::join && header.region == region_) {
            // The node `from` has left the barrier that this node is at.
            cancellation_->cancel_region(region_);
            return false;
        }
        const bool is_left_over = (kind == Kind::join && header.kind == Kind::gather) ||
                                  (kind == Kind::fork && header.kind == Kind::spread);
        if (!is_left_over) return true;
        parts_.memory->learn(NodeId{from}, body.subspan(sizeof header));
        mail_->take(from);
    }
    return false;
}

void TeamLink::tell_cancelled(const Cancelled& cancelled) noexcept {
    const Bytes body = std::as_bytes(std::span(&cancelled, 1));
    on_runtime_stack([&] {
        for (std::uint32_t node = 0; node < members_; ++node)
            if (node != self_)
                parts_.endpoint->send(NodeId{node}, message::cancelled, net::Urgency::wake_service,
                                      std::span(&body, 1));
    });
}

void TeamLink::on_cancelled(Bytes body) noexcept {
    Cancelled cancelled;
    HIROBA_INVARIANT(body.size() == sizeof cancelled, "a cancellation of %lu bytes",
                     static_cast<unsigned long>(body.size()));
    std::memcpy(&cancelled, body.data(), sizeof cancelled);
    if (cancelled.whole_region)
        cancellation_->cancel_region(cancelled.region);
    else
        cancellation_->cancel_work(cancelled.region, cancelled.phase);
    parts_.endpoint->wake_local();
}

// --- the tree ------------------------------------------------------------------------------------

bool TeamLink::goes_along_tree() const noexcept {
    return cancellable_ || members_ > all_to_all_max;
}

bool TeamLink::children_have_come(Kind kind) noexcept {
    const TreeNode here = place();
    for (std::uint32_t branch = 0; branch < here.children(); ++branch)
        if (!next_is(here.child(branch), kind)) return false;
    return true;
}

/// After a release, when children_have_come(): what this node has acquired is part of its own news.
void TeamLink::receive_from_children(Kind kind) noexcept {
    const TreeNode here = place();
    for (std::uint32_t branch = 0; branch < here.children(); ++branch)
        receive(here.child(branch), kind);
    if (here.children() > 0) acquire();
}

void TeamLink::pass_down(Kind kind, Bytes extra) noexcept {
    const TreeNode here = place();
    for (std::uint32_t branch = 0; branch < here.children(); ++branch)
        send(here.child(branch), kind, extra);
}

/// At a fork or behind a barrier of all nodes every node has the same news, or will have before it
/// does anything else.
void TeamLink::all_nodes_know(std::span<const NodeId> told) noexcept {
    if (members_ == parts_.endpoint->nodes()) parts_.memory->everyone_knows_through(told);
}

/// As above, where news went up to the root, and down from it.
void TeamLink::tree_knows() noexcept {
    const TreeNode here = place();
    std::array<NodeId, net::kick::tree_arity> told;
    if (!here.is_root()) {
        told[0] = NodeId{here.parent()};
        return all_nodes_know(std::span(told).first(1));
    }
    for (std::uint32_t branch = 0; branch < here.children(); ++branch)
        told[branch] = NodeId{here.child(branch)};
    all_nodes_know(std::span(told).first(here.children()));
}

// --- regions -------------------------------------------------------------------------------------

void TeamLink::fork(const Fork& fork, std::uint32_t members) noexcept {
    members_ = members;
    ++region_;
    region_runs(true);
    phase_ = 0;
    cancellation_->begin(region_);
    release();
    pass_down(Kind::fork, std::as_bytes(std::span(&fork, 1)));
    tree_knows();
    bring_expected();
}

bool TeamLink::have_come(std::uint32_t from, std::uint32_t to) noexcept {
    for (std::uint32_t node = from; node < to; ++node)
        if (node != self_ && !mail_->has_come(node)) return false;
    return true;
}

bool TeamLink::children_join_soon() noexcept {
    constexpr std::uint64_t moment_ns = 20'000;
    return parts_.endpoint->wait_until([this] { return children_have_joined(); },
                                       now_ns() + moment_ns);
}

// While this thread would only wait, and for more than a moment, it releases: the next fork finds
// less to do, and others are idle then. A release just before a fork makes two versions of what the
// next region reads first, and a node that has heard of the first alone comes upon the second.
// Other nodes may still be in the region and come upon what was changed here by atomics,
// a reduction say: what is owed for them is told now, and not when asked.
bool TeamLink::join(Distraction distraction) noexcept {
    note_reader(true);
    if (parts_.memory->owes_release() || !children_join_soon()) release();
    if (!await([this] { return children_have_joined(); }, distraction)) return note_reader(false);
    if (tells_at_join()) {
        release();
        tell_far_children();
    }
    receive_from_children(Kind::join);
    region_runs(false);
    members_ = 1;
    bring_expected();
    return true;
}

// A node of another host that hears at the fork what this one wrote in the region before asks for
// it while this one computes, and waits for a service thread; told at the join, it brings that
// while both would only wait.
bool TeamLink::tells_at_join() const noexcept {
    if (cancellable_) return false;
    const TreeNode here = place();
    for (std::uint32_t branch = 0; branch < here.children(); ++branch)
        if (!mail_->is_mapped(here.child(branch))) return true;
    return false;
}

void TeamLink::tell_far_children() noexcept {
    const TreeNode here = place();
    for (std::uint32_t branch = 0; branch < here.children(); ++branch)
        if (!mail_->is_mapped(here.child(branch))) send(here.child(branch), Kind::joined);
}

/// False: the next mail of `parent` is another.
bool TeamLink::hear_what_was_joined(std::uint32_t parent) noexcept {
    Kind kind{};
    std::memcpy(&kind, mail_->front(parent).data(), sizeof kind);
    if (kind != Kind::joined) return false;
    receive(parent, Kind::joined);
    acquire();
    tell_far_children();
    return true;
}

TeamLink::Called TeamLink::await_fork(Fork* fork, Distraction distraction) noexcept {
    note_reader(true);
    const auto leave_for = [this](Called called) {
        note_reader(false);
        return called;
    };
    const std::uint32_t parent = place().parent();
    const auto has_come = [&] { return next_is(parent, Kind::fork); };
    const auto is_called = [&] { return has_come() || over_.load(); };
    const auto are_handlers_waiting = [this] { return parts_.interruptions.are_pending(); };
    while (!is_called() || (has_come() && hear_what_was_joined(parent))) {
        if (are_handlers_waiting()) return leave_for(Called::handlers);
        dsm::Heap& heap = *parts_.heap;
        wait_for([&] {
            return is_called() || heap.has_freed_pages() || are_handlers_waiting() || distraction();
        });
        if (!over_.load()) heap.return_freed_pages();
        if (!is_called() && distraction()) return leave_for(Called::elsewhere);
    }
    if (!has_come()) {
        if (leaves_together_.load()) rest_until_all_do();
        return Called::end;
    }
    in_region_.store(true);
    phase_ = 0;
    receive(parent, Kind::fork, std::as_writable_bytes(std::span(fork, 1)));
    region_runs(true);
    cancellation_->begin(region_);
    acquire();
    members_ = TeamShape{fork->place.team_size, parts_.endpoint->nodes()}.nodes_used();
    pass_down(Kind::fork, std::as_bytes(std::span(fork, 1)));
    tree_knows();
    bring_expected();
    if (fork->data != nullptr && parts_.memory->contains(fork->data))
        parts_.memory->prefetch(fork->data, data_prefetch_bytes);
    return Called::region;
}

void TeamLink::release_what_handlers_wrote() noexcept {
    tell_of_work_between_regions();
    on_runtime_stack([this] { release(); });
}

// Nothing waits for node 0 to know: what it has flushed for nobody until then is released with its
// next flush, so that it comes late, and in order.
void TeamLink::tell_of_work_between_regions() noexcept {
    if (self_ == 0 || others_never_rest_.exchange(true)) return;
    const RuntimeScope here;
    on_runtime_stack([this] {
        parts_.endpoint->send(NodeId{0}, message::runs_between_regions, net::Urgency::wake_service,
                              {});
    });
}

// Seq_cst: of this and the message that others never rest, the later one finds the other.
void TeamLink::let_others_rest(bool rest) noexcept {
    if (self_ != 0) return;
    parts_.memory->others_rest(rest && !others_never_rest_.load());
    if (others_never_rest_.load()) parts_.memory->others_rest(false);
}

void TeamLink::region_runs(bool runs) noexcept {
    let_others_rest(!runs);
    if (parts_.flusher == nullptr) return;
    if (!publishes_elsewhere_) return parts_.flusher->set_active(runs);
    began_.store(runs ? region_ : 0, std::memory_order_release);  // both pair with begun()
    began_at_ns_.store(now_ns(), std::memory_order_release);
}

// The background flusher goes on: other nodes may still be in the region and spin on what was
// written here.
void TeamLink::arrive_at_join() noexcept {
    release();
    in_region_.store(false);
    receive_from_children(Kind::join);
    send(place().parent(), Kind::join);
}

// --- barriers ------------------------------------------------------------------------------------

void TeamLink::NewsMarks::tell(Way way, const TreeNode& here, std::uint64_t) noexcept {
    if (way == Way::up) return link->send(here.parent(), Kind::gather);
    if (way == Way::down) return link->pass_down(Kind::spread);
    // Starting behind oneself spreads the load.
    for (std::uint32_t i = 1; i < here.members; ++i)
        link->send((here.index + i) % here.members, Kind::barrier);
}

bool TeamLink::NewsMarks::have_come(Way way, const TreeNode& here, std::uint64_t) noexcept {
    if (way == Way::up) return link->children_have_come(Kind::gather);
    if (way == Way::down) return link->mail_->has_come(here.parent());
    return link->have_come(0, here.members);
}

void TeamLink::NewsMarks::take(Way way, const TreeNode& here, std::uint64_t) noexcept {
    if (way == Way::up) return link->receive_from_children(Kind::gather);
    if (way == Way::down) {
        link->receive(here.parent(), Kind::spread);
    } else {
        for (std::uint32_t node = 0; node < here.members; ++node)
            if (node != here.index) link->receive(node, Kind::barrier);
    }
    link->acquire();
}

void TeamLink::begin_barrier() noexcept {
    using net::kick::Shape;
    release();
    const Shape shape = goes_along_tree() ? Shape::tree : Shape::all_to_all;
    barrier_ = {NewsMarks{this}, place(), shape, phase_};
    barrier_.arrive();
}

bool TeamLink::finish_barrier(Distraction distraction) noexcept {
    note_reader(true);
    while (!barrier_.is_passed()) {
        if (!await([this] { return barrier_.may_go_on(); }, distraction)) return note_reader(false);
        barrier_.go_on();
    }
    if (!goes_along_tree()) {
        all_nodes_know({});
    } else if (!cancellable_) {
        // A thread that leaves a cancelled region's barrier does not know it before the next fork.
        tree_knows();
    }
    ++phase_;
    bring_expected();
    return true;
}

void TeamLink::send_quit(bool along_tree) noexcept {
    if (!along_tree) return tell_others(Ending::at_once);
    pass_quit_on();
    const std::uint32_t others = parts_.endpoint->nodes() - 1;
    parts_.endpoint->wait_until([&] { return resting_.load() == others; }, now_ns() + rest_ns);
    tell_others(Ending::leave);
}

// This node may have been asking others for something, and they it, when the end came: whoever left
// at once would leave the rest waiting.
void TeamLink::rest_until_all_do() noexcept {
    tell(0, Ending::rests);
    parts_.endpoint->wait_until([this] { return may_leave_.load(); }, now_ns() + 2 * rest_ns);
}

void TeamLink::pass_quit_on() noexcept {
    const TreeNode here{self_, parts_.endpoint->nodes()};
    for (std::uint32_t branch = 0; branch < here.children(); ++branch)
        tell(here.child(branch), Ending::together);
}

void TeamLink::tell_others(Ending ending) noexcept {
    for (std::uint32_t node = 0; node < parts_.endpoint->nodes(); ++node)
        if (node != self_) tell(node, ending);
}

void TeamLink::tell(std::uint32_t node, Ending ending) noexcept {
    const Bytes body = std::as_bytes(std::span(&ending, 1));
    parts_.endpoint->send(NodeId{node}, message::quit, net::Urgency::wake_service,
                          std::span(&body, 1));
}

}  // namespace hiroba::omp
