// SPDX-License-Identifier: BSD-3-Clause
// Role: what threads store in a `single nowait` is there for threads of other nodes that come to
// atomics or locks behind it. By the letter that is a race. On one host the store is made long
// before they come. Here nothing else would tell of it before the next barrier, and an atomic that
// comes first would be overwritten.
// Invariant: only a thread that did not get a single asks, once for all of its node, and only at
// its first atomic or lock behind it. A node that is asked answers at once: its thread waits for no
// other node, and for the executing thread as that one's neighbours do.
#include <algorithm>
#include <mutex>

#include "dsm/dsm.hpp"
#include "net/net.hpp"
#include "omp/task/task_exchange.hpp"

namespace hiroba::omp {

using Kind = TaskMailHeader::Kind;
using net::Urgency;

// A thread may find another one of its node asking. What that one asks for may have been answered
// before this one lost its single: only numbers tell.
void TaskExchange::acquire_singles(const LostSingles& lost) noexcept {
    const auto is_here = [&] { return singles_.end.load(std::memory_order_acquire) >= lost.end; };
    on_runtime_stack([&] {
        bool asks = false;
        // Asked again once it was true: what was locked stays so.
        await_mails([&] { return asks || is_here() || (asks = singles_.asking.try_lock()); });
        if (!asks) return;
        if (!is_here()) ask_for_singles(lost);
        singles_.asking.unlock();
        parts_.endpoint->wake_local();
    });
}

void TaskExchange::ask_for_singles(const LostSingles& lost) noexcept {
    const std::uint32_t all = members();
    singles_.answers_missing.store(all - 1, std::memory_order_relaxed);
    for (std::uint32_t node = 0; node < all; ++node)
        if (node != self_.value)
            send<std::uint64_t>(NodeId{node}, Kind::single_wanted, Urgency::wake_service,
                                std::span{&lost.first, 1});
    // Acquire: pairs with apply(), before which the answer's news were acquired.
    await_mails([&] { return singles_.answers_missing.load(std::memory_order_acquire) == 0; });
    singles_.end.store(lost.end, std::memory_order_release);  // pairs with acquire_singles()
}

/// Returns when it is ready; reads and serves mails meanwhile, and makes the releases that others
/// want: they may wait for this node as it waits for them.
template <class Ready>
void TaskExchange::await_mails(Ready&& ready) noexcept {
    const auto stirs = [&] { return ready() || has_work() || parts_.memory->has_to_pay(); };
    while (!ready()) {
        polling_.fetch_add(1);
        parts_.endpoint->wait_until(stirs);
        polling_.fetch_sub(1);
        attend();
        parts_.memory->pay();
    }
}

// --- the other side ------------------------------------------------------------------------------

bool TaskExchange::may_have_singles(std::uint64_t first) noexcept {
    return std::any_of(turns_.begin(), turns_.end(),
                       [&](SingleTurn& turn) { return turn.is_own_since(first); });
}

void TaskExchange::answer_singles() noexcept {
    if (!singles_.wanted.exchange(false)) return;
    struct Wish {
        NodeId from;
        std::uint64_t first;
    };
    std::vector<Wish> wishes;
    {
        const std::scoped_lock guard{peers_latch_};
        for (std::uint32_t node = 0; node < peers_.size(); ++node) {
            Peer& peer = peers_[node];
            if (peer.wants_single != 0) wishes.push_back({NodeId{node}, peer.wants_single - 1});
            peer.wants_single = 0;
        }
    }
    std::vector<std::byte> with;
    for (const Wish& wish : wishes) {
        const bool has = may_have_singles(wish.first);
        if (has && with.empty()) {
            for (SingleTurn& turn : turns_) turn.let_first_go();
            parts_.memory->release(dsm::Others::running);
            with = news();
        }
        send(wish.from, Kind::single_told, Urgency::wake_service, {}, 0,
             has ? Bytes{with} : Bytes{});
    }
}

}  // namespace hiroba::omp
