// SPDX-License-Identifier: BSD-3-Clause
// Role: see meeting.hpp.
#include "net/provider/verbs/meeting.hpp"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/fatal.hpp"
#include "base/thread_context.hpp"

namespace hiroba::net::verbs {
namespace {

constexpr std::uint32_t sent_mark = 1u << 31;  // in wr_id: a place that was sent from
constexpr std::uint32_t first_packet = 0;

}  // namespace

// The top bit of a key would have the device put its own in place of it.
Meeting::Meeting(Device& device, NodeId self, std::uint64_t job)
    : device_(device),
      self_(self),
      job_(job),
      qkey_(static_cast<std::uint32_t>(job ^ job >> 32) & 0x7fff'ffffu) {}

Meeting::~Meeting() {
    const CallsOfOwnLibrary of_verbs;
    const IbverbsLibrary& ibv = device_.ibv();
    for (const End& end : ends_) ibv.destroy_qp(end.qp);
    for (ibv_ah* const path : paths_)
        if (path != nullptr) ibv.destroy_ah(path);
    if (qp_ != nullptr) ibv.destroy_qp(qp_);
    if (mr_ != nullptr) ibv.dereg_mr(mr_);
    if (places_ != nullptr) munmap(places_, places_bytes);
    for (ibv_cq* const cq : {cq_, spare_})
        if (cq != nullptr) ibv.destroy_cq(cq);
}

Result<void> Meeting::open(ibv_srq* srq, ibv_cq* receives) {
    const IbverbsLibrary& ibv = device_.ibv();
    srq_ = srq;
    receives_ = receives;
    std::uint32_t cqe = 2 * datagrams_max, one = 1;
    auto cq = device_.make_cq(cqe);
    if (!cq) return cq.error();
    cq_ = *cq;
    auto spare = device_.make_cq(one);
    if (!spare) return spare.error();
    spare_ = *spare;
    ibv_qp_init_attr made{};
    made.send_cq = made.recv_cq = cq_;
    made.qp_type = IBV_QPT_UD;
    made.cap.max_send_wr = made.cap.max_recv_wr = datagrams_max;
    made.cap.max_send_sge = made.cap.max_recv_sge = 1;
    qp_ = ibv.create_qp(device_.pd(), &made);
    if (qp_ == nullptr) return device_.wrong("ibv_create_qp (datagrams)", errno);
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = device_.port();
    attributes.qkey = qkey_;
    int error = ibv.modify_qp(qp_, &attributes,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    void* const start =
        mmap(nullptr, places_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return device_.wrong("mmap", errno);
    places_ = static_cast<std::byte*>(start);
    mr_ = device_.pin(places_, places_bytes);
    if (mr_ == nullptr) return device_.cannot_pin(places_bytes, errno);
    for (std::uint32_t place = 0; place < datagrams_max; ++place) {
        expect(place);
        free_places_.push_back(datagrams_max + place);
    }
    attributes.qp_state = IBV_QPS_RTR;
    if (error == 0) error = ibv.modify_qp(qp_, &attributes, IBV_QP_STATE);
    attributes.qp_state = IBV_QPS_RTS;
    attributes.sq_psn = first_packet;
    if (error == 0) error = ibv.modify_qp(qp_, &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN);
    if (error != 0) return device_.wrong("ibv_modify_qp (datagrams)", error);
    return {};
}

void Meeting::expect(std::uint32_t place) noexcept {
    ibv_sge memory{reinterpret_cast<std::uintptr_t>(places_ + place * place_bytes), place_bytes,
                   mr_->lkey};
    ibv_recv_wr wr{};
    wr.wr_id = place;
    wr.sg_list = &memory;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    const int error = ibv_post_recv(qp_, &wr, &bad);
    HIROBA_INVARIANT(error == 0, "ibv_post_recv of %u gave %d", place, error);
}

ibv_ah* Meeting::path(NodeId peer) noexcept {
    if (paths_.empty()) paths_.resize(peers_.size());
    ibv_ah*& path = paths_[peer.value];
    if (path != nullptr) return path;
    ibv_ah_attr attributes = device_.path_to(peers_[peer.value].port);
    path = device_.ibv().create_ah(device_.pd(), &attributes);
    return path;
}

void Meeting::ask(NodeId peer, std::uint32_t index, std::uint32_t qp_number,
                  std::uint32_t instead_of) noexcept {
    send(peer, {job_, self_.value, index, qp_number, 0, instead_of, 0});
}

/// A datagram that cannot be sent is lost, as any datagram may be.
void Meeting::send(NodeId to, const Datagram& datagram) noexcept {
    const std::scoped_lock guard{latch_};
    const CallsOfOwnLibrary of_verbs;
    ibv_ah* const way = path(to);
    if (way == nullptr || free_places_.empty()) return;
    const std::uint32_t place = free_places_.back();
    free_places_.pop_back();
    std::memcpy(places_ + place * place_bytes, &datagram, sizeof datagram);
    ibv_sge memory{reinterpret_cast<std::uintptr_t>(places_ + place * place_bytes), sizeof datagram,
                   mr_->lkey};
    ibv_send_wr wr{};
    wr.wr_id = sent_mark | place;
    wr.sg_list = &memory;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    // A node whose threads all compute has its service thread answer.
    wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
    wr.wr.ud.ah = way;
    wr.wr.ud.remote_qpn = peers_[to.value].number;
    wr.wr.ud.remote_qkey = qkey_;
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(qp_, &wr, &bad) != 0) free_places_.push_back(place);
}

std::size_t Meeting::poll(std::span<Datagram> answers) noexcept {
    std::array<Datagram, 16> questions;
    std::size_t asked = 0, answered = 0;
    {
        const std::scoped_lock guard{latch_};
        const CallsOfOwnLibrary of_verbs;
        std::array<ibv_wc, 16> completions;
        std::size_t count = std::min(kept_.size(), std::min(answers.size(), completions.size()));
        std::copy_n(kept_.begin(), count, completions.begin());
        kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(count));
        if (count == 0) {
            const int taken =
                ibv_poll_cq(cq_, static_cast<int>(std::min(answers.size(), completions.size())),
                            completions.data());
            count = static_cast<std::size_t>(std::max(taken, 0));
        }
        for (std::size_t i = 0; i < count; ++i) {
            const auto place = static_cast<std::uint32_t>(completions[i].wr_id);
            if ((place & sent_mark) != 0) {
                free_places_.push_back(place & ~sent_mark);
                continue;
            }
            Datagram datagram;
            std::memcpy(&datagram, places_ + place * place_bytes + routing_bytes, sizeof datagram);
            const bool is_ours = completions[i].status == IBV_WC_SUCCESS &&
                                 completions[i].byte_len == routing_bytes + sizeof datagram &&
                                 datagram.job == job_ && datagram.from < peers_.size();
            expect(place);
            if (!is_ours) continue;
            if (datagram.answerer == 0)
                questions[asked++] = datagram;
            else
                answers[answered++] = datagram;
        }
    }
    for (std::size_t i = 0; i < asked; ++i) answer(questions[i]);
    return answered;
}

void Meeting::answer(const Datagram& question) noexcept {
    const NodeId from{question.from};
    // The latest: a device may give the number of a queue pair that is gone to another.
    const auto end_of = [&](std::uint32_t asker) {
        return std::find_if(ends_.rbegin(), ends_.rend(), [&](const End& end) {
            return end.from == from && end.answer.index == question.index &&
                   end.answer.asker == asker;
        });
    };
    const auto known = end_of(question.asker);
    if (known != ends_.rend() && known->answer.instead_of == question.instead_of)
        return send(from, known->answer);
    Datagram answer = question;
    answer.from = self_.value;
    const CallsOfOwnLibrary of_verbs;
    if (question.instead_of != 0) {
        const auto broken = end_of(question.instead_of);
        if (broken == ends_.rend()) return;  // it was never open
        if (!device_.give_up(broken->qp, answer.expected))
            die(exit_environment, "provider verbs (%s): ibv_query_qp for node %u: %s",
                device_.name().c_str(), from.value, strerror(errno));
    }
    std::uint32_t no_inline = 0;
    ibv_qp* const qp = device_.make_qp(spare_, receives_, srq_, 1, no_inline);
    if (qp == nullptr ||
        !device_.accept_from(qp, peers_[from.value].port, question.asker, first_packet))
        die(exit_environment, "provider verbs (%s): no queue pair for node %u: %s; see ulimit -l",
            device_.name().c_str(), from.value, strerror(errno));
    answer.answerer = qp->qp_num;
    ends_.push_back({qp, from, answer});
    senders_.emplace(qp->qp_num, from);
    send(from, answer);
}

NodeId Meeting::sender(std::uint32_t qp_number) const noexcept {
    const auto found = senders_.find(qp_number);
    HIROBA_INVARIANT(found != senders_.end(), "a message at queue pair %u", qp_number);
    return found->second;
}

bool Meeting::arm() noexcept {
    const std::scoped_lock guard{latch_};
    if (!kept_.empty()) return true;
    const CallsOfOwnLibrary of_verbs;
    ibv_req_notify_cq(cq_, 0);
    std::array<ibv_wc, 16> completions;
    const int count = ibv_poll_cq(cq_, static_cast<int>(completions.size()), completions.data());
    if (count > 0) kept_.assign(completions.begin(), completions.begin() + count);
    return count > 0;
}

}  // namespace hiroba::net::verbs
