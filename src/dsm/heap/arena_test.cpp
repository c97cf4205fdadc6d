// SPDX-License-Identifier: BSD-3-Clause
// Role: the arena against models of it. The arena never touches what it manages, so most
// tests give it an address range that is not mapped: a touch would be a crash.
#include "dsm/heap/arena.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace hiroba::dsm {
namespace {

constexpr std::uintptr_t unmapped_base = 0x2000'0000'0000;

/// An arena with its table.
class TestArena {
public:
    explicit TestArena(AddressRange range)
        : range_(range), table_(Arena::table_words(range.bytes)), arena_(make(range)) {
        arena_->publish_in(table_.data());
    }
    Arena* operator->() { return arena_.get(); }
    std::uint64_t word(std::uintptr_t address) {
        return table_[(address - range_.address) / page_bytes];
    }
    std::uintptr_t take(std::size_t bytes, std::size_t alignment = 16) {
        const auto block = arena_->allocate(bytes, alignment);
        return block ? block->address : 0;
    }

private:
    static std::unique_ptr<Arena> make(AddressRange range) {
        auto arena = Arena::create(range);
        EXPECT_TRUE(arena) << arena.error().text;
        return std::move(*arena);
    }
    AddressRange range_;
    std::vector<std::uint64_t> table_;
    std::unique_ptr<Arena> arena_;
};

std::size_t mixed_size(std::mt19937_64& random) {
    switch (random() % 8) {
        case 0: return random() % 300'000;
        case 1: return random() % 20'000;
        default: return random() % 600;
    }
}

TEST(Arena, blocks_never_overlap_and_all_come_back_as_one_run) {
    const AddressRange range{unmapped_base, std::size_t{256} << 20};
    TestArena arena{range};
    std::map<std::uintptr_t, std::size_t> held;  // address -> bytes
    std::mt19937_64 random{7};
    for (int step = 0; step < 200'000; ++step) {
        if (random() % 5 < 3 || held.empty()) {
            const std::size_t bytes = mixed_size(random);
            const std::size_t alignment = random() % 4 ? 16 : std::size_t{16} << random() % 14;
            const std::uintptr_t at = arena.take(bytes, alignment);
            if (at == 0) continue;
            ASSERT_EQ(at % alignment, 0u);
            if (bytes >= page_bytes) {
                ASSERT_EQ(at % page_bytes, 0u);
            }
            const std::size_t usable = arena->usable_bytes(at);
            ASSERT_GE(usable, std::max<std::size_t>(bytes, 1));
            ASSERT_EQ(usable, PageWord::block_bytes(arena.word(at)));
            ASSERT_TRUE(range.contains(at) && at + usable <= range.end());
            const auto behind = held.lower_bound(at);
            ASSERT_TRUE(behind == held.end() || at + usable <= behind->first) << "step " << step;
            if (behind != held.begin()) {
                const auto before = std::prev(behind);
                ASSERT_LE(before->first + before->second, at) << "step " << step;
            }
            held[at] = usable;
        } else {
            auto victim = held.lower_bound(range.address + random() % (range.bytes / 8));
            if (victim == held.end()) victim = held.begin();
            ASSERT_TRUE(arena->deallocate(victim->first)) << "step " << step;
            held.erase(victim);
        }
    }
    for (const auto& [at, bytes] : held) ASSERT_TRUE(arena->deallocate(at));
    arena->trim();
    EXPECT_EQ(arena->free_runs(), 1u);
    EXPECT_EQ(arena->bytes_free(), range.bytes);
}

TEST(Arena, the_same_calls_give_the_same_addresses) {
    const AddressRange range{unmapped_base, std::size_t{64} << 20};
    std::vector<std::uintptr_t> first;
    for (int run = 0; run < 2; ++run) {
        TestArena arena{range};
        std::vector<std::uintptr_t> given, held;
        std::mt19937_64 random{11};
        for (int step = 0; step < 20'000; ++step) {
            if (random() % 3 || held.empty()) {
                given.push_back(arena.take(mixed_size(random)));
                if (given.back()) held.push_back(given.back());
            } else {
                std::swap(held[random() % held.size()], held.back());
                ASSERT_TRUE(arena->deallocate(held.back()));
                held.pop_back();
            }
        }
        if (run == 0) first = given;
        EXPECT_EQ(given, first);
    }
}

TEST(Arena, a_block_is_called_zeroed_only_if_its_bytes_were_never_handed_out) {
    TestArena arena{{unmapped_base, std::size_t{16} << 20}};
    std::set<std::uintptr_t> dirty;  // 16-byte pieces handed out once
    std::vector<std::uintptr_t> held;
    std::mt19937_64 random{13};
    int zeroed = 0;
    for (int step = 0; step < 30'000; ++step) {
        if (random() % 2 || held.empty()) {
            const auto block = arena->allocate(random() % 9000, 16);
            if (!block) continue;
            zeroed += block->zeroed;
            const std::size_t usable = arena->usable_bytes(block->address);
            for (std::size_t piece = 0; piece < usable; piece += 16) {
                const bool new_piece = dirty.insert(block->address + piece).second;
                ASSERT_TRUE(new_piece || !block->zeroed) << "step " << step;
            }
            held.push_back(block->address);
        } else {
            std::swap(held[random() % held.size()], held.back());
            ASSERT_TRUE(arena->deallocate(held.back()));
            held.pop_back();
        }
    }
    EXPECT_GT(zeroed, 300);
}

TEST(Arena, counts_what_is_taken_again_after_it_was_given_back) {
    constexpr std::size_t mib = std::size_t{1} << 20;
    TestArena arena{{unmapped_base, 16 * mib}};
    const auto give_back_all = [&] {
        std::array<AddressRange, 8> ranges;
        const std::size_t taken = arena->take_freed(ranges, page_bytes);
        for (std::size_t i = 0; i < taken; ++i) arena->give_back(ranges[i], true);
    };
    const auto first = arena->allocate(6 * mib, page_bytes);
    const std::size_t first_bytes = arena->usable_bytes(first->address);
    EXPECT_EQ(arena->take_taken_again(), 0u);
    ASSERT_TRUE(arena->deallocate(first->address));
    EXPECT_EQ(arena->freed_bytes(), first_bytes);
    arena->take_freed_low();
    EXPECT_EQ(arena->take_freed_low(), first_bytes);
    give_back_all();
    EXPECT_EQ(arena->freed_bytes(), 0u);
    EXPECT_EQ(arena->take_freed_low(), 0u);

    const auto less = arena->allocate(2 * mib, page_bytes);
    const std::size_t less_bytes = arena->usable_bytes(less->address);
    EXPECT_EQ(arena->take_taken_again(), less_bytes);
    ASSERT_TRUE(arena->deallocate(less->address));
    const auto same = arena->allocate(2 * mib, page_bytes);
    EXPECT_EQ(arena->take_taken_again(), 0u) << "it was in memory";
    EXPECT_EQ(arena->take_freed_low(), 0u);
    // Some 4 MiB more than ever.
    const auto more = arena->allocate(8 * mib, page_bytes);
    EXPECT_EQ(arena->take_taken_again(), first_bytes - less_bytes);
    ASSERT_TRUE(arena->deallocate(same->address) && arena->deallocate(more->address));
}

// Arrays of a power of two: their lines would meet in the same sets of the caches.
TEST(Arena, large_blocks_do_not_lie_a_power_of_two_apart) {
    constexpr std::size_t mib = std::size_t{1} << 20, set_bytes = std::size_t{1} << 16;
    TestArena arena{{unmapped_base, 1024 * mib}};
    for (const std::size_t bytes : {mib, 4 * mib, 32 * mib}) {
        std::vector<std::uintptr_t> blocks;
        for (int i = 0; i < 16; ++i) blocks.push_back(arena.take(bytes));
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            EXPECT_EQ(blocks[i] % page_bytes, 0u);
            EXPECT_LE(arena->usable_bytes(blocks[i]), bytes + bytes / 20);
            for (std::size_t j = 0; j < i; ++j)
                EXPECT_NE((blocks[i] - blocks[j]) % set_bytes, 0u) << i << ", " << j;
        }
    }
}

TEST(Arena, small_and_aligned_ones_take_no_page_more) {
    constexpr std::size_t mib = std::size_t{1} << 20;
    TestArena arena{{unmapped_base, 64 * mib}};
    EXPECT_EQ(arena->usable_bytes(arena.take(19 * page_bytes)), 19 * page_bytes);
    EXPECT_EQ(arena->usable_bytes(arena.take(20 * page_bytes)), 21 * page_bytes);
    const std::uintptr_t first = arena.take(2 * mib, 2 * mib),
                         second = arena.take(2 * mib, 2 * mib);
    EXPECT_EQ(second - first, 2 * mib);
}

TEST(Arena, fills_the_last_page_with_a_large_block) {
    constexpr std::size_t mib = std::size_t{1} << 20;
    TestArena arena{{unmapped_base, 16 * mib}};
    const std::uintptr_t all = arena.take(16 * mib);
    EXPECT_EQ(all, unmapped_base);
    EXPECT_EQ(arena->usable_bytes(all), 16 * mib);
    EXPECT_EQ(arena->bytes_free(), 0u);
    EXPECT_TRUE(arena->deallocate(all));
}

TEST(Arena, refuses_what_is_not_an_allocated_block) {
    TestArena arena{{unmapped_base, std::size_t{16} << 20}};
    const std::uintptr_t small = arena.take(48), large = arena.take(3 * page_bytes);
    EXPECT_FALSE(arena->deallocate(small + 16));
    EXPECT_FALSE(arena->deallocate(small + 48));
    EXPECT_FALSE(arena->deallocate(large + page_bytes));
    EXPECT_FALSE(arena->deallocate(large + 16));
    EXPECT_FALSE(arena->deallocate(unmapped_base + (8 << 20)));
    EXPECT_FALSE(arena->deallocate(unmapped_base - 16));
    EXPECT_FALSE(arena->deallocate(unmapped_base + (16 << 20)));
    EXPECT_TRUE(arena->deallocate(small));
    EXPECT_FALSE(arena->deallocate(small));
    EXPECT_TRUE(arena->deallocate(large));
    EXPECT_FALSE(arena->deallocate(large));
}

TEST(Arena, a_large_block_changes_its_size_in_place_while_the_pages_behind_it_are_free) {
    TestArena arena{{unmapped_base, std::size_t{1} << 20}};
    const std::uintptr_t at = arena.take(2 * page_bytes);
    EXPECT_TRUE(arena->resize(at, 10 * page_bytes - 1));
    EXPECT_EQ(arena->usable_bytes(at), 10 * page_bytes);
    const std::uintptr_t next = arena.take(page_bytes);
    EXPECT_EQ(next, at + 10 * page_bytes);
    EXPECT_FALSE(arena->resize(at, 11 * page_bytes));
    EXPECT_TRUE(arena->resize(at, 4 * page_bytes));
    EXPECT_EQ(arena.take(6 * page_bytes), at + 4 * page_bytes);
    EXPECT_FALSE(arena->resize(at, 100));
    EXPECT_FALSE(arena->resize(arena.take(100), 2 * page_bytes));
    EXPECT_FALSE(arena->resize(at + page_bytes, 2 * page_bytes));
    EXPECT_FALSE(arena->resize(next, std::size_t{1} << 20));
}

TEST(Arena, a_reserved_block_comes_back_as_fresh_as_it_was_but_for_what_was_committed) {
    const AddressRange range{unmapped_base, std::size_t{256} << 20};
    TestArena arena{range};
    const auto reserved = arena->reserve(std::size_t{128} << 20);
    ASSERT_TRUE(reserved);
    const std::uintptr_t block = reserved->address;
    EXPECT_TRUE(arena->is_reserved(block));
    EXPECT_EQ(arena->usable_bytes(block), std::size_t{128} << 20);
    arena->commit({block, page_bytes});
    arena->commit({block + 9 * page_bytes, 3 * page_bytes});
    const AddressRange first = arena->first_committed({block, std::size_t{128} << 20});
    EXPECT_EQ(first.address, block);
    EXPECT_EQ(first.bytes, page_bytes);
    const AddressRange second = arena->first_committed({first.end(), std::size_t{64} << 20});
    EXPECT_EQ(second.address, block + 9 * page_bytes);
    EXPECT_EQ(second.bytes, 3 * page_bytes);
    EXPECT_EQ(arena->first_committed({second.end(), std::size_t{64} << 20}).bytes, 0U);
    EXPECT_EQ(arena->usable_bytes(block + 10 * page_bytes), 0U);

    ASSERT_TRUE(arena->deallocate(block));
    EXPECT_EQ(arena->freed_bytes(), 4 * page_bytes);
    EXPECT_EQ(arena->free_runs(), 1U);
    EXPECT_FALSE(arena->is_reserved(block));
    EXPECT_FALSE(arena->deallocate(block));
    EXPECT_EQ(arena.word(block + 9 * page_bytes), 0U);
}

TEST(Arena, reserves_what_was_never_handed_out_or_says_what_is_to_be_cleared) {
    const AddressRange range{unmapped_base, std::size_t{64} << 20};
    TestArena arena{range};
    const std::uintptr_t once = arena.take(std::size_t{40} << 20);
    ASSERT_TRUE(arena->deallocate(once));
    const auto behind = arena->reserve(std::size_t{20} << 20);
    ASSERT_TRUE(behind);
    EXPECT_TRUE(behind->zeroed);
    EXPECT_EQ(arena->first_committed({behind->address, std::size_t{20} << 20}).bytes, 0U);
    const auto again = arena->reserve(std::size_t{30} << 20);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->address, once);
    EXPECT_FALSE(again->zeroed);
    EXPECT_EQ(arena->first_committed({once, std::size_t{30} << 20}).bytes, std::size_t{30} << 20);
    EXPECT_FALSE(arena->reserve(std::size_t{30} << 20));
    EXPECT_TRUE(arena->resize(again->address, std::size_t{30} << 20));
    EXPECT_FALSE(arena->is_reserved(again->address));
    EXPECT_TRUE(arena->deallocate(again->address));
    EXPECT_TRUE(arena->deallocate(behind->address));
    EXPECT_EQ(arena->free_runs(), 1U);
}

TEST(Arena, gives_back_the_used_parts_of_a_reserved_block_alone) {
    const AddressRange range{unmapped_base, std::size_t{256} << 20};
    TestArena arena{range};
    const auto block = arena->reserve(std::size_t{200} << 20);
    arena->commit({block->address + (std::size_t{10} << 20), std::size_t{1} << 20});
    arena->commit({block->address + (std::size_t{150} << 20), std::size_t{1} << 20});
    ASSERT_TRUE(arena->deallocate(block->address));
    std::array<AddressRange, 8> parts{};
    std::size_t bytes = 0;
    while (const std::size_t count = arena->take_freed(parts, page_bytes)) {
        for (std::size_t i = 0; i < count; ++i) {
            bytes += parts[i].bytes;
            arena->give_back(parts[i], true);
        }
    }
    EXPECT_EQ(bytes, std::size_t{2} << 20);
    EXPECT_EQ(arena->freed_bytes(), 0U);
}

TEST(Arena, says_no_when_full_and_serves_again_after_a_free) {
    TestArena arena{{unmapped_base, std::size_t{1} << 20}};
    EXPECT_EQ(arena.take(~std::size_t{0}), 0u);
    EXPECT_EQ(arena.take(~std::size_t{0} - 8, 4096), 0u);
    EXPECT_EQ(arena.take(16, std::size_t{1} << 62), 0u);
    EXPECT_EQ(arena.take((std::size_t{1} << 20) + 1), 0u);
    // The kept empty span of another class must not stand in the way of a large block.
    ASSERT_TRUE(arena->deallocate(arena.take(100)));
    const std::uintptr_t all = arena.take(std::size_t{1} << 20);
    ASSERT_NE(all, 0u);
    EXPECT_EQ(arena.take(1), 0u);
    EXPECT_EQ(arena->bytes_free(), 0u);
    ASSERT_TRUE(arena->deallocate(all));
    EXPECT_NE(arena.take(1), 0u);
}

TEST(Arena, an_arena_that_starts_off_a_span_boundary_keeps_alignment) {
    TestArena arena{{unmapped_base + 3 * page_bytes, std::size_t{8} << 20}};
    for (std::size_t alignment = 16; alignment <= (1 << 20); alignment *= 2) {
        const std::uintptr_t at = arena.take(24, alignment);
        ASSERT_NE(at, 0u);
        EXPECT_EQ(at % alignment, 0u);
        EXPECT_TRUE(arena->deallocate(at));
    }
}

/// What one thread leaves for another to free.
struct Mailbox {
    Latch latch;
    std::vector<std::uintptr_t> blocks;

    std::vector<std::uintptr_t> take() {
        const std::lock_guard guard{latch};
        return std::exchange(blocks, {});
    }
};

/// Each thread stamps its blocks and checks the stamps before it frees them or hands them to the
/// next thread: two owners of one byte would see each other's stamp.
TEST(Arena, four_threads_share_it_without_meeting_in_a_block) {
    constexpr int threads = 4, steps = 250'000;
    constexpr std::size_t bytes = std::size_t{1} << 30, boundary = 64 * 1024;
    void* const memory = mmap(nullptr, bytes + boundary, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    const AddressRange range{round_up(reinterpret_cast<std::uintptr_t>(memory), boundary), bytes};
    {
        TestArena arena{range};
        Mailbox mailboxes[threads];
        std::atomic<int> failures{0};
        const auto check_and_free = [&](std::uintptr_t at) {
            const std::size_t usable = arena->usable_bytes(at);
            std::uint64_t head, tail;
            std::memcpy(&head, reinterpret_cast<void*>(at), 8);
            std::memcpy(&tail, reinterpret_cast<void*>(at + usable - 8), 8);
            failures += head != at || tail != at || !arena->deallocate(at);
        };
        const auto work = [&](int self) {
            std::mt19937_64 random(static_cast<std::uint64_t>(self) + 17);
            std::vector<std::uintptr_t> held;
            for (int step = 0; step < steps; ++step) {
                if (held.size() < 50 || random() % 2) {
                    const std::uintptr_t at =
                        arena.take(random() % 64 ? random() % 500 : random() % 40'000);
                    if (at == 0) {
                        ++failures;
                        continue;
                    }
                    const std::size_t usable = arena->usable_bytes(at);
                    std::memcpy(reinterpret_cast<void*>(at), &at, 8);
                    std::memcpy(reinterpret_cast<void*>(at + usable - 8), &at, 8);
                    held.push_back(at);
                } else {
                    std::swap(held[random() % held.size()], held.back());
                    const std::uintptr_t at = held.back();
                    held.pop_back();
                    if (random() % 4 == 0) {
                        Mailbox& next = mailboxes[(self + 1) % threads];
                        std::lock_guard guard{next.latch};
                        next.blocks.push_back(at);
                    } else {
                        check_and_free(at);
                    }
                }
                if (step % 128 == 0) {
                    for (const std::uintptr_t at : mailboxes[self].take()) check_and_free(at);
                }
            }
            for (const std::uintptr_t at : held) check_and_free(at);
        };
        std::vector<std::thread> team;
        for (int i = 0; i < threads; ++i) team.emplace_back(work, i);
        for (std::thread& each : team) each.join();
        for (Mailbox& each : mailboxes) {
            for (const std::uintptr_t at : each.blocks) check_and_free(at);
        }
        EXPECT_EQ(failures.load(), 0);
        arena->trim();
        EXPECT_EQ(arena->free_runs(), 1u);
        EXPECT_EQ(arena->bytes_free(), range.bytes);
    }
    munmap(memory, bytes + boundary);
}

}  // namespace
}  // namespace hiroba::dsm
