// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/protocol/block.hpp"

#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace hiroba::dsm {
namespace {

using enum BlockState;
using enum BlockEvent;
using enum BlockWork;

struct Row {
    BlockState state;
    BlockEvent event;
    BlockState next;
    BlockWork work;
};

// The table of docs/protocol.md, written down a second time: a change of the code must be meant.
constexpr Row rows[] = {
    {invalid, read_fault, readonly, fetch | map_read},
    {invalid, write_fault, writable, fetch | map_write},
    {invalid, pinned_fault, pinned, fetch | map_write},
    {invalid, written, invalid, none},
    {invalid, atomic, writable, rebase | map_write},
    {invalid, freed, discarded, none},
    {invalid_dirty, read_fault, readonly_dirty, rebase | map_read | remember},
    {invalid_dirty, write_fault, writable, rebase | map_write},
    {invalid_dirty, pinned_fault, pinned, rebase | map_write},
    {invalid_dirty, written, invalid_dirty, none},
    {invalid_dirty, merged, invalid, none},
    {invalid_dirty, atomic, writable, rebase | map_write},
    {invalid_dirty, freed, discarded, none},
    {invalidating, found_equal, invalid, none},
    {invalidating, found_changed, invalid_dirty, remember},
    {readonly, read_fault, readonly, map_read},
    {readonly, write_fault, writable, map_write},
    {readonly, pinned_fault, pinned, map_write},
    {readonly, written, writable, none},
    {readonly, stale, invalidating, unmap},
    {readonly, merged, readonly, none},
    {readonly, atomic, writable, rebase | map_write},
    {readonly, freed, discarded, unmap},
    {readonly_dirty, read_fault, readonly_dirty, map_read},
    {readonly_dirty, write_fault, writable, map_write},
    {readonly_dirty, pinned_fault, pinned, map_write},
    {readonly_dirty, written, writable, none},
    {readonly_dirty, stale, invalidating, unmap},
    {readonly_dirty, merged, readonly, none},
    {readonly_dirty, atomic, writable, rebase | map_write},
    {readonly_dirty, freed, discarded, unmap},
    {writable, read_fault, writable, map_write},
    {writable, write_fault, writable, map_write},
    {writable, pinned_fault, pinned, map_write},
    {writable, written, writable, none},
    {writable, stale, invalidating, unmap},
    {writable, merged, readonly, none},
    {writable, atomic, writable, rebase | map_write},
    {writable, freed, discarded, unmap},
    {pinned, read_fault, pinned, map_write},
    {pinned, write_fault, pinned, map_write},
    {pinned, pinned_fault, pinned, map_write},
    {pinned, written, pinned, none},
    {pinned, stale, pinned, rebase},
    {pinned, merged, pinned, none},
    {pinned, atomic, pinned, rebase | map_write},
    {pinned, unpinned, writable, none},
    {discarded, read_fault, readonly, fetch | map_read},
    {discarded, write_fault, writable, fetch | map_write},
    {discarded, pinned_fault, pinned, fetch | map_write},
    {discarded, written, discarded, none},
    {discarded, atomic, writable, rebase | map_write},
    {discarded, freed, discarded, none},
    {writable, unread, exclusive, none},
    {pinned, unread, exclusive, none},
    {invalid, taken, exclusive, map_write},
    {exclusive, wanted, writable, none},
    {exclusive, handed_over, invalid, unmap},
    {exclusive, read_fault, exclusive, map_write},
    {exclusive, write_fault, exclusive, map_write},
    {exclusive, pinned_fault, exclusive, map_write},
    {exclusive, atomic, exclusive, map_write},
    {exclusive, written, exclusive, none},
    {exclusive, merged, exclusive, none},
    {writable, repeated, held, none},
    {pinned, repeated, held, none},
    {held, wanted, writable, none},
    {held, written, held, none},
    {held, read_fault, held, map_write},
    {held, write_fault, held, map_write},
    {held, pinned_fault, held, map_write},
    {held, atomic, held, map_write},
};

TEST(BlockProtocol, every_pair_has_its_row_or_stops_the_node) {
    std::map<std::pair<BlockState, BlockEvent>, Row> known;
    for (const Row& row : rows) known[{row.state, row.event}] = row;
    ASSERT_EQ(known.size(), std::size(rows)) << "a pair is listed twice";
    for (unsigned s = 0; s < block_states; ++s) {
        for (unsigned e = 0; e < block_events; ++e) {
            const auto state = static_cast<BlockState>(s);
            const auto event = static_cast<BlockEvent>(e);
            const auto row = known.find({state, event});
            if (row == known.end()) {
                EXPECT_DEATH(static_cast<void>(step(state, event)), "no row for state")
                    << "state " << s << " event " << e;
                continue;
            }
            const BlockStep taken = step(state, event);
            EXPECT_EQ(taken.next, row->second.next) << "state " << s << " event " << e;
            EXPECT_EQ(taken.work, row->second.work) << "state " << s << " event " << e;
        }
    }
}

// (invariant 8)
TEST(BlockProtocol, a_pinned_block_never_becomes_inaccessible) {
    for (const Row& row : rows) {
        if (keeps_lock(row.state) && row.event != handed_over) {
            EXPECT_FALSE(has(row.work, unmap));
        }
        if (row.state != pinned || row.event == unpinned) continue;
        EXPECT_TRUE(row.next == pinned || keeps_lock(row.next));
        EXPECT_FALSE(has(row.work, unmap));
    }
}

// (invariant 4)
TEST(BlockProtocol, unmerged_bytes_are_never_fetched_over) {
    for (const Row& row : rows) {
        if (settled(row.state)) continue;
        EXPECT_FALSE(has(row.work, fetch)) << "state " << static_cast<int>(row.state);
    }
}

TEST(BlockProtocol, whoever_holds_unmerged_bytes_unseen_by_tracking_is_remembered) {
    for (const Row& row : rows) {
        const bool enters =
            (row.next == invalid_dirty || row.next == readonly_dirty) && row.next != row.state;
        EXPECT_TRUE(!enters || has(row.work, remember)) << "from " << static_cast<int>(row.state);
    }
}

}  // namespace
}  // namespace hiroba::dsm
