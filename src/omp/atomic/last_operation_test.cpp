// SPDX-License-Identifier: BSD-3-Clause
// Role: which ends of functions are a reduction's, and what is told of them; and of each condition
// a piece of code that breaks it alone.
#include "omp/atomic/last_operation.hpp"

#include <gtest/gtest.h>

#include "omp/atomic/code_scan.hpp"

// clang-format off
#define LOOP(operation) \
    "1: movq %rdx, %xmm1\n movq %rdx, %rax\n" operation "\n movq %xmm1, %rsi\n" \
    " lock cmpxchgq %rsi, (%rcx)\n"
#define AGAIN "\n ret\n 2: movq %rax, %rdx\n jmp 1b"
#define ENDS(X)                                                                                 \
    X(add, "lock addl %ecx, 12(%rbx)\n popq %rbx\n popq %rbp\n ret")                            \
    X(subtract, "lock subq $3, (%rdi)\n vzeroupper\n ret")                                      \
    X(increment, "lock incq 8(%rdi)\n addq $24, %rsp\n popq %r12\n ret")                        \
    X(complement, "lock andw %r9w, 2(%r13)\n ret")                                              \
    X(gcc, "leaq 8(%rbx), %rcx\n" LOOP("addsd %xmm0, %xmm1") " jne 2f\n popq %rbx" AGAIN)        \
    X(gcc_o1, "leaq 8(%rbx), %rcx\n movq 8(%rbx), %rdx\n 1: movq %rdx, %xmm1\n"                 \
              " mulsd %xmm9, %xmm1\n movq %xmm1, %rsi\n movq %rdx, %rax\n"                      \
              " lock cmpxchgq %rsi, (%rcx)\n cmpq %rax, %rdx\n jne 2f" AGAIN)                   \
    X(clang, "movsd 8(%rsp), %xmm0\n nop\n 1: movq %rax, %xmm1\n addsd %xmm0, %xmm1\n"          \
             " movq %xmm1, %rcx\n lock cmpxchgq %rcx, (%rbx)\n jne 1b\n jmp 3f\n int3\n"        \
             " 3: addq $8, %rsp\n ret")                                                         \
    X(wide, "nop\n nop\n 1: vmovd %edx, %xmm1\n movl %edx, %eax\n vmaxss %xmm1, %xmm3, %xmm2\n" \
            " vmovd %xmm2, %esi\n lock cmpxchgl %esi, 4(%rcx)\n jne 2f\n"                       \
            " leaq -16(%rbp), %rsp\n popq %rbx\n popq %r12\n popq %rbp" AGAIN)                  \
    X(spilled, "nop\n" LOOP("addsd 24(%rsp), %xmm1") " jne 2f" AGAIN)                           \
    X(constant, "nop\n" LOOP("addsd ends_number(%rip), %xmm1") " jne 2f\n leave" AGAIN)
#define OTHERS(X)                                                                               \
    X(is_read_again, "lock addl %ecx, (%rbx)\n movl (%rbx), %eax\n ret")                        \
    X(something_is_called, "lock addl %ecx, (%rbx)\n call 1f\n 1: ret")                         \
    X(jumps_elsewhere, "lock addl %ecx, (%rbx)\n jmp *%rax")                                    \
    X(is_tested, "lock addl %ecx, (%rbx)\n jne 1f\n 1: ret")                                    \
    X(has_an_index, "lock addl %ecx, (%rbx, %rdx)\n ret")                                       \
    X(is_on_the_stack, "lock addl %ecx, 8(%rsp)\n ret")                                         \
    X(is_relative, "lock addl %ecx, ends_number(%rip)\n ret")                                 \
    X(high_byte, "lock addb %ch, (%rbx)\n ret")                                                 \
    X(gives_the_old_value, "lock xaddl %eax, (%rbx)\n ret")                                     \
    X(complements, "lock notl (%rbx)\n ret")                                                    \
    X(is_not_tested, "nop\n" LOOP("addsd %xmm0, %xmm1") " ret")                                 \
    X(expects_something_else, "nop\n 1: movq %rdx, %xmm1\n movq %rdi, %rax\n"                   \
        " addsd %xmm0, %xmm1\n movq %xmm1, %rsi\n lock cmpxchgq %rsi, (%rcx)\n jne 2f" AGAIN)   \
    X(puts_something_else, "nop\n 1: movq %rdx, %xmm1\n movq %rdx, %rax\n"                      \
        " addsd %xmm0, %xmm1\n movq %xmm1, %rsi\n lock cmpxchgq %rdi, (%rcx)\n jne 2f" AGAIN)   \
    X(doubles, "nop\n" LOOP("addsd %xmm1, %xmm1") " jne 2f" AGAIN)                              \
    X(subtracts, "nop\n" LOOP("subsd %xmm0, %xmm1") " jne 2f" AGAIN)                            \
    X(other_width, "nop\n" LOOP("addss %xmm0, %xmm1") " jne 2f" AGAIN)                          \
    X(operates_twice, "nop\n 1: movq %rax, %xmm1\n addsd %xmm0, %xmm1\n mulsd %xmm3, %xmm1\n"   \
        " movq %xmm1, %rsi\n lock cmpxchgq %rsi, (%rcx)\n jne 2f" AGAIN)                        \
    X(is_entered, "nop\n 1: movq %rdx, %xmm1\n movq %rdx, %rax\n 3: addsd %xmm0, %xmm1\n"       \
        " movq %xmm1, %rsi\n lock cmpxchgq %rsi, (%rcx)\n jne 2f\n ret\n 2: movq %rax, %rdx\n"  \
        " jmp 3b")
// clang-format on

#define ASSEMBLE(name, code)                                                                \
    asm(".pushsection hiroba_ends, \"ax\", @progbits\n .balign 16\n ends_" #name ":\n" code \
        "\n .balign 16\n int3\n ends_after_" #name ":\n .popsection\n");
asm(".pushsection .rodata\n .balign 8\n ends_number: .double 2.5\n .popsection\n");
ENDS(ASSEMBLE)
OTHERS(ASSEMBLE)
#define DECLARE(name, code) extern const char ends_##name[], ends_after_##name[];
extern "C" {
ENDS(DECLARE)
OTHERS(DECLARE)
extern const double ends_number;
}

namespace hiroba::omp {
namespace {

LastOperation last_of(const char* begin, const char* end) {
    const CodeSection section{
        {reinterpret_cast<std::uintptr_t>(begin), static_cast<std::size_t>(end - begin)}, 0};
    const CodeScan scan = scan_code({&section, 1});
    EXPECT_EQ(scan.sites.size(), 1u);
    return scan.sites.empty() ? LastOperation{} : scan.sites[0].last;
}
#define LAST_OF(name) last_of(ends_##name, ends_after_##name)

constexpr unsigned rcx = 1, rbx = 3, rdi = 7, r9 = 9, r13 = 13;

TEST(LastOperation, of_one_instruction_is_told) {
    using enum TermOperator;
    const LastOperation sum = LAST_OF(add);
    EXPECT_EQ(sum.arithmetic, (TermArithmetic{add, false, 4}));
    EXPECT_EQ(sum.place, TermPlace::general_register);
    EXPECT_EQ(sum.term_register, rcx);
    EXPECT_EQ(sum.base_register, rbx);
    EXPECT_EQ(sum.displacement, 12);
    EXPECT_EQ(sum.return_address_at, 16);
    EXPECT_FALSE(sum.negated || sum.has_frame || sum.by_exchange);

    const LastOperation difference = LAST_OF(subtract);
    EXPECT_EQ(difference.arithmetic, (TermArithmetic{add, false, 8}));
    EXPECT_TRUE(difference.negated);
    EXPECT_EQ(difference.place, TermPlace::constant);
    EXPECT_EQ(difference.value, 3);
    EXPECT_EQ(difference.base_register, rdi);
    EXPECT_EQ(difference.return_address_at, 0);

    const LastOperation next = LAST_OF(increment);
    EXPECT_EQ(next.value, 1);
    EXPECT_EQ(next.return_address_at, 32);

    const LastOperation bits = LAST_OF(complement);
    EXPECT_EQ(bits.arithmetic, (TermArithmetic{and_, false, 2}));
    EXPECT_EQ(bits.term_register, r9);
    EXPECT_EQ(bits.base_register, r13);
}

TEST(LastOperation, of_an_exchange_is_told_what_is_done_to_the_old_value) {
    using enum TermOperator;
    const LastOperation gcc = LAST_OF(gcc);
    EXPECT_EQ(gcc.arithmetic, (TermArithmetic{add, true, 8}));
    EXPECT_TRUE(gcc.by_exchange);
    EXPECT_EQ(gcc.place, TermPlace::vector_register);
    EXPECT_EQ(gcc.term_register, 0);
    EXPECT_EQ(gcc.base_register, rbx);  // by the lea
    EXPECT_EQ(gcc.displacement, 8);
    EXPECT_EQ(gcc.return_address_at, 8);

    const LastOperation first_level = LAST_OF(gcc_o1);
    EXPECT_EQ(first_level.arithmetic, (TermArithmetic{multiply, true, 8}));
    EXPECT_EQ(first_level.term_register, 9);
    EXPECT_EQ(first_level.base_register, rbx);

    const LastOperation clang = LAST_OF(clang);
    EXPECT_EQ(clang.arithmetic, (TermArithmetic{add, true, 8}));
    EXPECT_EQ(clang.base_register, rbx);
    EXPECT_EQ(clang.return_address_at, 8);

    const LastOperation wide = LAST_OF(wide);
    EXPECT_EQ(wide.arithmetic, (TermArithmetic{greatest, true, 4, true}));
    EXPECT_EQ(wide.term_register, 3);
    EXPECT_EQ(wide.base_register, rcx);
    EXPECT_EQ(wide.displacement, 4);
    EXPECT_TRUE(wide.has_frame);
    EXPECT_EQ(wide.return_address_at, 8);
}

TEST(LastOperation, of_an_exchange_may_have_its_term_in_memory) {
    const LastOperation spilled = LAST_OF(spilled);
    EXPECT_EQ(spilled.place, TermPlace::stack);
    EXPECT_EQ(spilled.value, 24);
    const LastOperation constant = LAST_OF(constant);
    EXPECT_EQ(constant.place, TermPlace::memory);
    EXPECT_EQ(constant.value, reinterpret_cast<std::int64_t>(&ends_number));
    EXPECT_TRUE(constant.has_frame);
    EXPECT_EQ(constant.return_address_at, 8);
}

TEST(LastOperation, is_none_where_anything_else_is_done) {
#define EXPECT_NONE(name, code) EXPECT_FALSE(LAST_OF(name)) << #name;
    OTHERS(EXPECT_NONE)
}

}  // namespace
}  // namespace hiroba::omp
