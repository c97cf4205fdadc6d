// SPDX-License-Identifier: BSD-3-Clause
// Tries every pair of routes among four nodes against every order in which their messages can
// arrive, and compares with what may_follow() says.
#include "acp/route.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hiroba::acp {
namespace {

/// A command's way with what it does where.
struct Journey {
    explicit Journey(const Route& route) : nodes{route.origin.value} {
        if (route.src != route.origin) go(route.src, route.src_color);
        src = nodes.size() - 1;
        if (route.dst != route.src) go(route.dst, route.dst_color);
        changes_src = route.is_atomic;
    }
    std::size_t length() const { return nodes.size(); }
    bool changes_at(std::size_t position) const {
        return position == length() - 1 || (changes_src && position == src);
    }
    void go(NodeId to, std::uint32_t color) {
        nodes.push_back(to.value);
        colors.push_back(color);
    }
    std::vector<std::uint32_t> nodes, colors;  ///< the color of the way to each node but the first
    std::size_t src = 0;
    bool changes_src = false;
};

/// Explores every order in which the messages of two commands arrive, sent one behind the other;
/// those in one channel keep the order in which they entered it.
class Explorer {
public:
    Explorer(const Route& previous, const Route& next) : previous_(previous), next_(next) {}

    /// `next` never changes anything, nor reads where `previous` writes, before that is done.
    bool keeps_order() const { return does_no_harm(1, 0) && from(1, 1, false); }

private:
    /// @param visited  positions `previous` has been at  @param position  where `next` arrives
    bool does_no_harm(std::size_t visited, std::size_t position) const {
        if (visited == previous_.length()) return true;
        const bool reads = position == next_.src;
        const bool reads_result = reads && next_.nodes[position] == previous_.nodes.back();
        return !next_.changes_at(position) && !reads_result;
    }
    bool share_channel(std::size_t p, std::size_t q) const {
        return p < previous_.length() && q < next_.length() &&
               previous_.nodes[p - 1] == next_.nodes[q - 1] &&
               previous_.nodes[p] == next_.nodes[q] &&
               previous_.colors[p - 1] == next_.colors[q - 1];
    }
    /// `p`, `q`: positions visited; the messages to the next ones are on their way.
    bool from(std::size_t p, std::size_t q, bool next_is_ahead) const {
        if (p == previous_.length()) return true;
        const bool is_shared = share_channel(p, q);
        if (!is_shared || !next_is_ahead) {
            if (!from(p + 1, q, share_channel(p + 1, q))) return false;
        }
        if (q == next_.length() || (is_shared && !next_is_ahead)) return true;
        return does_no_harm(p, q) && from(p, q + 1, false);
    }
    Journey previous_, next_;
};

TEST(Route, FollowsOnlyWhereNoArrivalCanShowAnotherOrder) {
    int allowed = 0;
    for (unsigned code = 0; code < 1024; ++code) {
        const auto node = [code](unsigned digit) { return NodeId{code >> 2 * digit & 3}; };
        for (unsigned kinds = 0; kinds < 64; ++kinds) {
            const auto color = [kinds](unsigned digit) { return kinds >> (2 + digit) & 1; };
            const Route previous{NodeId{0}, node(0), node(1), (kinds & 1) != 0, color(0), color(1)};
            const Route next{NodeId{0}, node(2), node(3), (kinds & 2) != 0, color(2), color(3)};
            if (!may_follow(previous, next)) continue;
            ++allowed;
            EXPECT_TRUE(Explorer(previous, next).keeps_order())
                << "previous " << previous.src.value << "->" << previous.dst.value << " next "
                << next.src.value << "->" << next.dst.value << " kinds " << kinds;
        }
    }
    EXPECT_GT(allowed, 1000);
}

constexpr Route copy(unsigned dst, unsigned src) { return {NodeId{0}, NodeId{src}, NodeId{dst}}; }
constexpr Route atomic(unsigned dst, unsigned src) {
    return {NodeId{0}, NodeId{src}, NodeId{dst}, true};
}

TEST(Route, TheUsualPairsArePipelined) {
    EXPECT_TRUE(may_follow(copy(1, 0), copy(1, 0)));    // data, then a flag
    EXPECT_TRUE(may_follow(copy(1, 0), atomic(0, 1)));  // data, then a counter beside it
    EXPECT_TRUE(may_follow(copy(0, 1), copy(0, 1)));    // two gets
    EXPECT_TRUE(may_follow(copy(2, 1), copy(2, 1)));    // between two others
    EXPECT_TRUE(may_follow(atomic(1, 1), atomic(1, 1)));
}

TEST(Route, WhereWaysPartTheAnswerIsWaitedFor) {
    EXPECT_FALSE(may_follow(copy(0, 1), copy(1, 0)));      // sends what is being fetched
    EXPECT_FALSE(may_follow(copy(2, 1), copy(2, 0)));      // one place, two ways
    EXPECT_FALSE(may_follow(copy(2, 0), copy(1, 0)));      // two places
    EXPECT_FALSE(may_follow(atomic(0, 1), atomic(0, 1)));  // the first old value is on its way
    EXPECT_FALSE(may_follow(copy(2, 1), atomic(2, 1)));
}

TEST(Route, OfAnotherColorTheAnswerIsWaitedFor) {
    const auto with = [](Route route, std::uint32_t src_color, std::uint32_t dst_color) {
        route.src_color = src_color;
        route.dst_color = dst_color;
        return route;
    };
    EXPECT_FALSE(may_follow(with(copy(1, 0), 0, 0), with(copy(1, 0), 0, 1)));  // data, then a flag
    EXPECT_TRUE(may_follow(with(copy(1, 0), 0, 1), with(copy(1, 0), 0, 1)));
    // Nothing travels by the color of one's own memory.
    EXPECT_TRUE(may_follow(with(copy(1, 0), 0, 1), with(copy(1, 0), 2, 1)));
    EXPECT_FALSE(may_follow(with(copy(2, 1), 1, 0), with(copy(2, 1), 0, 0)));
}

}  // namespace
}  // namespace hiroba::acp
