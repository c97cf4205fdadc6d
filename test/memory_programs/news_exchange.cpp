// SPDX-License-Identifier: BSD-3-Clause
#include "memory_programs/news_exchange.hpp"

#include <mutex>

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

// The order of release, news, acquire and everyone_knows() is omp/team's.
void NewsExchange::barrier(Others at_release) noexcept {
    const std::uint32_t nodes = endpoint_.nodes();
    const std::uint32_t self = endpoint_.self().value;
    memory_.release(at_release);
    for (std::uint32_t i = 1; i < nodes; ++i) send_news((self + i) % nodes);
    for (std::uint32_t i = 1; i < nodes; ++i) take_news((self + i) % nodes);
    memory_.acquire(Others::stopped);
    memory_.everyone_knows();
}

void NewsExchange::serial(Others at_release, const std::function<void()>& alone) noexcept {
    const std::uint32_t nodes = endpoint_.nodes();
    if (endpoint_.self().value != 0) {
        memory_.release(at_release);
        send_news(0);  // join
        take_news(0);  // fork
        memory_.acquire(Others::stopped);
    } else {
        for (std::uint32_t from = 1; from < nodes; ++from) take_news(from);
        memory_.acquire(Others::stopped);
        alone();
        memory_.release(at_release);
        for (std::uint32_t to = 1; to < nodes; ++to) send_news(to);
    }
    memory_.everyone_knows();
}

}  // namespace hiroba::sim_test
