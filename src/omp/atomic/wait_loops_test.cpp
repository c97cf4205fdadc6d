// SPDX-License-Identifier: BSD-3-Clause
// Role: which loops are taken for waits, form by form as compilers write them, and which are not.
#include "omp/atomic/wait_loops.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

// From "1:" to the branch back to it.
#define WAIT_LOOPS(X)                                                                  \
    X(while_volatile, "1: mov (%rdx), %eax\n test %eax, %eax\n je 1b\n")               \
    X(compares_memory, "1: cmpl $0, 64(%rbx,%rcx,4)\n je 1b\n")                        \
    X(relative, "1: mov waited_word(%rip), %rax\n cmp %rax, %rsi\n jne 1b\n")          \
    X(byte, "1: movzbl (%rdi), %eax\n cmp $1, %al\n jne 1b\n")                         \
    X(pauses, "1: pause\n mov (%rdi), %rax\n test %rax, %rax\n jne 1b\n")              \
    X(pipeline, /* an index is reckoned anew each round */                             \
      "1: mov 0x40(%r15), %ecx\n imul %r11d, %ecx\n add %eax, %ecx\n shl $4, %ecx\n"   \
      "movslq %ecx, %rcx\n mov (%r14,%rcx,4), %ecx\n cmp %ecx, %esi\n jne 1b\n")       \
    X(unoptimized, /* the address lies on the stack, the way out in the middle */      \
      "1: mov -8(%rbp), %rax\n mov (%rax), %eax\n cmp $7, %eax\n je 9f\n jmp 1b\n 9:") \
    X(two_words,                                                                       \
      "1: mov (%rsi), %eax\n test %eax, %eax\n jne 9f\n mov (%rdi), %eax\n"            \
      "test %eax, %eax\n je 1b\n 9:")                                                  \
    X(cleared, "1: xor %eax, %eax\n mov (%rsi), %al\n cmp %eax, %ecx\n jg 1b\n")
#define OTHER_LOOPS(X)                                                                         \
    X(copies,                                                                                  \
      "1: mov (%rsi,%rax), %cl\n mov %cl, (%rdi,%rax)\n inc %rax\n test %cl, %cl\n"            \
      "jne 1b\n")                                                                              \
    X(walks, "1: add $8, %rax\n cmpq $0, (%rax)\n jne 1b\n")                                   \
    X(follows, "1: mov (%rax), %rax\n test %rax, %rax\n jne 1b\n")                             \
    X(counts, "1: mov (%rdi), %eax\n test %eax, %eax\n jne 9f\n sub $1, %ecx\n jne 1b\n 9:")   \
    X(counts_by_dec, "1: mov (%rdi), %eax\n dec %ecx\n jne 1b\n")                              \
    X(calls, "1: mov (%rdi), %eax\n call waited_word\n test %eax, %eax\n je 1b\n")             \
    X(stores, "1: movl $1, (%rsi)\n mov (%rdi), %eax\n test %eax, %eax\n je 1b\n")             \
    X(pushes, "1: push %rax\n mov (%rdi), %eax\n test %eax, %eax\n je 1b\n")                   \
    X(flushes, "1: mfence\n mov (%rdi), %eax\n test %eax, %eax\n je 1b\n")                     \
    X(takes, "1: lock btsl $0, (%rdi)\n mov (%rdi), %eax\n jb 1b\n")                           \
    X(of_the_thread, "1: mov %fs:0x28, %rax\n test %rax, %rax\n je 1b\n")                      \
    X(of_the_frame, "1: mov -8(%rsp), %eax\n test %eax, %eax\n je 1b\n")                       \
    X(loads_nothing, "1: lea 8(%rdi), %rax\n test %rax, %rax\n je 1b\n")                       \
    X(skips,                                                                                   \
      "1: mov (%rdi), %eax\n test %eax, %eax\n je 2f\n mov (%rsi), %ecx\n"                     \
      "2: cmp %ecx, %eax\n je 1b\n")                                                           \
    X(sums, "1: mov (%rdi), %eax\n add %rax, %rbx\n test %eax, %eax\n je 1b\n")                \
    X(shifts_by_register, "1: mov (%rdi), %ecx\n mov (%rsi), %eax\n shl %cl, %eax\n jne 1b\n") \
    X(for_ever, "1: mov (%rdi), %eax\n jmp 1b\n")                                              \
    X(by_count_register, "1: mov (%rdi), %eax\n loop 1b\n")

#define ASSEMBLE(name, code)                                               \
    asm(".pushsection .text\n loop_" #name ":\n" code "\n loop_end_" #name \
        ": ret\n "                                                         \
        ".popsection\n");
asm(".pushsection .data\n waited_word: .quad 0\n .popsection\n");
WAIT_LOOPS(ASSEMBLE)
OTHER_LOOPS(ASSEMBLE)
// A section whose loop a table may enter behind `pause`, and one without a table.
ASSEMBLE(beside_table, "jmp *%rax\n 1: pause\n mov (%rdi), %rax\n test %rax, %rax\n jne 1b\n")
ASSEMBLE(beside_stub,
         "jmp *waited_word(%rip)\n 1: pause\n mov (%rdi), %rax\n test %rax, %rax\n"
         "jne 1b\n")
#define DECLARE(name, code) extern "C" const char loop_##name[], loop_end_##name[];
WAIT_LOOPS(DECLARE)
OTHER_LOOPS(DECLARE)
DECLARE(beside_table, "")
DECLARE(beside_stub, "")

namespace hiroba::omp {
namespace {

struct Form {
    const char* name;
    const char* begin;
    const char* end;
    WaitLoop found() const {
        return wait_loop_at(reinterpret_cast<std::uintptr_t>(begin),
                            reinterpret_cast<std::uintptr_t>(end));
    }
};
#define LIST(name, code) {#name, loop_##name, loop_end_##name},
const Form wait_loops[] = {WAIT_LOOPS(LIST)};
const Form other_loops[] = {OTHER_LOOPS(LIST)};

TEST(WaitLoops, AreThoseThatAnotherThreadAloneCanEnd) {
    for (const Form& form : wait_loops) {
        const WaitLoop loop = form.found();
        ASSERT_FALSE(loop.steps.empty()) << form.name;
        EXPECT_EQ(loop.begin(), reinterpret_cast<std::uintptr_t>(form.begin)) << form.name;
        EXPECT_EQ(loop.end(), reinterpret_cast<std::uintptr_t>(form.end)) << form.name;
        EXPECT_EQ(loop.steps.back().kind, LoopStep::Kind::back) << form.name;
    }
}

TEST(WaitLoops, AreNoLoopsThatStoreCallCountOrComeFromElsewhereEachRound) {
    for (const Form& form : other_loops) EXPECT_TRUE(form.found().steps.empty()) << form.name;
}

std::string kinds_of(const WaitLoop& loop) {
    std::string kinds;
    for (const LoopStep& step : loop.steps) kinds += "pleb"[static_cast<std::size_t>(step.kind)];
    return kinds;
}

TEST(WaitLoops, TellTheLastTwoLoadsAndTheWaysOut) {
    const auto kinds = [](const char* name) {
        for (const Form& form : wait_loops)
            if (std::strcmp(form.name, name) == 0) return kinds_of(form.found());
        return std::string{};
    };
    EXPECT_EQ(kinds("while_volatile"), "lpb");
    EXPECT_EQ(kinds("compares_memory"), "lb");
    EXPECT_EQ(kinds("pipeline"),
              "lppppl"
              "pb");
    EXPECT_EQ(kinds("unoptimized"),
              "ll"
              "peb");
    EXPECT_EQ(kinds("two_words"), "lpelpb");
}

TEST(WaitLoops, TakeAJumpWhereNoBranchEntersItsMiddle) {
    const Form* const form = &wait_loops[4];  // pause has two bytes
    ASSERT_STREQ(form->name, "pauses");
    const WaitLoop loop = form->found();
    const auto place = [&loop](std::initializer_list<std::uintptr_t> entered) {
        BranchTargets targets{{loop.begin(), loop.end() - loop.begin()}};
        for (const std::uintptr_t at : entered) targets.add(loop.begin() + at);
        return loop.place_of_jump(targets);
    };
    EXPECT_EQ(place({}), loop.begin());
    EXPECT_EQ(place({0, 2}), loop.begin() + 2);
    EXPECT_EQ(place({2, 5, 8}), 0u);
}

CodeScan scan(const char* begin, const char* end) {
    CodeSection section;
    section.range = {reinterpret_cast<std::uintptr_t>(begin),
                     static_cast<std::size_t>(end - begin)};
    return scan_code({&section, 1});
}

TEST(WaitLoops, KeepInstructionsThatATableMayEnterWhole) {
    const CodeScan table = scan(loop_beside_table, loop_end_beside_table);
    ASSERT_EQ(table.sites.size(), 1u);
    EXPECT_EQ(table.sites[0].length, 2u);
    EXPECT_TRUE(table.sites[0].by_trap);
    const CodeScan stub = scan(loop_beside_stub, loop_end_beside_stub);
    ASSERT_EQ(stub.sites.size(), 1u);
    EXPECT_EQ(stub.sites[0].length, jump_bytes);
    EXPECT_FALSE(stub.sites[0].by_trap);
}

}  // namespace
}  // namespace hiroba::omp
