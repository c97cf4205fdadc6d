// SPDX-License-Identifier: BSD-3-Clause
#include "memory_programs/news_exchange.hpp"

#include <mutex>
#include <utility>

#include "base/thread_context.hpp"

namespace hiroba::sim_test {

using dsm::Others;

NewsExchange::NewsExchange(net::Endpoint& endpoint, dsm::SharedMemory& memory)
    : endpoint_(endpoint),
      memory_(memory),
      news_(endpoint.nodes()),
      buffer_(memory.news_bytes_max()) {
    endpoint.on(
        net::MessageKind::test,
        [](void* context, NodeId from, Bytes body) noexcept {
            auto& exchange = *static_cast<NewsExchange*>(context);
            const std::scoped_lock guard{exchange.latch_};
            exchange.news_[from.value].emplace_back(body.begin(), body.end());
        },
        this);
}

void NewsExchange::send_news(std::uint32_t to) noexcept {
    const std::size_t bytes = memory_.news_for(NodeId{to}, buffer_);
    const Bytes part{buffer_.data(), bytes};
    endpoint_.send(NodeId{to}, net::MessageKind::test, net::Urgency::when_polled, {&part, 1});
}

void NewsExchange::take_news(std::uint32_t from) noexcept {
    auto& news = news_[from];
    endpoint_.wait_until([&] {
        const std::scoped_lock guard{latch_};
        return !news.empty();
    });
    const std::scoped_lock guard{latch_};
    memory_.learn(NodeId{from}, news.front());
    news.pop_front();
}

// The order of release, news, acquire and everyone_knows() is omp/team's: every second time all to
// all, and along a tree, which is a chain here, so that nodes in the middle pass news on.
void NewsExchange::barrier(Others at_release) noexcept {
    memory_.release(at_release);
    ++exchanges_;
    all_to_all_or_along_tree();
    // As if the program synchronized at two places in turns.
    const SyncPlace before =
        std::exchange(this_thread().place, {1 + exchanges_ / 2 % 2, SyncKind::barrier});
    memory_.bring_expected();
    this_thread().place = before;
}

void NewsExchange::all_to_all_or_along_tree() noexcept {
    if (exchanges_ % 2 == 0) {
        pass_up();
        pass_down();
        return;
    }
    const std::uint32_t nodes = endpoint_.nodes();
    const std::uint32_t self = endpoint_.self().value;
    for (std::uint32_t i = 1; i < nodes; ++i) send_news((self + i) % nodes);
    for (std::uint32_t i = 1; i < nodes; ++i) take_news((self + i) % nodes);
    memory_.acquire(Others::stopped);
    memory_.everyone_knows();
}

void NewsExchange::pass_up() noexcept {
    const std::uint32_t self = endpoint_.self().value;
    if (self + 1 < endpoint_.nodes()) {
        take_news(self + 1);
        memory_.acquire(Others::stopped);
    }
    if (self != 0) send_news(self - 1);
}

void NewsExchange::pass_down() noexcept {
    const std::uint32_t self = endpoint_.self().value;
    if (self != 0) {
        take_news(self - 1);
        memory_.acquire(Others::stopped);
    }
    if (self + 1 < endpoint_.nodes()) send_news(self + 1);
    const NodeId told{self != 0 ? self - 1 : 1};
    memory_.everyone_knows_through({&told, 1});
}

void NewsExchange::serial(Others at_release, const std::function<void()>& alone) noexcept {
    memory_.release(at_release);
    pass_up();
    if (endpoint_.self().value == 0) {
        alone();
        memory_.release(at_release);
    }
    pass_down();
}

}  // namespace hiroba::sim_test
