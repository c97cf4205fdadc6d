// SPDX-License-Identifier: BSD-3-Clause
// Role: carries out the protocol of tasks between nodes.
// Invariant: see the header. Regions are numbered alike on all nodes, and what was asked for in an
// earlier one is forgotten; tasks themselves never outlive their region.
#include "omp/task/task_exchange.hpp"

#include <algorithm>
#include <csignal>
#include <mutex>

#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "base/service_thread.hpp"
#include "base/short_slice.hpp"
#include "base/thread_context.hpp"
#include "base/trace.hpp"
#include "dsm/dsm.hpp"
#include "omp/messages.hpp"
#include "omp/task/task_pool.hpp"

namespace hiroba::omp {

namespace {
/// Tasks that one mail gives away. On a busy node guests wait for a thread, while their origin may
/// take them back.
constexpr std::size_t given_max = 32;
constexpr std::size_t handles_max = 64;
/// How often a thread that goes from task to task looks for mail.
constexpr std::uint64_t poll_every_ns = 20'000;
/// How long at most the end of a guest stays unread where all threads compute.
constexpr std::uint64_t told_late_max_ns = 1'000'000;
using net::Urgency;
using Kind = TaskMailHeader::Kind;

/// Whether the mail is of a region that this node has not begun, as a wish may be of one that has
/// come there sooner; or brings tasks from behind a barrier at which this node still is. Reports do
/// not: no node passes a barrier before the tasks made ahead of it are over.
bool is_early(const TaskInbox::Mail& mail, std::uint64_t region,
              std::uint64_t barriers_passed) noexcept {
    return mail.header.region > region ||
           (mail.header.kind == Kind::given && mail.header.count > 0 &&
            mail.header.barriers > barriers_passed);
}
}  // namespace

TaskExchange::TaskExchange(const Parts& parts, TaskPool& pool)
    : parts_(parts), pool_(pool), self_(parts.endpoint->self()), peers_(parts.endpoint->nodes()) {
    parts.endpoint->on(message::tasks, &on_mail, this);
}

TaskExchange::~TaskExchange() {
    if (!clerk_.thread.joinable()) return;
    clerk_.stopping.store(true, std::memory_order_relaxed);  // published by the next line
    clerk_.bell.ring();
    clerk_.thread.join();
}

void TaskExchange::attach() {
    const std::size_t longest =
        sizeof(TaskMailHeader) + given_max * sizeof(GivenTask) + parts_.memory->news_bytes_max();
    const std::size_t room = parts_.endpoint->provider().limits().message_bytes_max;
    if (longest > room)
        die(exit_environment,
            "tasks with %lu bytes do not fit in a message of %lu; lower "
            "HIROBA_NOTICES",
            static_cast<unsigned long>(longest), static_cast<unsigned long>(room));
    // The program's signals are for the program's threads.
    sigset_t all;
    sigset_t former;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &former);
    clerk_.thread =
        start_service_thread("hands out tasks while others compute", [this] { work_as_clerk(); });
    pthread_sigmask(SIG_SETMASK, &former, nullptr);
}

void TaskExchange::work_as_clerk() noexcept {
    ask_for_short_slices(ShortSlice::of_service);
    for (;;) {
        const std::uint32_t seen = clerk_.bell.rings();
        if (clerk_.stopping.load(std::memory_order_relaxed)) return;
        if (!clerk_.called.exchange(false)) {  // before it looks
            clerk_.bell.sleep_past(seen);
            continue;
        }
        attend();
    }
}

void TaskExchange::call_clerk() noexcept {
    if (!clerk_.called.exchange(true)) clerk_.bell.ring();
}

// A thread that puts a mail off meanwhile finds the new region, or this one finds the mail.
void TaskExchange::begin_region(std::uint64_t region, std::uint32_t members) noexcept {
    {
        const std::scoped_lock guard{peers_latch_};
        members_ = members;
        current_region_.store(members > 1 ? region : 0, std::memory_order_relaxed);
        for (Peer& peer : peers_) {
            peer.asked = Asked::no;
            peer.wants_any = peer.wants_answer = false;
            peer.wants.clear();
        }
        barriers_passed_.store(0, std::memory_order_relaxed);
        wanting_.store(0, std::memory_order_relaxed);
        expects_mail_.store(false, std::memory_order_relaxed);
        region_.store(region);
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with read_what_came()
    if (early_.mails.empty()) return;
    read_early();
    call_clerk();
}

// --- mails ---------------------------------------------------------------------------------------

void TaskExchange::on_mail(void* exchange, NodeId from, Bytes body) noexcept {
    auto* const self = static_cast<TaskExchange*>(exchange);
    self->inbox_.add(from, body);
    // The thread that polled wakes the threads that wait. A thread that is seen to poll reads after
    // this.
    if (!self->pool_.has_waiting() && self->polling_.load() == 0) self->call_clerk();
}

void TaskExchange::send(NodeId to, Kind kind, Urgency urgency, Bytes records, std::size_t count,
                        Bytes news) noexcept {
    TaskMailHeader header;
    header.kind = kind;
    header.count = static_cast<std::uint32_t>(count);
    header.region = current_region_.load(std::memory_order_relaxed);
    header.barriers = barriers_passed_.load();
    header.record_bytes = static_cast<std::uint32_t>(records.size());
    header.news_bytes = static_cast<std::uint32_t>(news.size());
    const Bytes parts[] = {std::as_bytes(std::span{&header, 1}), records, news};
    parts_.endpoint->send(to, message::tasks, urgency, parts);
}

/// The news of all that this node knows. After a release, which the caller makes.
std::vector<std::byte> TaskExchange::news() noexcept {
    std::vector<std::byte> bytes(parts_.memory->news_bytes_max());
    bytes.resize(parts_.memory->news_for_anyone(bytes));
    return bytes;
}

void TaskExchange::attend() noexcept {
    on_runtime_stack([this] {
        read_mails();
        serve();
    });
}

void TaskExchange::take_in() noexcept {
    if (polls_now()) {
        on_runtime_stack([this] {
            polling_.fetch_add(1);
            parts_.endpoint->poll();
            polling_.fetch_sub(1);  // before it looks at the inbox
            read_mails();
        });
    } else if (!inbox_.empty()) {
        on_runtime_stack([this] { read_mails(); });
    }
}

/// A node that has given tasks away, or asked for some, hears of them, and is not woken for each.
bool TaskExchange::polls_now() noexcept {
    if (!expects_mail_.load(std::memory_order_relaxed)) return false;
    const std::uint64_t now = now_ns();
    if (now < poll_next_ns_.load(std::memory_order_relaxed)) return false;
    poll_next_ns_.store(now + poll_every_ns, std::memory_order_relaxed);
    return true;
}

void TaskExchange::hand_out() noexcept {
    if (attention_.load(std::memory_order_acquire)) on_runtime_stack([this] { serve(); });
}

/// A thread that finds another one reading gives up; the one that reads also reads the mails that
/// come meanwhile.
void TaskExchange::read_mails() noexcept {
    while (!inbox_.empty() && reading_.try_lock()) {
        read_what_came();
        std::atomic_thread_fence(std::memory_order_seq_cst);  // before it looks again
    }
}

void TaskExchange::read_what_came() noexcept {
    inbox_.take();
    bool learned = false, puts_off = false, tells = false;
    const std::uint64_t region = region_.load(), passed = barriers_passed_.load();
    while (const auto mail = inbox_.next()) {
        if (is_early(*mail, region, passed)) {
            early_.mails.add(mail->from, mail->body);
            puts_off = true;
            continue;
        }
        tells |= mail->header.kind == Kind::single_told;
        if (mail->news.empty()) continue;
        parts_.memory->learn(NodeId{~0u}, mail->news);
        learned = true;
    }
    if (learned) parts_.memory->acquire(dsm::Others::running);
    inbox_.rewind();
    std::vector<void*> arguments;
    std::vector<GuestReport> reports;
    TaskBook::Cancelled cancelled;
    pool_.with_books([&](TaskBook& book) {
        while (const auto mail = inbox_.next())
            if (!is_early(*mail, region, passed)) apply(*mail, book, arguments);
        reports.swap(book.reports());
        std::swap(cancelled, book.cancelled());
    });
    reading_.unlock();
    // The thread that has asked may have come upon this one reading, and sleep again.
    if (tells) parts_.endpoint->wake_local();
    if (puts_off) {
        // Pairs with pass_barrier() and begin_region().
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (barriers_passed_.load() != passed || region_.load() != region) read_early();
    }
    if (!reports.empty()) tell(reports, false);
    if (!cancelled.empty()) tell_cancelled(cancelled);
    for (void* const argument : arguments) pool_.free_argument(argument);
}

// A thread that puts a mail off meanwhile finds the new count, or this one finds the mail.
void TaskExchange::pass_barrier() noexcept {
    barriers_passed_.fetch_add(1);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!early_.mails.empty()) read_early();
}

/// The mails come into the inbox once more, behind what came meanwhile.
void TaskExchange::read_early() noexcept {
    const std::scoped_lock guard{early_.taking};
    early_.mails.take();
    while (const auto mail = early_.mails.next()) inbox_.add(mail->from, mail->body);
}

void TaskExchange::apply(const TaskInbox::Mail& mail, TaskBook& book,
                         std::vector<void*>& arguments) {
    const std::uint32_t count = mail.header.count;
    const std::scoped_lock guard{peers_latch_};
    Peer& peer = peers_[mail.from.value];
    const bool current = mail.header.region == region_;
    switch (mail.header.kind) {
        case Kind::here:
            peer.offers_in_region = mail.header.region;
            book.note_event();
            break;
        case Kind::wanted:
            if (!current) break;
            peer.wants_any = peer.wants_answer = true;
            want_attention();
            break;
        case Kind::wanted_of:
            if (!current) break;
            peer.wants.clear();
            for (std::uint32_t i = 0; i < count; ++i)
                peer.wants.push_back(mail.record<TaskHandle>(i));
            want_attention();
            break;
        case Kind::given:
            if (current) peer.asked = count == 0 ? Asked::remembered_there : Asked::no;
            for (std::uint32_t i = 0; i < count; ++i) book.adopt(mail.record<GivenTask>(i));
            taken_.fetch_add(count, std::memory_order_relaxed);
            book.note_event();
            break;
        case Kind::told:
            for (std::uint32_t i = 0; i < count; ++i)
                if (void* const argument = book.hear(mail.record<GuestReport>(i), mail.from))
                    arguments.push_back(argument);
            break;
        case Kind::fulfilled:
            for (std::uint32_t i = 0; i < count; ++i) book.fulfill(mail.record<TaskHandle>(i));
            break;
        case Kind::group_cancelled:
            for (std::uint32_t i = 0; i < count; ++i) book.hear_cancel(mail.record<TaskHandle>(i));
            break;
        case Kind::guests_cancelled:
            for (std::uint32_t i = 0; i < count; ++i)
                book.hear_cancelled(mail.record<TaskHandle>(i), mail.header.region);
            break;
        case Kind::single_wanted:
            peer.wants_single = mail.record<std::uint64_t>(0) + 1;
            singles_.wanted.store(true, std::memory_order_relaxed);  // published by the next
            want_attention();
            break;
        case Kind::single_told:
            singles_.answers_missing.fetch_sub(1, std::memory_order_release);
            break;
    }
    wanting_.store(static_cast<std::uint32_t>(std::count_if(
                       peers_.begin(), peers_.end(),
                       [](const Peer& p) { return p.wants_any || !p.wants.empty(); })),
                   std::memory_order_relaxed);
}

// --- giving --------------------------------------------------------------------------------------

void TaskExchange::want_attention() noexcept {
    attention_.store(true, std::memory_order_release);  // pairs with has_work()
}

void TaskExchange::see_offers(std::uint64_t offers, bool attends) noexcept {
    if (offers_seen_.load(std::memory_order_relaxed) >= offers) return;
    offers_seen_.store(offers, std::memory_order_relaxed);
    const std::uint64_t region = current_region_.load(std::memory_order_relaxed);
    if (region == 0) return;
    if (told_region_.load(std::memory_order_relaxed) != region) tell_here();
    if (wanting_.load(std::memory_order_relaxed) == 0 || attention_.load()) return;
    want_attention();
    if (!attends && !pool_.has_waiting()) call_clerk();
}

void TaskExchange::tell_here() noexcept {
    const std::uint64_t region = current_region_.load(std::memory_order_relaxed);
    if (told_region_.exchange(region) == region) return;
    const std::uint32_t all = members();
    on_runtime_stack([&] {
        for (std::uint32_t node = 0; node < all; ++node)
            if (node != self_.value) send(NodeId{node}, Kind::here, Urgency::when_polled);
    });
}

std::uint32_t TaskExchange::members() noexcept {
    const std::scoped_lock guard{peers_latch_};
    return members_;
}

void TaskExchange::serve() noexcept {
    if (!attention_.exchange(false)) return;
    answer_singles();
    std::vector<Parcel> parcels;
    pool_.with_books([&](TaskBook& book) {
        const std::scoped_lock guard{peers_latch_};
        choose(book, parcels);
    });
    if (parcels.empty()) return;
    const bool any = std::any_of(parcels.begin(), parcels.end(),
                                 [](const Parcel& parcel) { return !parcel.tasks.empty(); });
    std::vector<std::byte> with;
    if (any) {
        expects_mail_.store(true, std::memory_order_relaxed);
        parts_.memory->release(dsm::Others::running);
        with = news();
    }
    for (const Parcel& parcel : parcels) {
        trace("omp.give", parcel.to.value, parcel.tasks.size());
        const Bytes bytes = parcel.tasks.empty() ? Bytes{} : Bytes{with};
        // The receiver waits, or did when it asked; its thread then polls before it goes on with
        // another task.
        send<GivenTask>(parcel.to, Kind::given, Urgency::when_polled, parcel.tasks, bytes);
    }
}

/// Nodes that wait for particular tasks come first, and each time another of them.
void TaskExchange::choose(TaskBook& book, std::vector<Parcel>& parcels) {
    serve_first_ = (serve_first_ + 1) % static_cast<std::uint32_t>(peers_.size());
    const auto visit = [&](auto&& give_to) {
        for (std::uint32_t i = 0; i < peers_.size(); ++i) {
            const auto node = static_cast<std::uint32_t>((serve_first_ + i) % peers_.size());
            if (node != self_.value) give_to(NodeId{node}, peers_[node]);
        }
    };
    visit([&](NodeId node, Peer& peer) {
        if (peer.wants.empty()) return;
        Parcel parcel{node, {}};
        book.give_descendants(node, peer.wants, given_max, parcel.tasks);
        if (parcel.tasks.empty()) return;
        peer.wants.clear();
        // The peer now has tasks that this node may want back.
        peer.offers_in_region = region_;
        parcels.push_back(std::move(parcel));
    });
    visit([&](NodeId node, Peer& peer) {
        if (!peer.wants_any) return;
        Parcel parcel{node, {}};
        book.give_any(node, given_max, parcel.tasks);
        if (parcel.tasks.empty() && !peer.wants_answer) return;
        peer.wants_answer = false;
        if (!parcel.tasks.empty()) {
            peer.wants_any = false;
            peer.offers_in_region = region_;
        }
        parcels.push_back(std::move(parcel));
    });
}

// --- wanting -------------------------------------------------------------------------------------

// Asks one node at a time, near ones first: ranks are given host by host.
void TaskExchange::ask_any() noexcept {
    NodeId to{self_};
    {
        const std::scoped_lock guard{peers_latch_};
        const auto may_have = [&](std::int64_t node) {
            return node >= 0 && node < members_ &&
                   peers_[static_cast<std::size_t>(node)].offers_in_region == region_;
        };
        for (std::int64_t distance = 1; distance < members_; ++distance) {
            for (const std::int64_t node : {self_.value + distance, self_.value - distance}) {
                if (!may_have(node)) continue;
                Peer& peer = peers_[static_cast<std::size_t>(node)];
                if (peer.asked == Asked::waits_for_answer) return;
                if (peer.asked == Asked::no && to == self_)
                    to = NodeId{static_cast<std::uint32_t>(node)};
            }
        }
        if (to == self_) return;
        peers_[to.value].asked = Asked::waits_for_answer;
        expects_mail_.store(true, std::memory_order_relaxed);
    }
    on_runtime_stack([&] { send(to, Kind::wanted, Urgency::wake_service); });
}

void TaskExchange::ask_for(std::span<const TaskHandle> away) noexcept {
    const std::uint32_t all = members();
    on_runtime_stack([&] {
        for (std::uint32_t node = 0; node < all; ++node)
            if (node != self_.value)
                send<TaskHandle>(NodeId{node}, Kind::wanted_of, Urgency::wake_service, away);
    });
}

// --- telling -------------------------------------------------------------------------------------

Urgency TaskExchange::urgency_of_report(NodeId origin, bool goes_on) noexcept {
    const std::uint64_t now = now_ns();
    const std::scoped_lock guard{peers_latch_};
    Peer& peer = peers_[origin.value];
    if (goes_on && now - peer.woken_ns < told_late_max_ns) return Urgency::when_polled;
    peer.woken_ns = now;
    return Urgency::wake_service;
}

void TaskExchange::tell(std::span<const GuestReport> reports, bool goes_on) noexcept {
    on_runtime_stack([&] {
        parts_.memory->release(dsm::Others::running);
        const std::vector<std::byte> with = news();
        for (const GuestReport& report : reports)
            send<GuestReport>(report.task.node(), Kind::told,
                              urgency_of_report(report.task.node(), goes_on), std::span{&report, 1},
                              with);
    });
}

void TaskExchange::fulfill_elsewhere(TaskHandle event) noexcept {
    on_runtime_stack([&] {
        parts_.memory->release(dsm::Others::running);
        const std::vector<std::byte> with = news();
        send<TaskHandle>(event.node(), Kind::fulfilled, Urgency::wake_service, std::span{&event, 1},
                         with);
    });
}

void TaskExchange::tell_cancelled(const TaskBook::Cancelled& cancelled) noexcept {
    const std::uint32_t all = members();
    on_runtime_stack([&] {
        for (const TaskHandle& each : cancelled.groups_of)
            send<TaskHandle>(each.node(), Kind::group_cancelled, Urgency::wake_service,
                             std::span{&each, 1});
        for (std::size_t at = 0; at < cancelled.away.size(); at += handles_max) {
            const auto some = std::span(cancelled.away)
                                  .subspan(at, std::min(handles_max, cancelled.away.size() - at));
            for (std::uint32_t node = 0; node < all; ++node)
                if (node != self_.value)
                    send<TaskHandle>(NodeId{node}, Kind::guests_cancelled, Urgency::wake_service,
                                     some);
        }
    });
}

}  // namespace hiroba::omp
