// SPDX-License-Identifier: BSD-3-Clause
// Role: sends and awaits the mails of regions.
// Invariant: release() comes before the first mail of a phase is encoded, acquire() after the
// last one was learned; remote frees go out right after a release and come in right after an
// acquire.
#include "omp/team/team_link.hpp"

#include <unistd.h>

#include <cstring>
#include <string>
#include <type_traits>

#include "base/fatal.hpp"
#include "dsm/dsm.hpp"
#include "dsm/heap/heap.hpp"
#include "dsm/sync/publisher.hpp"
#include "omp/team/team_shape.hpp"

namespace hiroba::omp {

namespace {
constexpr std::uint32_t all_to_all_max = 8;
/// What a region reads first: the struct of its shared variables.
constexpr std::size_t data_prefetch_bytes = 256;
static_assert(std::is_trivially_copyable_v<Fork>);
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
    auto mail =
        net::kick::Mailboxes::create(*parts.endpoint, parts.board, net::MessageKind::team_news);
    if (!mail) return mail.error();
    std::unique_ptr<TeamLink> link(new TeamLink(parts, std::move(*mail)));
    parts.endpoint->on(
        net::MessageKind::quit,
        [](void* context, NodeId, Bytes) noexcept { static_cast<TeamLink*>(context)->on_quit(); },
        link.get());
    return link;
}

void TeamLink::on_quit() noexcept {
    over_.store(true);
    if (in_region_.load()) {
        // exit() in the middle of a region: no thread of it runs on.
        if (parts_.flush_streams != nullptr) parts_.flush_streams();
        if (parts_.leave != nullptr) parts_.leave();
        _exit(0);
    }
    parts_.endpoint->wake_local();
}

void TeamLink::release() noexcept {
    {
        const std::scoped_lock still{still_};
        const bool alone = program_threads_.load() == 0;
        parts_.memory->release(alone ? dsm::Others::stopped : dsm::Others::running);
    }
    parts_.heap->flush_remote_frees();
}

void TeamLink::acquire() noexcept {
    const bool alone = program_threads_.load() == 0;
    parts_.memory->acquire(alone ? dsm::Others::stopped : dsm::Others::running);
    parts_.heap->accept_remote_frees();
}

void TeamLink::send(std::uint32_t to, Kind kind, Bytes extra) noexcept {
    const Header header{kind, phase_, region_};
    const MutableBytes mail = mail_->compose(to);
    std::memcpy(mail.data(), &header, sizeof header);
    if (!extra.empty()) std::memcpy(mail.data() + sizeof header, extra.data(), extra.size());
    const std::size_t before_news = sizeof header + extra.size();
    const std::size_t news_bytes = parts_.memory->news_for(NodeId{to}, mail.subspan(before_news));
    mail_->post(to, before_news + news_bytes);
}

void TeamLink::receive(std::uint32_t from, Kind kind, MutableBytes extra) noexcept {
    if (!mail_->has_come(from)) mail_->wait_for([this, from] { return mail_->has_come(from); });
    const Bytes body = mail_->front(from);
    HIROBA_INVARIANT(body.size() >= sizeof(Header) + extra.size(), "%lu bytes from node %u",
                     static_cast<unsigned long>(body.size()), from);
    Header header{};
    std::memcpy(&header, body.data(), sizeof header);
    if (kind == Kind::fork) region_ = header.region;
    HIROBA_INVARIANT(header.kind == kind && header.phase == phase_ && header.region == region_,
                     "node %u sent kind %u of phase %u, region %lu; expected %u, %u, %lu", from,
                     static_cast<unsigned>(header.kind), header.phase,
                     static_cast<unsigned long>(header.region), static_cast<unsigned>(kind), phase_,
                     static_cast<unsigned long>(region_));
    if (!extra.empty()) std::memcpy(extra.data(), body.data() + sizeof header, extra.size());
    parts_.memory->learn(NodeId{from}, body.subspan(sizeof header + extra.size()));
    mail_->take(from);
}

void TeamLink::fork(const Fork& fork, std::uint32_t members) noexcept {
    members_ = members;
    region_runs(true);
    ++region_;
    phase_ = 0;
    release();
    for (std::uint32_t node = 1; node < members_; ++node)
        send(node, Kind::fork, std::as_bytes(std::span(&fork, 1)));
    all_nodes_know();
}

// A fork and a barrier of all nodes leave everybody with the same news.
void TeamLink::all_nodes_know() noexcept {
    if (members_ == parts_.endpoint->nodes()) parts_.memory->everyone_knows();
}

bool TeamLink::have_come(std::uint32_t from, std::uint32_t to) noexcept {
    for (std::uint32_t node = from; node < to; ++node)
        if (node != self_ && !mail_->has_come(node)) return false;
    return true;
}

void TeamLink::let_handlers_run() noexcept {
    ThreadContext& context = this_thread();
    context.in_runtime = false;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    parts_.interruptions.serve();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    context.in_runtime = true;
}

bool TeamLink::join() noexcept {
    if (!await([this] { return have_come(1, members_); })) return false;
    for (std::uint32_t node = 1; node < members_; ++node) receive(node, Kind::join);
    region_runs(false);
    acquire();
    members_ = 1;
    return true;
}

TeamLink::Called TeamLink::await_fork(Fork* fork) noexcept {
    const auto is_called = [this] { return mail_->has_come(0) || over_.load(); };
    const auto are_handlers_waiting = [this] { return parts_.interruptions.are_pending(); };
    while (!is_called()) {
        if (are_handlers_waiting()) return Called::handlers;
        dsm::Heap& heap = *parts_.heap;
        mail_->wait_for(
            [&] { return is_called() || heap.has_freed_pages() || are_handlers_waiting(); });
        heap.return_freed_pages();
    }
    if (!mail_->has_come(0)) return Called::end;
    in_region_.store(true);
    region_runs(true);
    phase_ = 0;
    receive(0, Kind::fork, std::as_writable_bytes(std::span(fork, 1)));
    acquire();
    members_ = TeamShape{fork->place.team_size, parts_.endpoint->nodes()}.nodes_used();
    all_nodes_know();
    if (fork->data != nullptr && parts_.memory->contains(fork->data))
        parts_.memory->prefetch(fork->data, data_prefetch_bytes);
    return Called::region;
}

void TeamLink::run_handlers() noexcept {
    on_runtime_stack([this] { run_beside_releases(); });
    parts_.interruptions.serve();
    on_runtime_stack([this] {
        count_program_threads(-1);
        release();
    });
}

void TeamLink::region_runs(bool runs) noexcept {
    if (parts_.publisher != nullptr) parts_.publisher->set_active(runs);
}

// The publisher goes on: other nodes may still be in the region and spin on what was written here.
void TeamLink::arrive_at_join() noexcept {
    release();
    in_region_.store(false);
    send(0, Kind::join);
}

// Up to 8 members all tell all, starting behind themselves, which spreads the load.
void TeamLink::begin_barrier() noexcept {
    release();
    if (members_ > all_to_all_max) {
        if (self_ != 0) send(0, Kind::gather);
        return;
    }
    for (std::uint32_t i = 1; i < members_; ++i) send((self_ + i) % members_, Kind::barrier);
}

bool TeamLink::finish_barrier() noexcept {
    const bool over_node_0 = members_ > all_to_all_max;
    const std::uint32_t from_up_to = over_node_0 && self_ != 0 ? 1 : members_;
    if (!await([&] { return have_come(0, from_up_to); })) return false;
    const Kind kind = !over_node_0 ? Kind::barrier : self_ != 0 ? Kind::spread : Kind::gather;
    for (std::uint32_t node = 0; node < from_up_to; ++node)
        if (node != self_) receive(node, kind);
    acquire();
    // What node 0 has acquired is part of its own news.
    if (over_node_0 && self_ == 0)
        for (std::uint32_t node = 1; node < members_; ++node) send(node, Kind::spread);
    all_nodes_know();
    ++phase_;
    return true;
}

void TeamLink::send_quit() noexcept {
    for (std::uint32_t node = 0; node < parts_.endpoint->nodes(); ++node)
        if (node != self_)
            parts_.endpoint->send(NodeId{node}, net::MessageKind::quit, net::Urgency::wake_service,
                                  {});
}

}  // namespace hiroba::omp
