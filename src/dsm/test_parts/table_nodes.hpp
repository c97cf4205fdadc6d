// SPDX-License-Identifier: BSD-3-Clause
// Role: nodes in one process, each with a table of locks or synchronization objects over one wire,
// a memory that only counts what it is told, and a service thread.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "dsm/sync/debt_payer.hpp"
#include "dsm/test_parts/wire_provider.hpp"

namespace hiroba::dsm::test {

/// `Memory` is made of the address map and the node's rank.
template <class Table, class Memory>
class TableNodes {
public:
    explicit TableNodes(std::uint32_t nodes)
        : wire_(nodes), map_({.nodes = nodes, .heap_bytes = std::size_t{64} << 20}) {
        for (std::uint32_t rank = 0; rank < nodes; ++rank)
            nodes_.push_back(std::make_unique<Node>(wire_, map_, NodeId{rank}, nodes));
        for (auto& each : nodes_) {
            EXPECT_TRUE(each->endpoint->connect());
            each->table->attach();
            each->payer->start();
            each->service = std::thread([&each] { each->endpoint->serve(); });
        }
    }
    ~TableNodes() {
        for (auto& each : nodes_) each->payer->stop();
        for (auto& each : nodes_) {
            each->endpoint->stop();
            each->service.join();
        }
    }
    Table& at(std::uint32_t rank) { return *nodes_[rank]->table; }
    Memory& memory(std::uint32_t rank) { return nodes_[rank]->memory; }
    DebtPayer& payer(std::uint32_t rank) { return *nodes_[rank]->payer; }
    std::size_t messages() const { return wire_.messages; }

private:
    struct Node {
        Node(Wire& wire, const AddressMap& map, NodeId self, std::uint32_t nodes)
            : memory(map, self.value) {
            endpoint = net::Endpoint::over(self, nodes, std::make_unique<WireProvider>(wire, self));
            payer = std::make_unique<DebtPayer>(*endpoint);
            auto made = Table::create(*endpoint, memory, *payer);
            EXPECT_TRUE(made) << made.error().text;
            table = std::move(*made);
        }
        std::unique_ptr<net::Endpoint> endpoint;
        Memory memory;
        std::unique_ptr<DebtPayer> payer;
        std::unique_ptr<Table> table;
        std::thread service;
    };

    Wire wire_;
    AddressMap map_;
    std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace hiroba::dsm::test
