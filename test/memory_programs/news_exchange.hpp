// SPDX-License-Identifier: BSD-3-Clause
// Role: how the nodes of a random program meet: what omp/team does with releases, news and
// acquires, by plain messages. One thread of each node at a time; the node's other threads wait
// meanwhile.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "base/latch.hpp"
#include "dsm/dsm.hpp"

namespace hiroba::sim_test {

class NewsExchange {
public:
    /// Before Endpoint::connect(); all three live as long.
    NewsExchange(net::Endpoint& endpoint, dsm::SharedMemory& memory);
    NewsExchange(const NewsExchange&) = delete;
    NewsExchange& operator=(const NewsExchange&) = delete;

    void barrier(dsm::Others at_release) noexcept;
    /// Join, `alone` on node 0, fork.
    void serial(dsm::Others at_release, const std::function<void()>& alone) noexcept;

private:
    void send_news(std::uint32_t to) noexcept;
    void take_news(std::uint32_t from) noexcept;
    void all_to_all_or_along_tree() noexcept;
    void pass_up() noexcept;
    void pass_down() noexcept;

    net::Endpoint& endpoint_;
    dsm::SharedMemory& memory_;
    std::uint32_t exchanges_ = 0;  ///< equal on all nodes
    Latch latch_;
    std::vector<std::deque<std::vector<std::byte>>> news_;  ///< from each peer, as they came
    std::vector<std::byte> buffer_;
};

}  // namespace hiroba::sim_test
