// SPDX-License-Identifier: BSD-3-Clause
// Role: see set_up.hpp.
#include "abi/net/set_up.hpp"

#include <algorithm>
#include <span>

namespace hiroba::net {
namespace {

struct Checksum {
    std::uint64_t calls = 0, ends = 0;  ///< `ends`: sending less receiving, 0 over all nodes
    std::uint64_t count = 0;
};

// FNV-1a.
constexpr std::uint64_t hash_seed = 0xcbf29ce484222325;
std::uint64_t hash(std::uint64_t into, Bytes bytes) noexcept {
    constexpr std::uint64_t prime = 0x100000001b3;
    for (const std::byte each : bytes) into = (into ^ static_cast<std::uint64_t>(each)) * prime;
    return into;
}
std::uint64_t hash_of_ends(std::size_t number, std::uint32_t from, std::uint32_t to) noexcept {
    const std::uint64_t words[] = {number, from, to};
    // Mixed as by SplitMix64 (Steele et al.): sums of FNV's own values cancel out.
    std::uint64_t mixed = hash(hash_seed, std::as_bytes(std::span(words)));
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
}

std::string name_of(std::uint32_t node) { return "node " + std::to_string(node); }

}  // namespace

void SetUp::note(const std::string& call, std::optional<NodeId> to, std::optional<NodeId> from) {
    Noted noted;
    std::copy_n(call.data(), std::min(call.size(), noted.call.size() - 1), noted.call.data());
    if (to) noted.to = to->value;
    if (from) noted.from = from->value;
    noted_.push_back(noted);
}

Result<void> SetUp::compare(NodeId self, std::uint32_t nodes, Collectives& collectives) const {
    Checksum mine{hash_seed, 0, noted_.size()};
    for (std::size_t i = 0; i < noted_.size(); ++i) {
        const Noted& each = noted_[i];
        mine.calls = hash(mine.calls, std::as_bytes(std::span(each.call)));
        if (each.to != none) mine.ends += hash_of_ends(i, self.value, each.to);
        if (each.from != none) mine.ends -= hash_of_ends(i, each.from, self.value);
    }
    std::vector<Checksum> sums(nodes);
    collectives.all_gather(std::as_bytes(std::span(&mine, 1)),
                           std::as_writable_bytes(std::span(sums)));
    std::uint64_t ends = 0, count = 0;
    bool equal = true;
    for (const Checksum& each : sums) {
        ends += each.ends;
        count = std::max(count, each.count);
        equal = equal && each.calls == sums[0].calls;
    }
    if (equal && ends == 0) return {};
    for (std::size_t i = 0; i < count; ++i) {
        const Noted call = i < noted_.size() ? noted_[i] : Noted{};
        std::vector<Noted> all(nodes);
        collectives.all_gather(std::as_bytes(std::span(&call, 1)),
                               std::as_writable_bytes(std::span(all)));
        if (auto good = look_at(i + 1, self, all); !good) return good;
    }
    return Error{ErrorKind::usage, "kick: the nodes' boards are not set up alike"};
}

Result<void> SetUp::look_at(std::size_t number, NodeId self, const std::vector<Noted>& all) {
    const std::string which = "kick: call number " + std::to_string(number) + " of the board";
    const auto text = [](const Noted& noted) {
        return noted.call[0] == 0 ? std::string("none") : std::string(noted.call.data());
    };
    const auto& wanted = all[self.value].call;
    const auto other = std::find_if(all.begin(), all.end(),
                                    [&](const Noted& each) { return each.call != wanted; });
    if (other != all.end()) {
        return Error{ErrorKind::usage, which + ": node " + std::to_string(other - all.begin()) +
                                           " makes " + text(*other) + ", here " +
                                           text(all[self.value]) +
                                           ". Make the same calls in the same order on every node"};
    }
    for (std::uint32_t node = 0; node < all.size(); ++node) {
        const auto wrong = [&](std::uint32_t sender, std::uint32_t receiver) {
            return Error{ErrorKind::usage,
                         which + ", " + text(all[node]) + ": " + name_of(sender) + " sends to " +
                             (all[sender].to == none ? "nobody" : name_of(all[sender].to)) +
                             ", but " + name_of(receiver) + " receives from " +
                             (all[receiver].from == none ? "nobody" : name_of(all[receiver].from))};
        };
        const std::uint32_t to = all[node].to, from = all[node].from;
        if (to != none && all[to].from != node) return wrong(node, to);
        if (from != none && all[from].to != node) return wrong(from, node);
    }
    return {};
}

}  // namespace hiroba::net
