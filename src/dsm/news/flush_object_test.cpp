// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/news/flush_object.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "dsm/test_parts/wire_provider.hpp"

namespace hiroba::dsm {
namespace {

using test::Wire;
using test::WireProvider;

constexpr std::size_t news_bytes_max = 256;

struct OneNode {
    OneNode(Wire& wire, NodeId self, std::uint32_t nodes)
        : endpoint(net::Endpoint::over(self, nodes, std::make_unique<WireProvider>(wire, self))),
          object(*endpoint, *FlushObject::allocate(*endpoint, news_bytes_max), news_bytes_max) {}
    void flush(FlushObject::Version version) {
        object.lock(version - 1, [] {});
        object.unlock_with(version, 0);
    }
    std::unique_ptr<net::Endpoint> endpoint;
    FlushObject object;
};

/// The object lies on node 0; node 2 is on its host, node 1 is not.
class FlushesBetweenHosts : public testing::Test {
protected:
    FlushesBetweenHosts() {
        wire.hosts = {1, 2, 1};
        for (std::uint32_t i = 0; i < 3; ++i)
            nodes.push_back(std::make_unique<OneNode>(wire, NodeId{i}, 3u));
        for (auto& node : nodes) node->object.attach();
    }
    Wire wire{3};
    std::vector<std::unique_ptr<OneNode>> nodes;
};

TEST_F(FlushesBetweenHosts, who_cannot_look_at_the_object_is_told) {
    nodes[0]->flush(1);
    EXPECT_TRUE(nodes[2]->object.newer_than(0));
    EXPECT_FALSE(nodes[1]->object.newer_than(0));
    EXPECT_EQ(wire.messages, 1u) << "a node that can look was told, or more";
    nodes[1]->endpoint->poll();
    EXPECT_TRUE(nodes[1]->object.newer_than(0));
}

TEST_F(FlushesBetweenHosts, a_neighbour_of_the_object_tells_as_well) {
    nodes[2]->flush(1);
    EXPECT_TRUE(nodes[0]->object.newer_than(0));
    EXPECT_EQ(wire.messages, 1u) << "a node that can look was told, or more";
    nodes[1]->endpoint->poll();
    EXPECT_TRUE(nodes[1]->object.newer_than(0));
}

}  // namespace
}  // namespace hiroba::dsm
