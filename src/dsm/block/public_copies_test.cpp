// SPDX-License-Identifier: BSD-3-Clause
// Role: public copies of nodes that are parts of one process, all memory mapped.
#include "dsm/block/public_copies.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "dsm/test_parts/wire_provider.hpp"

namespace hiroba::dsm {
namespace {

using Room = PublicCopies::Room;

constexpr std::size_t line_bytes = page_bytes / lines_of_block;
constexpr BlockId block = 1;

struct alignas(64) Page {
    std::array<std::byte, page_bytes> bytes{};
    std::byte* data() { return bytes.data(); }
    std::byte& line(std::size_t at) { return bytes[at * line_bytes]; }
    bool operator==(const Page&) const = default;
};

/// Two nodes with a public copy each of two blocks.
class TwoCopies : public testing::Test {
protected:
    TwoCopies() {
        for (std::uint32_t i = 0; i < 2; ++i) {
            endpoints_.push_back(net::Endpoint::over(
                NodeId{i}, 2, std::make_unique<test::WireProvider>(wire_, NodeId{i})));
            auto data = gas::Segment::allocate(*endpoints_[i], 2 * page_bytes);
            auto records = gas::Segment::allocate(*endpoints_[i], 2 * sizeof(BlockRecord));
            copies_.emplace_back(std::move(*data), std::move(*records), NodeId{i}, page_bytes);
        }
        for (PublicCopies& copies : copies_) copies.attach(2);
    }

    /// Node `node` makes the page its next version.
    void publish(std::uint32_t node, Page& page, std::optional<PublicCopies::Met> met = {}) {
        copies_[node].publish(block, page.data(), {Timestamp{++wts_}, {}, {}}, met);
    }
    /// What `node` reads of the other. It has that then.
    Page bring(std::uint32_t node) {
        const auto page = std::make_unique<Page>();  // aligned, which g++ 12 forgets of results
        PublicCopies& mine = copies_[node];
        const auto got = mine.read(NodeId{1 - node}, block, page->data(), Room::empty);
        mine.publish(block, page->data(), got.version);
        return *page;
    }
    /// Changes a line of the node's copy without a word in its record.
    void spoil(std::uint32_t node, std::size_t line) {
        const_cast<std::byte*>(copies_[node].own(block))[line * line_bytes] ^= std::byte{0xff};
    }

    test::Wire wire_{2, 4096};
    std::vector<std::unique_ptr<net::Endpoint>> endpoints_;
    std::deque<PublicCopies> copies_;
    std::uint64_t wts_ = 0;
};

TEST_F(TwoCopies, reads_only_the_lines_that_changed_since_a_version_it_has) {
    Page page;
    page.line(3) = page.line(63) = std::byte{1};
    publish(0, page);
    EXPECT_EQ(bring(1), page);
    page.line(0) = page.line(5) = std::byte{2};
    publish(0, page);
    spoil(0, 40);  // between them, and untold
    EXPECT_EQ(bring(1), page);
    spoil(0, 40);
    // Some versions later, too.
    for (std::size_t version = 0; version < BlockRecord::versions; ++version) {
        page.line(20 + version) = std::byte{3};
        publish(0, page);
    }
    spoil(0, 41);
    EXPECT_EQ(bring(1), page);
}

TEST_F(TwoCopies, reads_all_of_it_when_its_version_is_too_old) {
    Page page;
    publish(0, page);
    EXPECT_EQ(bring(1), page);
    for (std::size_t version = 0; version <= BlockRecord::versions; ++version) {
        page.line(version) = std::byte{3};
        publish(0, page);
    }
    spoil(0, 41);
    page.line(41) ^= std::byte{0xff};
    EXPECT_EQ(bring(1), page);
}

TEST_F(TwoCopies, has_only_what_it_changed_itself_brought_back) {
    Page page;
    publish(0, page);
    bring(1);
    Page theirs = page;
    theirs.line(7) = std::byte{1};
    publish(1, theirs);
    // Node 0 merges its own line with that, and node 1 has all but that line already.
    const Timestamp met{wts_};
    Page merged = theirs;
    merged.line(9) = std::byte{2};
    publish(0, merged, PublicCopies::Met{met, Lines{1} << 9});
    spoil(0, 7);
    EXPECT_EQ(bring(1), merged);
}

TEST_F(TwoCopies, fills_a_room_that_holds_its_own_version_with_changes_alone) {
    Page page;
    publish(0, page);
    bring(1);
    page.line(2) = std::byte{1};
    publish(0, page);
    Page room;
    room.line(50) = std::byte{9};  // stays: it is said to be there
    copies_[1].read(NodeId{0}, block, room.data(), Room::own_version);
    page.line(50) = std::byte{9};
    EXPECT_EQ(room, page);
}

TEST_F(TwoCopies, tells_the_lines_of_parts) {
    Page page;
    publish(0, page);
    bring(1);
    const std::array<std::byte, 16> part{std::byte{1}, std::byte{2}};
    const std::size_t at = 11 * line_bytes - 8;  // in two lines
    std::memcpy(page.data() + at, part.data(), part.size());
    copies_[0].publish_part(block, at, part.data(), part.size(), {Timestamp{++wts_}, {}, {}});
    spoil(0, 12);
    EXPECT_EQ(bring(1), page);
}

/// What one node has discarded another may still have, under the same version.
TEST_F(TwoCopies, reads_all_of_what_was_discarded_on_one_side) {
    Page page;
    page.line(3) = std::byte{1};
    publish(0, page);
    bring(1);
    copies_[0].discard(block, 1);
    Page newer;
    newer.line(5) = std::byte{2};
    publish(0, newer);
    EXPECT_EQ(bring(1), newer);
    copies_[1].discard(block, 1);
    newer.line(6) = std::byte{3};
    publish(0, newer);
    EXPECT_EQ(bring(1), newer);
}

/// Each is always what the last one to publish had, whoever reads and how often.
TEST_F(TwoCopies, agree_after_many_versions) {
    Random random{1};
    Page newest;
    for (int i = 0; i < 5000; ++i) {
        const auto node = static_cast<std::uint32_t>(random.below(2));
        if (copies_[node].own_wts(block) < Timestamp{wts_}) {
            ASSERT_EQ(bring(node), newest) << i;
        }
        if (random.below(3) == 0) continue;
        for (std::uint64_t changes = random.below(4); changes > 0; --changes)
            newest.bytes[random.below(page_bytes)] = static_cast<std::byte>(i);
        publish(node, newest);
    }
}

/// What node 1 makes of node 0's newest copy, if that has come along with its notice.
class CarriedCopies : public TwoCopies {
protected:
    std::optional<Page> carry() {
        const auto made = copies_[0].little_changed(block, Timestamp{wts_});
        if (!made) return std::nullopt;
        copies_[1].came().keep(*made);
        return put();
    }
    std::optional<Page> put(std::uint64_t wts) {
        const auto page = std::make_unique<Page>();
        const auto got =
            copies_[1].put_together(NodeId{0}, block, Timestamp{wts}, nullptr, page->data());
        if (!got) return std::nullopt;
        EXPECT_EQ(got->version.wts, Timestamp{wts});
        return *page;
    }
    std::optional<Page> put() { return put(wts_); }
};

TEST_F(CarriedCopies, few_lines_go_onto_any_of_the_last_versions) {
    Page page;
    publish(0, page);
    bring(1);
    for (std::size_t line = 0; line < BlockRecord::versions; ++line) {
        page.line(3 * line) = std::byte{1};
        publish(0, page);
        EXPECT_EQ(carry(), page) << line;
    }
    page.line(63) = std::byte{1};
    publish(0, page);
    EXPECT_EQ(carry(), std::nullopt) << "node 1 has an older version than those";
    bring(1);
    page.line(62) = std::byte{1};
    publish(0, page);
    EXPECT_EQ(carry(), page);
}

TEST_F(CarriedCopies, only_the_version_of_the_notice_is_taken) {
    Page page;
    publish(0, page);
    bring(1);
    page.line(1) = std::byte{1};
    publish(0, page);
    EXPECT_EQ(carry(), page);
    EXPECT_EQ(put(wts_ + 1), std::nullopt);
    EXPECT_FALSE(copies_[0].little_changed(block, Timestamp{wts_ - 1}).has_value());
}

TEST_F(CarriedCopies, many_lines_do_not_come_along) {
    Page page;
    publish(0, page);
    bring(1);
    for (std::size_t line = 0; line < CarriedLines::bytes_max / line_bytes; ++line)
        page.line(line) = std::byte{1};
    publish(0, page);
    EXPECT_EQ(carry(), page);
    Page next = page;
    next.line(CarriedLines::bytes_max / line_bytes) = std::byte{1};
    publish(0, next);
    EXPECT_EQ(carry(), std::nullopt) << "onto the version before the last, which node 1 has";
}

TEST_F(CarriedCopies, nothing_goes_onto_bytes_that_were_discarded) {
    Page page;
    page.line(1) = std::byte{1};
    publish(0, page);
    bring(1);
    page.line(2) = std::byte{2};
    publish(0, page);
    copies_[1].discard(block, 1);
    EXPECT_EQ(carry(), std::nullopt);
}

}  // namespace
}  // namespace hiroba::dsm
