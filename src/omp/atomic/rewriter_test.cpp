// SPDX-License-Identifier: BSD-3-Clause
// Role: a rewritten instruction must be indistinguishable from the one it replaces: registers,
// flags, red zone, memory and vectors are compared with an unrewritten copy of the same code.
// Invariant: the section of rewritten code is rewritten once, before the first test.
#include "omp/atomic/rewriter.hpp"

#include <gtest/gtest.h>
#include <link.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/latch.hpp"
#include "omp/atomic/fault_trap.hpp"
#include "omp/atomic/rewriter_test_forms.hpp"
#include "omp/atomic/rewriter_test_hooks.hpp"
#include "omp/atomic/rewriter_test_passes.hpp"
#include "omp/atomic/rewriter_test_run.hpp"

#define ASSEMBLE(name, code)                                                             \
    asm(".pushsection hiroba_plain, \"ax\", @progbits\n plain_" #name ":\n" code         \
        "\n ret\n .popsection\n"                                                         \
        ".pushsection hiroba_rewritten, \"ax\", @progbits\n rewritten_" #name ":\n" code \
        "\n ret\n .popsection\n");
asm(".pushsection hiroba_rewritten, \"ax\", @progbits\n .balign 4096\n rewritten_begin:\n"
    ".popsection\n"
    ".pushsection .tbss, \"awT\", @nobits\n .balign 8\n form_tls: .zero 8\n"
    ".type form_tls, @object\n .size form_tls, 8\n .popsection\n");
ATOMIC_FORMS(ASSEMBLE)
LEFT_ALONE_FORMS(ASSEMBLE)
FENCE_FORMS(ASSEMBLE)
WAIT_FORMS(ASSEMBLE)
asm(".pushsection hiroba_rewritten, \"ax\", @progbits\n"
    " vzeroupper\n"  // never run: its prefix says that this code may use wide vectors
    " .balign 4096\n rewritten_end:\n .popsection\n");
// An object of its own that names no wide vector.
asm(".pushsection hiroba_narrow, \"ax\", @progbits\n .balign 4096\n narrow_begin:\n"
    "narrow_add: lock addq %rsi, 8(%rbx)\n ret\n"
    "narrow_fence: lock orq $0, (%rsp)\n ret\n"
    " .balign 4096\n narrow_end:\n .popsection\n");

#define DECLARE(name, code) extern const char plain_##name[], rewritten_##name[];
extern "C" {
ATOMIC_FORMS(DECLARE)
LEFT_ALONE_FORMS(DECLARE)
FENCE_FORMS(DECLARE)
WAIT_FORMS(DECLARE)
extern const char rewritten_begin[], rewritten_end[];
extern const char narrow_begin[], narrow_end[], narrow_add[], narrow_fence[];
}

namespace hiroba::omp {
namespace {

struct Form {
    const char* name;
    const void* plain;
    const void* rewritten;
};
#define LIST(name, code) {#name, plain_##name, rewritten_##name},
const Form atomic_forms[] = {ATOMIC_FORMS(LIST)};
const Form left_alone_forms[] = {LEFT_ALONE_FORMS(LIST)};
const Form fence_forms[] = {FENCE_FORMS(LIST)};
const Form wait_forms[] = {WAIT_FORMS(LIST)};

/// Rewrites the test's own section of code, once.
struct Rewritten {
    std::byte* global = map_arena();
    std::byte* other = map_arena();
    Result<RewriteSummary> summary = RewriteSummary{};
    Result<RewriteSummary> narrow = RewriteSummary{};

    Rewritten() {
        AtomicHooks hooks;
        hooks.enter = enter;
        hooks.leave = leave;
        hooks.flush = flush;
        hooks.waits = waits;
        hooks.leaves_to_join = leaves_to_join;
        hooks.own.passes = open_pages.data();
        hooks.global = {{reinterpret_cast<std::uintptr_t>(global), arena_bytes},
                        {reinterpret_cast<std::uintptr_t>(form_word), sizeof form_word}};
        summary = rewrite(object(rewritten_begin, rewritten_end), hooks);
        narrow = rewrite(object(narrow_begin, narrow_end), hooks);
    }

    static RewriteTarget object(const char* begin, const char* end) {
        return {load_bias(),
                "/proc/self/exe",
                {{reinterpret_cast<std::uintptr_t>(begin), static_cast<std::size_t>(end - begin)}}};
    }

    static std::uintptr_t load_bias() {
        std::uintptr_t bias = 0;
        dl_iterate_phdr(
            [](dl_phdr_info* program, std::size_t, void* found) {
                *static_cast<std::uintptr_t*>(found) = program->dlpi_addr;
                return 1;  // the program comes first
            },
            &bias);
        return bias;
    }
};

Rewritten& rewritten() {
    static Rewritten once;
    return once;
}

struct Outcome {
    Registers registers{};
    std::vector<std::byte> memory;
    std::array<std::uint64_t, 512> words{};
};

/// Runs `code` on `arena` filled from `seed`; the same seed gives the same start.
Outcome run(const void* code, std::byte* arena, unsigned seed, std::uint64_t waited = is_there) {
    std::mt19937_64 random{seed};
    for (std::size_t i = 0; i < arena_bytes; i += 8) {
        const std::uint64_t value = random();
        std::memcpy(arena + i, &value, 8);
    }
    for (std::uint64_t& word : form_word) word = random();
    Outcome outcome;
    Registers& registers = outcome.registers;
    for (std::uint64_t* r = &registers.rax; r != &registers.flags; ++r) *r = random();
    std::byte* middle = arena + 0x2000;
    registers.rbx = registers.rbp = registers.r12 = registers.r13 =
        reinterpret_cast<std::uint64_t>(middle);
    registers.rsi = random() % 8;
    registers.flags = 0x202 | (random() & 0x8d5);  // the six status flags
    if (seed % 8 == 7) registers.flags |= 0x400;   // and the direction
    registers.stack = arena + 0x8000;
    registers.code = code;
    // Half of the compares succeed.
    if (seed % 2 == 0) {
        std::memcpy(&registers.rax, middle, 8);
        std::memcpy(&registers.rdx, middle + 8, 8);
        std::memcpy(arena + 0x8000, &registers.rax, 8);
        form_word[2] = registers.rax;
        form_word[3] = registers.rdx;
        std::memcpy(middle + 0x200, middle, 16);
    }
    if (seed % 3 == 0) std::memcpy(&registers.rcx, middle, 8);
    put_waited(arena, waited);
    run_form(&registers);
    registers.code = nullptr;
    registers.caller_stack = nullptr;
    outcome.memory.assign(arena, arena + arena_bytes);
    std::memcpy(outcome.words.data(), form_word, sizeof form_word);
    return outcome;
}

/// Below the lowest red zone the stack holds nothing of the program; everything else must agree.
void expect_same(const Form& form, const Outcome& plain, const Outcome& rewritten, unsigned seed) {
    EXPECT_EQ(std::memcmp(&plain.registers, &rewritten.registers, sizeof(Registers)), 0)
        << form.name << " seed " << seed << " flags " << std::hex << plain.registers.flags << " "
        << rewritten.registers.flags;
    constexpr std::size_t stack_low = 0x4000, red_zone = 0x8000 - 8 - 128;
    EXPECT_EQ(std::memcmp(plain.memory.data(), rewritten.memory.data(), stack_low), 0) << form.name;
    EXPECT_EQ(plain.words, rewritten.words) << form.name;
    // The return address of run_form's call is the same; the code's own frame is compared.
    EXPECT_EQ(std::memcmp(plain.memory.data() + red_zone, rewritten.memory.data() + red_zone,
                          arena_bytes - red_zone),
              0)
        << form.name << " seed " << seed;
}

TEST(Rewriter, RewritesEveryFormAndLeavesAloneWhatHasNoTrampoline) {
    ASSERT_TRUE(rewritten().summary) << rewritten().summary.error().text;
    const RewriteSummary& summary = *rewritten().summary;
    EXPECT_EQ(summary.atomics, std::size(atomic_forms));
    EXPECT_EQ(summary.flushes, std::size(fence_forms));
    EXPECT_EQ(summary.left_alone, std::size(left_alone_forms));
    EXPECT_EQ(summary.undecodable_bytes, 0u);
    EXPECT_EQ(summary.waits, std::size(wait_forms));
    EXPECT_EQ(summary.jumps + summary.traps, summary.atomics + summary.flushes + summary.waits);
    EXPECT_GT(summary.jumps, 20u);
    EXPECT_GT(summary.traps, 10u);
    for (const Form& form : left_alone_forms) {
        EXPECT_EQ(std::memcmp(form.plain, form.rewritten, 4), 0) << form.name;
    }
}

TEST(Rewriter, NoMemoryIsWritableAndExecutableAndTheCodeIsExecutableAgain) {
    ASSERT_TRUE(rewritten().summary);
    std::ifstream maps{"/proc/self/maps"};
    bool code_seen = false;
    for (std::string line; std::getline(maps, line);) {
        unsigned long begin = 0, end = 0;
        char access[5] = {};
        ASSERT_EQ(std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, access), 3);
        EXPECT_FALSE(access[1] == 'w' && access[2] == 'x') << line;
        const auto code = reinterpret_cast<std::uintptr_t>(rewritten_begin);
        if (begin <= code && code < end) {
            EXPECT_STREQ(access, "r-xp");
            code_seen = true;
        }
    }
    EXPECT_TRUE(code_seen);
}

TEST(Rewriter, ASiteThatABranchEntersInTheMiddleIsReachedByTrap) {
    ASSERT_TRUE(rewritten().summary);
    const auto* code = reinterpret_cast<const unsigned char*>(rewritten_branch_into_middle);
    EXPECT_EQ(code[4], 0xcc);  // behind test and js
}

TEST(Rewriter, AShortSiteIsReachedByAJumpThatEndsInTheBytesBehindIt) {
    ASSERT_TRUE(rewritten().summary);
    const struct {
        const char *plain, *rewritten;
        std::size_t length, compared;
    } sites[] = {{plain_xadd_long, rewritten_xadd_long, 4, 5},
                 {plain_borrowed_two, rewritten_borrowed_two, 3, 6},
                 {plain_borrowed_three, rewritten_borrowed_three, 2, 6}};
    for (const auto& site : sites) {
        EXPECT_EQ(static_cast<unsigned char>(site.rewritten[0]), 0xe9);
        EXPECT_EQ(std::memcmp(site.plain + site.length, site.rewritten + site.length,
                              site.compared - site.length),
                  0);
    }
    // Another site within a jump's length will change those bytes.
    EXPECT_EQ(static_cast<unsigned char>(rewritten_inc_byte[0]), 0xcc);
}

TEST(Rewriter, AnInstructionOnPrivateMemoryBehavesAsBeforeAndCallsNoHook) {
    ASSERT_TRUE(rewritten().summary);
    for (const Form& form : atomic_forms) {
        if (std::strncmp(form.name, "relative", 8) == 0) continue;  // on global words
        hooks_seen.clear();
        for (unsigned seed = 0; seed < 24; ++seed) {
            const Outcome plain = run(form.plain, rewritten().other, seed);
            const Outcome changed = run(form.rewritten, rewritten().other, seed);
            expect_same(form, plain, changed, seed);
        }
        EXPECT_EQ(hooks_seen.entered, 0u) << form.name;
    }
}

TEST(Rewriter, AnInstructionLeftToTheJoinIsPassedOverAndItsTermIsTheDifference) {
    ASSERT_TRUE(rewritten().summary);
    const Form forms[] = {LIST(add_long_register, "") LIST(add_quad_constant, "") LIST(sub_quad, "")
                              LIST(or_word, "") LIST(dec_byte, "") LIST(and_quad, "")
                                  LIST(dec_quad, "") LIST(reduction, "")};
    for (const Form& form : forms) {
        int differing = 0;  // a sum of two random numbers often is one of them
        for (unsigned seed = 0; seed < 24; ++seed) {
            Outcome plain = run(form.plain, rewritten().global, seed);
            hooks_seen.clear();
            hooks_seen.leaves = true;
            Outcome changed = run(form.rewritten, rewritten().global, seed);
            hooks_seen.leaves = false;
            EXPECT_EQ(hooks_seen.entered, 0u) << form.name;
            const LastAtomic& left = hooks_seen.left_to_join;
            ASSERT_NE(left.term.address, 0u) << form.name;
            EXPECT_EQ(left.data, changed.registers.rbx) << form.name;
            EXPECT_FALSE(left.announced);
            const std::size_t at =
                left.term.address - reinterpret_cast<std::uintptr_t>(rewritten().global);
            differing += std::memcmp(&plain.memory[at], &changed.memory[at], 8) != 0;
            JoinTerm term = left.term;
            term.address = reinterpret_cast<std::uintptr_t>(changed.memory.data() + at);
            apply(term);
            // No code reads the flags behind it, but for the one that says an exchange succeeded.
            plain.registers.flags = changed.registers.flags;
            constexpr std::size_t flags_pushed = 0x8000 - 8;  // by run_form
            std::memcpy(plain.memory.data() + flags_pushed, changed.memory.data() + flags_pushed,
                        8);
            expect_same(form, plain, changed, seed);
        }
        EXPECT_GT(differing, 4) << form.name;
    }
}

TEST(Rewriter, AnInstructionOnGlobalMemoryBehavesAsBeforeBetweenBothHooks) {
    ASSERT_TRUE(rewritten().summary);
    for (const Form& form : atomic_forms) {
        if (std::strcmp(form.name, "address_size_prefix") == 0) continue;  // never on 64-bit memory
        for (unsigned seed = 0; seed < 24; ++seed) {
            const Outcome plain = run(form.plain, rewritten().global, seed);
            hooks_seen.clear();
            errno = 17;
            const Outcome changed = run(form.rewritten, rewritten().global, seed);
            EXPECT_EQ(errno, 17) << form.name;
            expect_same(form, plain, changed, seed);
            const bool jumped_over =
                std::strcmp(form.name, "branch_into_middle") == 0 && (plain.registers.rcx & 0x80);
            EXPECT_EQ(hooks_seen.entered, jumped_over ? 0u : 1u) << form.name;
            EXPECT_EQ(hooks_seen.left, hooks_seen.entered) << form.name;
        }
    }
}

TEST(Rewriter, ALoopThatWaitsEndsAsBeforeAndTellsItsAddressEachRound) {
    ASSERT_TRUE(rewritten().summary);
    hooks_seen.arena = rewritten().global;
    for (const Form& form : wait_forms) {
        for (unsigned seed = 0; seed < 24; ++seed) {
            const Outcome plain = run(form.plain, rewritten().global, seed);
            hooks_seen.clear();
            errno = 17;
            const Outcome at_once = run(form.rewritten, rewritten().global, seed);
            expect_same(form, plain, at_once, seed);
            EXPECT_TRUE(hooks_seen.waits.empty()) << form.name;
            const Outcome later = run(form.rewritten, rewritten().global, seed, 0);
            EXPECT_EQ(errno, 17) << form.name;
            expect_same(form, plain, later, seed);
            ASSERT_GE(hooks_seen.waits.size(), 3u) << form.name;
            const auto words = reinterpret_cast<std::uintptr_t>(rewritten().global) + 0x2300;
            const auto own = reinterpret_cast<std::uintptr_t>(form_word + 8);
            for (const std::uintptr_t at : hooks_seen.waits)
                EXPECT_TRUE((at >= words && at < words + 64) || (at >= own && at < own + 64))
                    << form.name << " seed " << seed << " " << std::hex << at;
        }
    }
}

TEST(Rewriter, AnInstructionOnAnOpenPageBehavesAsBeforeAndCallsNoHook) {
    ASSERT_TRUE(rewritten().summary);
    const GoingBy open{rewritten().global};
    if (own_atomic_window == nullptr) GTEST_SKIP() << "the gs register is in use";
    std::size_t went_by = 0;
    for (const Form& form : atomic_forms) {
        if (std::strcmp(form.name, "address_size_prefix") == 0) continue;  // never on 64-bit memory
        for (unsigned seed = 0; seed < 24; ++seed) {
            const Outcome plain = run(form.plain, rewritten().global, seed);
            hooks_seen.clear();
            GoingBy::taken();
            const Outcome changed = run(form.rewritten, rewritten().global, seed);
            expect_same(form, plain, changed, seed);
            const bool jumped_over =
                std::strcmp(form.name, "branch_into_middle") == 0 && (plain.registers.rcx & 0x80);
            const std::uint32_t taken = GoingBy::taken();
            EXPECT_EQ(hooks_seen.entered + taken, jumped_over ? 0u : 1u) << form.name;
            EXPECT_EQ(GoingBy::window().page, 0u) << form.name;
            went_by += taken;
        }
    }
    // What is not aligned is called for, and what a join may take over.
    EXPECT_GT(went_by, std::size(atomic_forms) * 24 / 2);
}

TEST(Rewriter, AnInstructionIsCalledForWhereItMayNotGoBy) {
    ASSERT_TRUE(rewritten().summary);
    const GoingBy open{rewritten().global};
    if (own_atomic_window == nullptr) GTEST_SKIP() << "the gs register is in use";
    const Form* const found = std::ranges::find_if(atomic_forms, [](const Form& form) {
        GoingBy::taken();
        run(form.rewritten, rewritten().global, 0);
        return GoingBy::taken() == 1;
    });
    ASSERT_NE(found, std::end(atomic_forms));
    const Form& form = *found;
    const auto calls = [&](const char* why) {
        hooks_seen.clear();
        const Outcome plain = run(form.plain, rewritten().global, 0);
        const Outcome changed = run(form.rewritten, rewritten().global, 0);
        expect_same(form, plain, changed, 0);
        EXPECT_EQ(hooks_seen.entered, 1u) << why;
    };
    AtomicWindow& window = GoingBy::window();
    window.left = 0;
    calls("none is left");
    EXPECT_EQ(window.left, -1);
    window.left = 5;
    window.page = 1;
    calls("a handler of a signal, within another atomic");
    EXPECT_EQ(window.page, 1u);
    window.page = 0;
    for (auto& page : open_pages) page = 0;
    calls("the page is closed");
    EXPECT_EQ(window.left, 5);
    EXPECT_EQ(window.page, 0u);
}

TEST(Rewriter, AHookThatDeclinesLeavesTheInstructionAsItWas) {
    ASSERT_TRUE(rewritten().summary);
    for (const Form& form : atomic_forms) {
        if (std::strcmp(form.name, "address_size_prefix") == 0) continue;
        for (unsigned seed = 0; seed < 8; ++seed) {
            const Outcome plain = run(form.plain, rewritten().global, seed);
            hooks_seen.clear();
            hooks_seen.take = false;
            const Outcome changed = run(form.rewritten, rewritten().global, seed);
            expect_same(form, plain, changed, seed);
            EXPECT_EQ(hooks_seen.left, 0u) << form.name;
        }
    }
}

TEST(Rewriter, TheHookIsToldTheAddressAndSizeOfTheOperand) {
    struct Expected {
        const void* code;
        std::size_t offset, bytes;
    };
    const Expected expected[] = {
        {rewritten_add_byte_register, 0x2000, 1},
        {rewritten_add_word_register, 0x2002, 2},
        {rewritten_add_long_register, 0x2004, 4},
        {rewritten_add_quad_constant, 0x2008, 8},
        {rewritten_cmpxchg8b, 0x2000, 8},
        {rewritten_cmpxchg16b, 0x2000, 16},
        {rewritten_xor_quad, 0x2000 - 64, 8},
        {rewritten_bts_register_beyond, 0x2000 + 300 / 64 * 8, 8},
        {rewritten_btr_register_before, 0x2000 - 12, 4},
        {rewritten_btc_register_word, 0x2000 + 100 / 16 * 2, 2},
        {rewritten_stack_above, 0x8000 - 8 + 16, 8},
        {rewritten_stack_red_zone_deep, 0x8000 - 8 - 128, 8},
    };
    ASSERT_TRUE(rewritten().summary);
    for (const Expected& e : expected) {
        hooks_seen.clear();
        run(e.code, rewritten().global, 1);
        EXPECT_EQ(hooks_seen.address - reinterpret_cast<std::uintptr_t>(rewritten().global),
                  e.offset);
        EXPECT_EQ(hooks_seen.bytes, e.bytes);
    }
}

TEST(Rewriter, AFenceIsAFlushAndChangesNothing) {
    ASSERT_TRUE(rewritten().summary);
    for (const Form& form : fence_forms) {
        const Outcome plain = run(form.plain, rewritten().other, 5);
        hooks_seen.clear();
        const Outcome changed = run(form.rewritten, rewritten().other, 5);
        expect_same(form, plain, changed, 5);
        EXPECT_EQ(hooks_seen.flushed, 1u) << form.name;
    }
}

TEST(Rewriter, AtomicsOfManyThreadsOnGlobalMemoryAddUp) {
    ASSERT_TRUE(rewritten().summary);
    hooks_seen.clear();
    auto* counter = reinterpret_cast<std::uint64_t*>(rewritten().global + 0x1000);
    *counter = 0;
    constexpr int threads = 4;
    constexpr std::uint64_t rounds = 2000;
    std::vector<std::thread> team;
    for (int t = 0; t < threads; ++t) {
        team.emplace_back([&] {
            for (std::uint64_t i = 0; i < rounds; ++i) {
                // By jump and by trap (3 bytes).
                for (const char* code : {rewritten_inc_quad, rewritten_inc_long}) {
                    std::uint64_t one = 1;
                    const auto base = reinterpret_cast<std::uint64_t>(counter) -
                                      (code == rewritten_inc_quad ? 0x100 : 0);
                    asm volatile("call *%[code]"
                                 : "+D"(one)
                                 : "b"(base), [code] "r"(code)
                                 : "memory", "cc");
                }
            }
        });
    }
    for (std::thread& thread : team) thread.join();
    EXPECT_EQ(*counter, 2 * threads * rounds);
    EXPECT_EQ(hooks_seen.entered, 2 * threads * rounds);
    EXPECT_EQ(hooks_seen.left, hooks_seen.entered);
}

#define ALL_ZMM(move)                                                                         \
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29," \
    "30,31\n" move "\n.endr\n"

#define ALL_XMM(move) ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n" move "\n.endr\n"

TEST(Rewriter, VectorAndMaskRegistersSurviveHooksThatUseThem) {
    if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "no AVX-512 here";
    ASSERT_TRUE(rewritten().summary);
    hooks_seen.clear();
    alignas(64) std::array<std::uint64_t, 32 * 8> before{}, after{};
    std::mt19937_64 random{3};
    for (std::uint64_t& word : before) word = random();
    std::uint64_t masks = 0;
    const auto base = reinterpret_cast<std::uint64_t>(rewritten().global + 0x2000);
    for (const char* code : {rewritten_add_quad_register, rewritten_fence_gcc}) {
        after.fill(0);
        asm volatile(ALL_ZMM("vmovdqu64 (64*\\n)(%[from]), %%zmm\\n")
                     "mov $0x5a5a, %%eax\n kmovw %%eax, %%k1\n"
                     "call *%[code]\n"
                     "kmovw %%k1, %%eax\n"
                     ALL_ZMM("vmovdqu64 %%zmm\\n, (64*\\n)(%[to])")
                     : "=&a"(masks)
                     : "b"(base), [from] "r"(before.data()), [to] "r"(after.data()),
                       [code] "r"(code)
                     : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
                       "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
                       "xmm15");
        EXPECT_EQ(before, after);
        EXPECT_EQ(masks, 0x5a5au);
    }
    EXPECT_EQ(hooks_seen.entered, 1u);
    EXPECT_EQ(hooks_seen.flushed, 1u);
}

TEST(Rewriter, AnObjectWithoutWideVectorsKeepsItsOwn) {
    ASSERT_TRUE(rewritten().narrow) << rewritten().narrow.error().text;
    EXPECT_EQ(rewritten().narrow->atomics, 1u);
    EXPECT_EQ(rewritten().narrow->flushes, 1u);
    alignas(16) std::array<std::uint64_t, 16 * 2> before{}, after{};
    std::mt19937_64 random{4};
    for (std::uint64_t& word : before) word = random();
    const auto base = reinterpret_cast<std::uint64_t>(rewritten().global + 0x2000);
    for (const bool take : {true, false}) {
        for (const char* code : {narrow_add, narrow_fence}) {
            hooks_seen.clear();
            hooks_seen.take = take;
            after.fill(0);
            asm volatile(ALL_XMM("movaps 16*\\n(%[from]), %%xmm\\n") "call *%[code]\n" ALL_XMM(
                             "movaps %%xmm\\n, 16*\\n(%[to])")
                         :
                         : "b"(base), "S"(std::uint64_t{1}), [from] "r"(before.data()),
                           [to] "r"(after.data()), [code] "r"(code)
                         : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
                           "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
                           "xmm15");
            EXPECT_EQ(before, after);
            EXPECT_EQ(hooks_seen.entered, take && code == narrow_add ? 1u : 0u);
            EXPECT_EQ(hooks_seen.flushed, code == narrow_fence ? 1u : 0u);
        }
    }
}

TEST(RewriterDeathTest, AnOperandThatCrossesABlockIsFatalAndNamesTheAddress) {
    ASSERT_TRUE(rewritten().summary);
    Registers registers{};
    registers.rbx = reinterpret_cast<std::uint64_t>(rewritten().global + 0x1000 - 4 - 8);
    registers.flags = 0x202;
    registers.stack = rewritten().other + 0x8000;
    registers.code = rewritten_add_quad_register;  // 8 bytes at 8(%rbx)
    EXPECT_DEATH(run_form(&registers), "cross a block of 4096 bytes");
}

TEST(RewriterDeathTest, ATrapThatIsNotOursTakesTheDefaultAction) {
    ASSERT_TRUE(rewritten().summary);
    EXPECT_EXIT(asm volatile("int3"), testing::KilledBySignal(SIGTRAP), "");
}

TEST(Rewriter, ATrapThatIsNotOursReachesTheProgramsHandler) {
    ASSERT_TRUE(rewritten().summary);
    static volatile int seen = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { seen = seen + 1; };
    struct sigaction old {};
    set_program_trap_action(&action, &old);
    asm volatile("int3");
    run(rewritten_inc_byte, rewritten().other, 1);  // by trap
    set_program_trap_action(&old, &action);
    EXPECT_EQ(seen, 1);
    EXPECT_EQ(old.sa_handler, SIG_DFL);
}

TEST(Rewriter, AFileThatIsNoProgramIsRefusedByName) {
    const auto refused = rewrite({0, "/proc/self/maps", {}}, AtomicHooks{});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().text.find("/proc/self/maps"), std::string::npos);
}

}  // namespace
}  // namespace hiroba::omp
