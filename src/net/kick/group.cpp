// SPDX-License-Identifier: BSD-3-Clause
#include "net/kick/group.hpp"

#include <string>

#include "base/fatal.hpp"

namespace hiroba::net::kick {

Group everyone(const Endpoint& endpoint) {
    Group group;
    for (std::uint32_t rank = 0; rank < endpoint.nodes(); ++rank) group.push_back(NodeId{rank});
    return group;
}

namespace {

Error group_error(const Group& group, std::string text) {
    return {ErrorKind::refused,
            "kick group of " + std::to_string(group.size()) + " nodes: " + std::move(text)};
}

/// This node's index in the group.
Result<std::uint32_t> index_in(const Board& board, const Group& group) {
    std::vector<bool> seen(board.nodes());
    std::uint32_t index = ~0u;
    for (std::uint32_t i = 0; i < group.size(); ++i) {
        const std::string node = "node " + std::to_string(group[i].value);
        if (group[i].value >= board.nodes()) return group_error(group, node + " is not in the job");
        if (seen[group[i].value]) return group_error(group, node + " is a member twice");
        seen[group[i].value] = true;
        if (group[i] == board.self()) index = i;
    }
    if (index == ~0u) {
        return group_error(group, "node " + std::to_string(board.self().value) + " is no member");
    }
    return index;
}

std::string describe(ReduceCall call) {
    if (call.bytes == 0) return "an all-reduce";
    return "a broadcast of " + std::to_string(call.bytes) + " bytes from member " +
           std::to_string(call.root);
}

}  // namespace

void refuse_unequal_reduction(NodeId self, ReduceCall here, ReduceCall other) noexcept {
    fatal("kick: node %u is in %s, while another member is in %s; all members make the same calls",
          self.value, describe(here).c_str(), describe(other).c_str());
}

template <class NodeOf>
Result<GroupLines> GroupLines::open_peers(Board& board, Offset place, const TreeNode& here,
                                          Shape shape, NodeOf&& node_of) {
    std::vector<std::uint32_t> members;
    if (shape == Shape::all_to_all) {
        for (std::uint32_t i = 0; i < here.members; ++i) members.push_back(i);
    } else {
        members.push_back(here.is_root() ? here.index : here.parent());
        for (std::uint32_t i = 0; i < here.children(); ++i) members.push_back(here.child(i));
    }
    std::vector<Peer> peers;
    peers.reserve(members.size());
    for (const std::uint32_t member : members) {
        const auto target = board.target(node_of(member), place);
        if (!target) return target.error();
        const auto bytes = board.kick<std::uint8_t>(*target);
        if (!bytes) return bytes.error();
        const auto words = board.kick<std::uint64_t>(*target);
        if (!words) return words.error();
        peers.push_back({*bytes, *words});
    }
    return GroupLines{board, place, here, shape, std::move(peers)};
}

Result<GroupLines> GroupLines::open(Board& board, Offset place, const Group& group, Shape shape) {
    if (shape == Shape::all_to_all && group.size() > tree_arity) {
        return group_error(
            group, "at most " + std::to_string(tree_arity) + " can all kick all; take the tree");
    }
    const auto index = index_in(board, group);
    if (!index) return index.error();
    return open_peers(board, place, {*index, static_cast<std::uint32_t>(group.size())}, shape,
                      [&](std::uint32_t member) { return group[member]; });
}

Result<GroupLines> GroupLines::open(Board& board, Offset place, Shape shape) {
    return open_peers(board, place, {board.self().value, board.nodes()}, shape,
                      [](std::uint32_t member) { return NodeId{member}; });
}

Result<Barrier> Barrier::open(Board& board, Offset place, const Group& group, Shape shape) {
    auto lines = GroupLines::open(board, place, group, shape);
    if (!lines) return lines.error();
    return Barrier{std::move(*lines), shape};
}

Result<Barrier> Barrier::open(Board& board, Offset place) {
    const Shape shape = shape_for(board.nodes());
    auto lines = GroupLines::open(board, place, shape);
    if (!lines) return lines.error();
    return Barrier{std::move(*lines), shape};
}

}  // namespace hiroba::net::kick
