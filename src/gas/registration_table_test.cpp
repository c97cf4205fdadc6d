// SPDX-License-Identifier: BSD-3-Clause
#include "gas/registration_table.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "hiroba/gas_cache.hpp"

namespace hiroba::gas {
namespace {

struct Table {
    explicit Table(std::uint32_t nodes = 4) : layout(nodes), table(layout, NodeId{1}, 2) {}
    std::uint64_t place(std::uint64_t key) const { return layout.parts(key).place; }
    Registration* pin(std::uint64_t address, std::uint64_t bytes) {
        return table.pin(place(address), layout.parts(address).color, bytes, &at);
    }
    void remove(std::uint64_t key) {
        Registration* const removed = table.remove(key);
        ASSERT_NE(removed, nullptr);
        if (removed->count == 0) table.forget(removed);
    }
    AddressLayout layout;
    RegistrationTable table;
    std::byte* at = nullptr;
};

TEST(RegistrationTable, FindsWhatLiesInsideAndNothingBeside) {
    Table t;
    std::vector<std::byte> memory(100);
    for (std::size_t skew = 0; skew < 9; ++skew) {
        std::byte* const first = memory.data() + skew;
        const std::uint64_t key = *t.table.add(first, 64, 0);
        EXPECT_EQ(key % 8, reinterpret_cast<std::uintptr_t>(first) % 8);
        EXPECT_EQ(t.layout.parts(key).node.value, 1u);
        for (const std::uint64_t offset : {0, 1, 63}) {
            Registration* const found = t.pin(key + offset, 64 - offset);
            ASSERT_NE(found, nullptr);
            EXPECT_EQ(t.at, first + offset);
            found->unpin();
        }
        EXPECT_EQ(t.pin(key, 65), nullptr);
        EXPECT_EQ(t.pin(key + 65, 0), nullptr);
        EXPECT_EQ(t.pin(key - 1, 1), nullptr);
        EXPECT_EQ(t.pin(key + 60, ~std::uint64_t{0} - 8), nullptr);
        t.remove(key);
        EXPECT_EQ(t.pin(key, 1), nullptr);
    }
}

TEST(RegistrationTable, CountsTheSameMemoryAndOnlyIt) {
    Table t;
    std::vector<std::byte> memory(64);
    const std::uint64_t key = *t.table.add(memory.data(), 64, 0);
    EXPECT_EQ(*t.table.add(memory.data(), 64, 0), key);
    EXPECT_NE(*t.table.add(memory.data(), 63, 0), key);
    EXPECT_NE(*t.table.add(memory.data(), 64, 1), key);
    EXPECT_EQ(t.table.remove(key)->count, 1u);
    EXPECT_EQ(t.table.address_of(key, memory.data() + 63), key + 63);
    EXPECT_EQ(t.table.address_of(key, memory.data() + 64), 0u);
    t.remove(key);
    EXPECT_EQ(t.table.remove(key), nullptr);
    EXPECT_EQ(t.table.address_of(key, memory.data()), 0u);
}

TEST(RegistrationTable, MemoryThatAdjoinsOrOverlapsHasAKeyOfItsOwn) {
    Table t;
    std::vector<std::byte> memory(64);
    const std::uint64_t left = *t.table.add(memory.data(), 32, 0);
    const std::uint64_t right = *t.table.add(memory.data() + 32, 32, 0);
    const std::uint64_t both = *t.table.add(memory.data() + 16, 32, 0);
    EXPECT_NE(left, right);
    EXPECT_NE(left + 32, right) << "one key's addresses would reach into the other's memory";
    // A registration's memory is named by its own key alone, up to its own end.
    EXPECT_EQ(t.pin(left + 16, 17), nullptr);
    EXPECT_EQ(t.pin(left + 32, 1), nullptr);
    EXPECT_EQ(t.pin(right - 1, 2), nullptr);
    EXPECT_EQ(t.table.address_of(left, memory.data() + 32), 0u);
    EXPECT_EQ(t.table.address_of(right, memory.data() + 31), 0u);
    Registration* const across = t.pin(both, 32);
    ASSERT_NE(across, nullptr);
    EXPECT_EQ(t.at, memory.data() + 16);
    across->unpin();
    // Each registration goes alone: its neighbours stay within reach.
    t.remove(left);
    EXPECT_EQ(t.pin(left + 16, 16), nullptr);
    for (const std::uint64_t key : {right, both}) {
        Registration* const found = t.pin(key, 32);
        ASSERT_NE(found, nullptr);
        found->unpin();
    }
    t.remove(both);
    EXPECT_EQ(t.pin(both + 16, 1), nullptr);
    EXPECT_NE(t.pin(right, 32), nullptr);
}

TEST(RegistrationTable, RemovedMemoryIsOutOfReachWhileItIsPinned) {
    Table t;
    std::vector<std::byte> memory(8);
    const std::uint64_t key = *t.table.add(memory.data(), 8, 0);
    Registration* const pinned = t.pin(key, 8);
    Registration* const removed = t.table.remove(key);
    EXPECT_EQ(removed, pinned);
    EXPECT_FALSE(removed->idle());
    EXPECT_EQ(t.pin(key, 8), nullptr);
    pinned->unpin();
    EXPECT_TRUE(removed->idle());
}

TEST(RegistrationTable, GivesNumbersOutAgainLastAndRefusesWhenNoneIsLeft) {
    Table t(AddressLayout::nodes_max);  // 128 segment numbers, 2 of them taken
    std::vector<std::byte> memory(200);
    std::set<std::uint64_t> keys;
    for (int round = 0; round < 126; ++round) {
        const std::uint64_t key = *t.table.add(memory.data(), 1, 0);
        EXPECT_TRUE(keys.insert(t.place(key) >> AddressLayout::offset_bits).second);
        t.remove(key);
    }
    for (int i = 0; i < 126; ++i) ASSERT_TRUE(t.table.add(memory.data() + i, 1, 0)) << i;
    EXPECT_FALSE(t.table.add(memory.data() + 126, 1, 0));
}

TEST(RegistrationTable, MemoryBeyondAnOffsetTakesNumbersInARow) {
    Table t;
    auto* const first = reinterpret_cast<std::byte*>(std::uintptr_t{0x10000});
    const std::uint64_t bytes = (std::uint64_t{5} << AddressLayout::offset_bits) - 3;
    const std::uint64_t key = *t.table.add(first, bytes, 0);
    Registration* const found = t.pin(key + bytes - 1, 1);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(t.at, first + bytes - 1);
    EXPECT_EQ(t.pin(key + bytes - 1, 2), nullptr);
    const std::uint64_t behind = *t.table.add(first, 1, 0);
    EXPECT_EQ(AddressLayout::segment_of(t.place(behind)) - AddressLayout::segment_of(t.place(key)),
              5u);
}

TEST(RegistrationTable, RefusesNothingAndWhatWrapsAround) {
    Table t;
    std::byte byte{};
    EXPECT_FALSE(t.table.add(&byte, 0, 0));
    EXPECT_FALSE(t.table.add(nullptr, 1, 0));
    EXPECT_FALSE(t.table.add(&byte, ~std::uint64_t{0}, 0));
    EXPECT_EQ(t.table.remove(0), nullptr);
}

/// A registration that the thread used lately is reached without a pin, until any is unregistered.
TEST(RegistrationTable, IsRememberedByTheThreadThatUsedItUntilAnythingGoes) {
    Table t;
    std::vector<std::byte> memory(100), other(100);
    const std::uint64_t key = *t.table.add(memory.data(), 64, 0);
    const std::uint64_t second = *t.table.add(other.data(), 64, 0);
    std::atomic<std::byte*> announcement{nullptr};
    const auto announce = [&](std::uint64_t address, std::uint64_t bytes, std::uint32_t color) {
        return t.table.announce(t.place(address), color, bytes, announcement);
    };
    EXPECT_EQ(announce(key, 8, 0), nullptr);
    t.pin(key, 1)->unpin();
    if (announce(key, 8, 0) == nullptr) GTEST_SKIP() << "membarrier(2) is refused here";
    EXPECT_EQ(announcement.load(), memory.data());
    EXPECT_EQ(announce(key + 60, 4, 0), memory.data() + 60);
    EXPECT_EQ(announce(key + 60, 5, 0), nullptr);
    EXPECT_EQ(announce(key - 1, 1, 0), nullptr);
    EXPECT_EQ(announce(key, 8, 1), nullptr);
    Table elsewhere;  // another table, as after a reset: nothing of the first is its own
    EXPECT_EQ(elsewhere.table.announce(t.place(key), 0, 8, announcement), nullptr);

    t.pin(key, 1)->unpin();
    t.pin(second, 1)->unpin();
    ASSERT_NE(announce(key, 8, 0), nullptr);
    announcement.store(nullptr);
    t.remove(second);
    EXPECT_EQ(announce(key, 8, 0), nullptr);
    EXPECT_EQ(announcement.load(), nullptr);
    t.pin(key, 1)->unpin();
    EXPECT_EQ(announce(key, 8, 0), memory.data());
}

/// unregister() waits for the accesses that are announced: none touches the memory afterwards.
TEST(RegistrationTable, IsNotTouchedOnceUnregistered) {
    Table t;
    alignas(8) static std::byte memory[64];
    std::atomic<bool> over{false};
    std::atomic<std::uint64_t> generation{0}, accesses{0};  // of the registration; odd: it is there
    std::atomic<std::uint64_t> address{0};
    std::thread user{[&] {
        std::byte* at = nullptr;
        while (!over) {
            const std::uint64_t key = address;
            if (key == 0) continue;
            Registration* const pinned = t.table.pin(t.place(key), 0, 8, &at);
            if (pinned == nullptr) continue;
            pinned->unpin();
            for (int i = 0; i < 50; ++i) {
                std::byte* const found = t.table.announce(t.place(key), 0, 8, this_slot->reading);
                if (found == nullptr) break;
                const std::uint64_t begun = generation;
                EXPECT_EQ(begun % 2, 1u);
                accesses.fetch_add(1);
                EXPECT_EQ(generation.load(), begun);
                this_slot->reading.store(nullptr, std::memory_order_release);
            }
        }
    }};
    const auto until_used = [&] {
        for (const std::uint64_t before = accesses; accesses == before;) std::this_thread::yield();
    };
    const auto probe = *t.table.add(memory, 64, 0);
    t.pin(probe, 8)->unpin();
    const bool is_possible = this_slot != nullptr;
    t.remove(probe);
    for (int round = 0; is_possible && round < 2000; ++round) {
        const std::uint64_t key = *t.table.add(memory, 64, 0);
        generation.fetch_add(1);
        address = key;
        if (round % 16 == 0) until_used();
        Registration* const removed = t.table.remove(key);
        while (!removed->idle() || !RegistrationTable::is_unannounced(*removed)) continue;
        generation.fetch_add(1);
        address = 0;
        t.table.forget(removed);
    }
    over = true;
    user.join();
}

}  // namespace
}  // namespace hiroba::gas
