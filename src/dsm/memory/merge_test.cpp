// SPDX-License-Identifier: BSD-3-Clause
// Role: every version of the merge kernels against a reference that works byte by byte.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "dsm/memory/merge_kernels.hpp"

namespace hiroba::dsm {
namespace {

constexpr std::size_t block = 4096;
struct alignas(64) Block {
    std::array<std::byte, block> bytes{};
    std::byte* data() { return bytes.data(); }
    const std::byte* data() const { return bytes.data(); }
    bool operator==(const Block&) const = default;
};

struct Reference {
    Block merged, stored;
    MergeOutcome outcome;
};

Reference reference(const Block& ours, const Block& twin, const Block& home) {
    Reference result;
    result.stored = ours;
    for (std::uint32_t i = 0; i < block; ++i) {
        const std::byte d = ours.bytes[i], t = twin.bytes[i], h = home.bytes[i];
        const bool here = d != t, there = h != t;
        result.merged.bytes[i] = here ? d : h;
        if (there && !here) result.stored.bytes[i] = h;
        result.outcome.changed |= here;
        result.outcome.foreign |= there;
        if (!here || !there) continue;
        if (d == h) {
            if (result.outcome.same_value_bytes++ == 0) result.outcome.same_value_at = i;
        } else {
            if (result.outcome.raced_bytes++ == 0) result.outcome.raced_at = i;
        }
    }
    return result;
}

Lines lines_in_which_differ(const Block& a, const Block& b) {
    Lines lines = 0;
    for (std::size_t i = 0; i < block; ++i) {
        if (a.bytes[i] != b.bytes[i]) lines |= Lines{1} << i / (block / lines_of_block);
    }
    return lines;
}

class EachVersion : public testing::TestWithParam<const MergeKernels*> {
protected:
    void SetUp() override {
        __builtin_cpu_init();
        if (GetParam() == &avx2_kernels && !__builtin_cpu_supports("avx2"))
            GTEST_SKIP() << "no AVX2";
    }

    void expect_as_reference(const Block& ours, const Block& twin, const Block& home) {
        const Reference expected = reference(ours, twin, home);
        Block merged;
        const MergeOutcome outcome =
            GetParam()->merge(ours.data(), twin.data(), home.data(), merged.data(), block);
        ASSERT_EQ(merged, expected.merged);
        ASSERT_EQ(outcome.changed, expected.outcome.changed);
        ASSERT_EQ(outcome.changed_lines, lines_in_which_differ(ours, twin));
        ASSERT_EQ(outcome.foreign, expected.outcome.foreign);
        ASSERT_EQ(outcome.raced_bytes, expected.outcome.raced_bytes);
        ASSERT_EQ(outcome.raced_at, expected.outcome.raced_at);
        ASSERT_EQ(outcome.same_value_bytes, expected.outcome.same_value_bytes);
        ASSERT_EQ(outcome.same_value_at, expected.outcome.same_value_at);

        Block in_place = home;
        GetParam()->merge(ours.data(), twin.data(), in_place.data(), in_place.data(), block);
        ASSERT_EQ(in_place, expected.merged) << "merged into home";

        Block live = ours;
        GetParam()->store_foreign(live.data(), ours.data(), twin.data(), home.data(), block);
        ASSERT_EQ(live, expected.stored);

        Block copy = twin;
        std::array<std::uint64_t, block / 64> noted{}, compared{};
        ASSERT_EQ(GetParam()->copy_changes(copy.data(), ours.data(), block, noted.data()),
                  lines_in_which_differ(ours, twin));
        ASSERT_EQ(copy, ours);
        GetParam()->note_changes(ours.data(), twin.data(), block, compared.data());
        for (std::uint32_t i = 0; i < block; ++i) {
            const bool changed = ours.bytes[i] != twin.bytes[i];
            ASSERT_EQ(noted[i / 64] >> i % 64 & 1, std::uint64_t{changed}) << i;
            ASSERT_EQ(compared[i / 64] >> i % 64 & 1, std::uint64_t{changed}) << i;
        }
        Block unnoted = twin;
        GetParam()->copy_changes(unnoted.data(), ours.data(), block, nullptr);
        ASSERT_EQ(unnoted, ours);

        ASSERT_EQ(GetParam()->differs(ours.data(), twin.data(), block), ours != twin);
    }
};
INSTANTIATE_TEST_SUITE_P(Versions, EachVersion, testing::Values(&portable_kernels, &avx2_kernels),
                         [](const auto& info) { return std::string(info.param->name); });

/// What happened to one byte: nothing, changed here, there, by both alike, by both differently.
void apply(int kind, std::size_t at, Block& ours, Block& home) {
    if (kind == 1 || kind == 3 || kind == 4) ours.bytes[at] ^= std::byte{0x80};
    if (kind == 2 || kind == 3) home.bytes[at] ^= std::byte{0x80};
    if (kind == 4) home.bytes[at] ^= std::byte{0x01};
}

TEST_P(EachVersion, every_combination_of_kinds_in_neighbouring_bytes_merges_as_the_reference) {
    std::size_t combination = 0;
    for (int a = 0; a < 5; ++a)
        for (int b = 0; b < 5; ++b)
            for (int c = 0; c < 5; ++c) {
                Block ours, twin, home;
                ours.bytes.fill(std::byte{0x7f});
                twin = home = ours;
                const std::size_t at = combination++ * 31 % (block - 3);  // all alignments
                apply(a, at, ours, home);
                apply(b, at + 1, ours, home);
                apply(c, at + 2, ours, home);
                expect_as_reference(ours, twin, home);
            }
}

TEST_P(EachVersion, one_changed_byte_is_found_at_every_offset_and_for_every_bit) {
    for (std::size_t at = 0; at < block; ++at) {
        Block ours, twin, home;
        ours.bytes[at] = static_cast<std::byte>(1u << at % 8);
        expect_as_reference(ours, twin, home);
        expect_as_reference(twin, twin, ours);
    }
}

TEST_P(EachVersion, random_blocks_merge_as_the_reference) {
    const unsigned seed = testing::UnitTest::GetInstance()->random_seed();
    SCOPED_TRACE("--gtest_random_seed=" + std::to_string(seed));
    std::mt19937 random{seed};
    for (int round = 0; round < 2000; ++round) {
        Block ours, twin, home;
        const unsigned density = 1 + random() % 64;
        for (std::size_t i = 0; i < block; ++i) {
            twin.bytes[i] = ours.bytes[i] = home.bytes[i] = static_cast<std::byte>(random());
            if (random() % density == 0) ours.bytes[i] = static_cast<std::byte>(random() % 4);
            if (random() % density == 0) home.bytes[i] = static_cast<std::byte>(random() % 4);
        }
        expect_as_reference(ours, twin, home);
    }
}

TEST_P(EachVersion, bytes_written_next_to_foreign_ones_at_the_same_time_are_never_lost) {
    Block live, twin, home;
    const Block seen;  // the other thread's writes come after the snapshot
    for (std::size_t i = 0; i < block; i += 1 + i % 5) home.bytes[i] = std::byte{0xee};
    std::atomic<bool> stop{false};
    std::atomic<int> lost{0};
    std::thread program{[&] {
        volatile std::byte* const bytes = live.data();
        for (unsigned value = 1; !stop; ++value) {
            for (std::size_t i = 0; i < block; ++i)
                if (home.bytes[i] == std::byte{}) bytes[i] = static_cast<std::byte>(value);
            for (std::size_t i = 0; i < block; ++i)
                if (home.bytes[i] == std::byte{} && bytes[i] != static_cast<std::byte>(value))
                    ++lost;
        }
    }};
    for (int round = 0; round < 20000; ++round)
        GetParam()->store_foreign(live.data(), seen.data(), twin.data(), home.data(), block);
    stop = true;
    program.join();

    EXPECT_EQ(lost, 0);
    for (std::size_t i = 0; i < block; ++i)
        EXPECT_TRUE(home.bytes[i] == std::byte{} || live.bytes[i] == std::byte{0xee}) << i;
}

TEST(merge, uses_the_version_this_machine_runs) {
    __builtin_cpu_init();
    EXPECT_EQ(&best_kernels(), __builtin_cpu_supports("avx2") ? &avx2_kernels : &portable_kernels);
}

TEST(Merge, raced_runs_are_found_one_by_one) {
    constexpr std::uint32_t bytes = 64;
    alignas(64) std::array<std::byte, bytes> ours{}, twin{}, home{};
    const auto both = [&](std::uint32_t at, int here, int there) {
        ours[at] = std::byte(here);
        home[at] = std::byte(there);
    };
    both(0, 1, 2);
    both(3, 1, 1);  // of the same word: one run, and it differs
    both(12, 5, 5);
    ours[20] = std::byte{1};
    home[28] = std::byte{1};
    both(63, 7, 8);
    const auto find = [&](std::uint32_t from) {
        return next_race(ours.data(), twin.data(), home.data(), from, bytes);
    };
    const RacedRun first = find(0), second = find(4), third = find(13);
    EXPECT_EQ(first.at, 0u);
    EXPECT_EQ(first.bytes, 4u);
    EXPECT_FALSE(first.same_value);
    EXPECT_EQ(second.at, 12u);
    EXPECT_EQ(second.bytes, 1u);
    EXPECT_TRUE(second.same_value);
    EXPECT_EQ(third.at, 63u);
    EXPECT_EQ(third.bytes, 1u);
    EXPECT_EQ(find(64).bytes, 0u);
}

}  // namespace
}  // namespace hiroba::dsm
