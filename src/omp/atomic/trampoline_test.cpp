// SPDX-License-Identifier: BSD-3-Clause
// Role: what trampolines compare with must cover all global memory, and each hook call must come
// in the order that the memory order asks for.
#include "omp/atomic/trampoline.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <random>
#include <string>

#include "base/thread_context.hpp"
#include "omp/atomic/slow_path.hpp"

extern "C" hiroba::omp::Entered hiroba_atomic_enter(void* address, hiroba::omp::SiteRecord* site,
                                                    hiroba::omp::HookFrame* frame,
                                                    const std::byte* vectors) noexcept;
extern "C" void hiroba_atomic_leave(void* address, hiroba::omp::SiteRecord* site) noexcept;

namespace hiroba::omp {
namespace {

/// At a site that ends no function: no code looks at the registers.
template <class Word>
Entered enter(Word& word, SiteRecord& site) {
    return hiroba_atomic_enter(&word, &site, nullptr, nullptr);
}

bool covered(std::span<const dsm::AddressRange> hulls, dsm::AddressRange range) {
    for (const dsm::AddressRange& hull : hulls) {
        if (hull.contains(range.address) && range.end() <= hull.end()) return true;
    }
    return false;
}

TEST(Hulls, CoverEveryRangeAndNeverJoinTheFirst) {
    std::mt19937 random{11};
    for (int round = 0; round < 200; ++round) {
        std::vector<dsm::AddressRange> global{{0x1000'0000'0000, 0x1000'0000}};
        const std::size_t images = random() % 12;
        for (std::size_t i = 0; i < images; ++i) {
            global.push_back({0x40'0000 + (random() % 1000) * 0x100'0000ul + i * 0x1'0000,
                              (random() % 8 + 1) * 0x1000});
        }
        const auto hulls = hulls_of(global);
        ASSERT_LE(hulls.size(), hulls_max);
        EXPECT_EQ(hulls[0].address, global[0].address);
        EXPECT_EQ(hulls[0].bytes, global[0].bytes);
        for (const dsm::AddressRange& range : global) EXPECT_TRUE(covered(hulls, range));
    }
}

TEST(Hulls, JoinAcrossTheSmallestGap) {
    const std::vector<dsm::AddressRange> global{{0x1000'0000'0000, 0x1000},
                                                {0x40'0000, 0x1000},
                                                {0x40'3000, 0x1000},
                                                {0x7fff'0000'0000, 0x1000},
                                                {0x7fff'0100'0000, 0x1000}};
    const auto hulls = hulls_of(global);
    ASSERT_EQ(hulls.size(), 4u);
    EXPECT_EQ(hulls[1].address, 0x40'0000u);
    EXPECT_EQ(hulls[1].bytes, 0x4000u);
    EXPECT_EQ(hulls[2].bytes, 0x1000u);
}

/// Reserves what is free in [from, to).
void fill(std::uintptr_t from, std::uintptr_t to) {
    std::vector<dsm::AddressRange> gaps;
    std::ifstream maps{"/proc/self/maps"};
    for (std::string line; std::getline(maps, line);) {
        unsigned long begin = 0, end = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2 || end <= from) continue;
        if (begin > from) gaps.push_back({from, std::min(begin, to) - from});
        from = std::max<std::uintptr_t>(from, end);
        if (from >= to) break;
    }
    for (const dsm::AddressRange& gap : gaps)
        mmap(reinterpret_cast<void*>(gap.address), gap.bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}

TEST(TrampolineZone, LiesAboveCodeThatHasNoRoomBelowAndTheAddressSpaceEndingWithinItsReach) {
    constexpr std::uintptr_t end = 0x7fff'ffff'f000, gib = std::uintptr_t{1} << 30;
    const dsm::AddressRange code{end - gib, page_bytes};
    const pid_t child = fork();
    if (child == 0) {
        fill(code.end() - 2 * gib, code.end());
        const auto zone = TrampolineZone::create(code, 1, {}, VectorUse::xmm);
        if (!zone) std::fprintf(stderr, "%s\n", zone.error().text.c_str());
        _exit(zone ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

struct Calls {
    std::string order;
    bool take = true;
};

AtomicHooks recording_hooks(Calls& calls, bool sequential) {
    AtomicHooks hooks;
    hooks.context = &calls;
    hooks.enter = [](void* context, void*, std::size_t) noexcept {
        static_cast<Calls*>(context)->order += 'e';
        return static_cast<Calls*>(context)->take;
    };
    hooks.leave = [](void* context, void*, std::size_t) noexcept {
        static_cast<Calls*>(context)->order += 'l';
    };
    hooks.flush = [](void* context) noexcept { static_cast<Calls*>(context)->order += 'f'; };
    hooks.sequential = sequential;
    return hooks;
}

std::string order_of(bool sequential, bool global) {
    alignas(64) static std::uint64_t word = 0;
    Calls calls;
    RewrittenObject object;
    object.hooks = recording_hooks(calls, sequential);
    if (global) object.hooks.global = {{reinterpret_cast<std::uintptr_t>(&word), sizeof word}};
    calls.take = global;
    SiteRecord site{&object, 0, 8, SiteKind::atomic, {}};
    if (enter(word, site) == Entered::yes) hiroba_atomic_leave(&word, &site);
    return calls.order;
}

TEST(SlowPath, ARelaxedAtomicDoesNotFlush) { EXPECT_EQ(order_of(false, true), "el"); }

TEST(SlowPath, ASequentialAtomicFlushesBeforeAndAfter) { EXPECT_EQ(order_of(true, true), "felf"); }

TEST(SlowPath, TheThreadIsInTheRuntimeFromEnterToLeave) {
    std::uint64_t word = 0;
    Calls calls;
    RewrittenObject object;
    object.hooks = recording_hooks(calls, false);
    SiteRecord site{&object, 0, 8, SiteKind::atomic, {}};
    ASSERT_EQ(enter(word, site), Entered::yes);
    EXPECT_TRUE(this_thread().in_runtime);
    hiroba_atomic_leave(&word, &site);
    EXPECT_FALSE(this_thread().in_runtime);

    calls.take = false;
    ASSERT_EQ(enter(word, site), Entered::no);
    EXPECT_FALSE(this_thread().in_runtime);
}

TEST(SlowPath, AnAtomicOnPrivateMemoryNeverFlushes) { EXPECT_EQ(order_of(true, false), "e"); }

}  // namespace
}  // namespace hiroba::omp
