// SPDX-License-Identifier: BSD-3-Clause
#include "net/kick/group.hpp"

namespace hiroba::net::kick {

Group everyone(const Endpoint& endpoint) {
    Group group;
    for (std::uint32_t rank = 0; rank < endpoint.nodes(); ++rank) group.push_back(NodeId{rank});
    return group;
}

Result<GroupLines> GroupLines::open(Board& board, Place place, const Group& group) {
    std::uint32_t index = ~0u;
    std::vector<Peer> peers;
    for (std::uint32_t i = 0; i < group.size(); ++i) {
        for (std::uint32_t j = 0; j < i; ++j) {
            if (group[j] == group[i]) {
                return Error{ErrorKind::refused,
                             "kick group: node " + std::to_string(group[i].value) + " is member " +
                                 std::to_string(j) + " and " + std::to_string(i)};
            }
        }
        if (group[i] == board.self()) index = i;
        const auto target = board.target(group[i], place);
        if (!target) return target.error();
        const auto bytes = board.kick<std::uint8_t>(*target);
        if (!bytes) return bytes.error();
        const auto words = board.kick<std::uint64_t>(*target);
        if (!words) return words.error();
        peers.push_back({*bytes, *words});
    }
    if (index == ~0u) {
        return Error{ErrorKind::refused, "kick group of " + std::to_string(group.size()) +
                                             " nodes: node " + std::to_string(board.self().value) +
                                             " is no member"};
    }
    return GroupLines{board, place, index, std::move(peers)};
}

Result<Barrier> Barrier::open(Board& board, Place place, const Group& group, Shape shape) {
    if (shape == Shape::all_to_all && group.size() > tree_arity) {
        return Error{ErrorKind::refused, "kick barrier: all of " + std::to_string(group.size()) +
                                             " members to all, " + std::to_string(tree_arity) +
                                             " at most; take the tree"};
    }
    auto lines = GroupLines::open(board, place, group);
    if (!lines) return lines.error();
    return Barrier{std::move(*lines), shape};
}

}  // namespace hiroba::net::kick
