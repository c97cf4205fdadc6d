// SPDX-License-Identifier: BSD-3-Clause
// Role: the instructions that the rewriter's tests try, each assembled twice: in a section that is
// rewritten and in one that is not.
// Invariant: rbx, rbp, r12, r13 point to the middle of the memory under test, rsp to a stack of the
// test's; esi is a small index. Every form ends in ret and changes no pointer above.
#pragma once

// X(name, code). Long forms come by jmp, those of 4 bytes by one that borrows the ret behind,
// shorter ones by int3 because the next form is too near: borrowed_* have more behind them.
// clang-format off
#define ATOMIC_FORMS(X)                                                                      \
    X(add_byte_register, "lock addb %cl, (%rbx)")                                            \
    X(add_word_register, "lock addw %cx, 2(%rbx)")                                           \
    X(add_long_register, "lock addl %ecx, 4(%rbx)")                                          \
    X(add_quad_register, "lock addq %rcx, 8(%rbx)")                                          \
    X(add_byte_constant, "lock addb $0x7f, (%r12)")                                          \
    X(add_word_constant, "lock addw $0x1234, 2(%r12)")                                       \
    X(add_long_constant, "lock addl $-3, 4(%r13)")                                           \
    X(add_quad_constant, "lock addq $0x12345678, 8(%r13)")                                   \
    X(reduction, "movq %rcx, %xmm0\n movq 8(%rbx), %rdx\n leaq 8(%rbx), %r9\n"               \
                 "1: movq %rdx, %xmm1\n movq %rdx, %rax\n addsd %xmm0, %xmm1\n"              \
                 "movq %xmm1, %r10\n lock cmpxchgq %r10, (%r9)\n jne 2f\n ret\n"            \
                 "2: movq %rax, %rdx\n jmp 1b")                                              \
    X(adc_quad, "lock adcq %rdx, 16(%rbp)")                                                  \
    X(adc_byte, "lock adcb $1, 16(%rbp)")                                                    \
    X(sbb_long, "lock sbbl %edx, (%rbx)")                                                    \
    X(sub_quad, "lock subq %rdi, (%rbx)")                                                    \
    X(sub_long_constant, "lock subl $0x1000, (%rbp)")                                        \
    X(and_quad, "lock andq %rax, 24(%rbx)")                                                  \
    X(and_long_constant, "lock andl $0xff00ff, 24(%rbx)")                                    \
    X(or_word, "lock orw %r8w, (%rbx)")                                                      \
    X(or_quad_zero, "lock orq $0, (%rbx)")                                                   \
    X(xor_byte_high, "lock xorb %ah, (%rbx)")                                                \
    X(xor_quad, "lock xorq %r15, -64(%rbx)")                                                 \
    X(inc_byte, "lock incb (%rbx)")                                                          \
    X(inc_word, "lock incw (%rbx)")                                                          \
    X(borrowed_two, "lock incb (%rbx)\n nop\n nop")                                          \
    X(borrowed_three, "xchgl %ecx, (%rbx)\n nop\n nop\n nop")                                \
    X(inc_long, "lock incl (%rbx)")                                                          \
    X(inc_quad, "lock incq 0x100(%rbx)")                                                     \
    X(dec_byte, "lock decb 0x100(%r13)")                                                     \
    X(dec_quad, "lock decq (%r13)")                                                          \
    X(not_long, "lock notl (%rbx)")                                                          \
    X(not_quad, "lock notq 16(%rbx, %rsi, 8)")                                               \
    X(neg_byte, "lock negb (%rbx)")                                                          \
    X(neg_quad, "lock negq (%rbx)")                                                          \
    X(xadd_byte, "lock xaddb %al, (%rbx)")                                                   \
    X(xadd_word, "lock xaddw %di, (%rbx)")                                                   \
    X(xadd_long, "lock xaddl %edi, (%rbx)")                                                  \
    X(xadd_quad_rax, "lock xaddq %rax, (%rbx)")                                              \
    X(xadd_quad_rdi, "lock xaddq %rdi, (%rbx)")                                              \
    X(xadd_quad_rsi, "lock xaddq %rsi, (%rbx)")                                              \
    X(xadd_quad_r9, "lock xaddq %r9, 0x40(%rbx, %rsi, 8)")                                   \
    X(cmpxchg_byte, "lock cmpxchgb %cl, (%rbx)")                                             \
    X(cmpxchg_word, "lock cmpxchgw %cx, (%rbx)")                                             \
    X(cmpxchg_long, "lock cmpxchgl %edi, (%rbx)")                                            \
    X(cmpxchg_quad, "lock cmpxchgq %r14, (%rbx)")                                            \
    X(cmpxchg_quad_index, "lock cmpxchgq %rdx, 8(%r12, %rsi, 8)")                            \
    X(cmpxchg8b, "lock cmpxchg8b (%r12)")                                                    \
    X(cmpxchg16b, "lock cmpxchg16b (%r12)")                                                  \
    X(cmpxchg16b_far, "lock cmpxchg16b 0x200(%rbp)")                                         \
    X(bts_constant, "lock btsl $5, (%rbx)")                                                  \
    X(btr_constant, "lock btrq $40, (%rbx)")                                                 \
    X(btc_constant, "lock btcw $9, (%rbx)")                                                  \
    X(bts_register, "mov $7, %eax\n lock btsl %eax, (%rbx)")                                 \
    X(bts_register_beyond, "mov $300, %edi\n lock btsq %rdi, (%rbx)")                        \
    X(btr_register_before, "mov $-77, %rsi\n lock btrl %esi, (%rbx)")                        \
    X(btc_register_word, "mov $100, %r9\n lock btcw %r9w, (%rbx)")                           \
    X(xchg_byte, "xchgb %cl, (%rbx)")                                                        \
    X(xchg_word, "xchgw %dx, (%rbx)")                                                        \
    X(xchg_long, "xchgl %eax, (%rbx)")                                                       \
    X(xchg_quad, "xchgq %rdi, (%rbx)")                                                       \
    X(xchg_quad_far, "xchgq %rsi, 0x180(%rbx)")                                              \
    X(xchg_with_base, "mov %rbx, %rdi\n xchgq %rdi, (%rdi)")                                 \
    X(xadd_with_base, "mov %rbx, %rax\n lock xaddq %rax, (%rax)")                            \
    X(index_only, "mov %rbx, %rdx\n lock addl $1, (,%rdx,1)")                                \
    X(index_scaled, "mov %rbx, %rdx\n shr $2, %rdx\n lock addl $1, 4(,%rdx,4)")              \
    X(base_index_rax, "xor %eax, %eax\n lock addq %rcx, (%rbx, %rax, 4)")                    \
    X(base_index_rdi, "mov $2, %edi\n lock addq %rcx, (%rbx, %rdi, 4)")                      \
    X(base_r13_index_r12, "xor %r12, %r12\n lock addq %rcx, (%r13, %r12, 2)")                \
    X(base_r12_index_r13, "xor %r13, %r13\n lock addq %rcx, (%r12, %r13, 2)")                \
    X(index_r12_restored, "xor %r12, %r12\n lock incl (%rbx, %r12, 8)\n mov %rbx, %r12")     \
    X(relative_register, "lock addq %rcx, form_word(%rip)")                                  \
    X(relative_byte_constant, "lock addb $3, form_word+3(%rip)")                             \
    X(relative_long_constant, "lock addl $0x1234567, form_word+8(%rip)")                     \
    X(relative_xadd, "lock xaddq %rdi, form_word(%rip)")                                     \
    X(relative_cmpxchg16b, "lock cmpxchg16b form_word+16(%rip)")                             \
    X(stack_above, "lock addq %rcx, 16(%rsp)")                                               \
    X(stack_far, "lock subl $77, 0x400(%rsp)")                                               \
    X(stack_red_zone,                                                                        \
      "movq %rcx, -8(%rsp)\n lock addq %rax, -8(%rsp)\n movq -8(%rsp), %rdx")                \
    X(stack_red_zone_deep,                                                                   \
      "movq %rcx, -128(%rsp)\n lock xaddq %rdi, -128(%rsp)\n movq -128(%rsp), %r8")          \
    X(stack_return_slot, "lock cmpxchgq %rcx, 8(%rsp)")                                      \
    X(stack_index, "lock incl 16(%rsp, %rsi, 4)")                                            \
    X(red_zone_survives,                                                                     \
      "movq %rcx, -8(%rsp)\n movq %rdx, -120(%rsp)\n lock addq %rax, (%rbx)\n"               \
      "movq -8(%rsp), %r8\n movq -120(%rsp), %r9")                                           \
    X(flags_used_after, "lock subq %rcx, (%rbx)\n setz %al\n setc %dl\n seto %r8b\n sets %r9b")\
    X(carry_kept_by_inc, "stc\n lock incl (%rbx)\n adc %rcx, %rdx")                          \
    X(flags_kept_by_xchg, "cmp %rcx, %rdx\n xchgq %r8, (%rbx)\n setg %al\n setb %r9b")       \
    X(backwards_direction, "std\n lock addq %rcx, (%rbx)\n pushfq\n pop %rdx\n cld")         \
    X(loop_of_cmpxchg,                                                                       \
      "movq (%rbx), %rax\n 1: lea 1(%rax), %rdx\n lock cmpxchgq %rdx, (%rbx)\n jne 1b")      \
    X(branch_into_middle,                                                                    \
      "test %cl, %cl\n js 1f\n lock\n 1: addl $0x12345678, (%rbx)")                          \
    X(address_size_prefix, "xor %edx, %edx\n cmp %edx, %edx\n jne 2f\n jmp 1f\n"             \
                           "2: lock addl $1, (%ebx)\n 1: nop")

// Forms that have no trampoline: they must stay as they are.
#define LEFT_ALONE_FORMS(X)                                \
    X(thread_local_word, "lock addl $1, %fs:form_tls@tpoff") \
    X(stack_pointer_operand, "lock addq %rsp, 0x100(%rbx)")

#define FENCE_FORMS(X)                            \
    X(fence_gcc, "lock orq $0, (%rsp)")           \
    X(fence_gcc_long, "lock orl $0, (%rsp)")      \
    X(fence_clang, "lock orl $0, -64(%rsp)")      \
    X(fence_add, "lock addl $0, (%rsp)")          \
    X(fence_mfence, "mfence")

// Loops that wait until the words from 0x300(%rbx) and form_word[8] on are negative.
#define WAIT_FORMS(X)                                                                      \
    X(wait, "1: movq 0x300(%rbx), %rax\n test %rax, %rax\n jns 1b")                        \
    X(wait_short, "1: cmpb $0, 0x307(%rbx)\n jns 1b")                                       \
    X(wait_indexed, "1: movq 0x300(%rbx,%rsi,8), %rdi\n test %rdi, %rdi\n jns 1b\n nop\n")  \
    X(wait_relative, "1: cmpq $0, form_word+64(%rip)\n jns 1b")                             \
    X(wait_below_stack,                                                                    \
      "movq %rbx, -8(%rsp)\n 1: movq -8(%rsp), %rdi\n movq 0x300(%rdi), %rdi\n"            \
      "test %rdi, %rdi\n jns 1b")                                                          \
    X(wait_on_stack,                                                                       \
      "push %rbx\n 1: movq (%rsp), %r9\n cmpl $0, 0x304(%r9)\n jns 1b\n pop %r10")         \
    X(wait_entered_within,                                                                 \
      "jmp 2f\n 1: pause\n 2: movq 0x300(%rbx), %r8\n test %r8, %r8\n jns 1b")             \
    X(wait_entered_behind_jump,                                                            \
      "cmp %rcx, %rdx\n je 2f\n 1: movq 0x300(%rbx), %r8\n 2: movq 0x308(%rbx), %r8\n"     \
      "test %r8, %r8\n jns 1b")                                                            \
    X(wait_left_within,                                                                    \
      "1: cmpq $0, 0x300(%rbx)\n js 9f\n jmp 1b\n 9: nop")                                 \
    X(wait_for_two,                                                                        \
      "1: movq 0x308(%rbx), %rax\n test %rax, %rax\n js 9f\n movq 0x300(%rbx), %rcx\n"     \
      "test %rcx, %rcx\n jns 1b\n 9: setb %dl\n mov $0, %ecx")                                            \
    X(wait_reckoned,                                                                       \
      "1: movq %rsi, %rdi\n and $1, %edi\n shl $3, %rdi\n lea 0x300(%rbx,%rdi), %rdi\n"    \
      "movzbl 7(%rdi), %eax\n cmp $0x7f, %al\n jbe 1b")
// clang-format on
