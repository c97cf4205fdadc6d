// SPDX-License-Identifier: BSD-3-Clause
// Role: what a node's board has made before connect(), and the comparison with the other nodes.
// Invariant: every node makes the same calls in the same order, and where one node sends to another
// that one receives from it. Nodes exchange checksums; their calls only where those differ.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "net/collectives.hpp"

namespace hiroba::net {

class SetUp {
public:
    /// A call, as "reserve(8, 64)".
    void note(const std::string& call) { note(call, {}, {}); }
    /// One with two ends: where this node sends, and from whom it receives.
    void note(const std::string& call, std::optional<NodeId> to, std::optional<NodeId> from);

    /// Collective. An error, on every node, that names the first call that differs, or whose ends
    /// do not fit.
    Result<void> compare(NodeId self, std::uint32_t nodes, Collectives& collectives) const;

private:
    /// One call as it travels.
    struct Noted {
        std::array<char, 56> call{};
        std::uint32_t to = none, from = none;
    };
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    static Result<void> look_at(std::size_t number, NodeId self, const std::vector<Noted>& all);

    std::vector<Noted> noted_;
};

}  // namespace hiroba::net
