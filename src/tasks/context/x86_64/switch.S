// SPDX-License-Identifier: BSD-3-Clause
// Role: the two halves of a context switch on x86-64, System V: what a function must preserve is
// pushed on the stack that is left, and popped from the stack that is resumed. The control words of
// the floating-point units stay with the thread (docs/layers/user-level-tasks.md).
#if defined(__x86_64__)

// hiroba_tasks_start(void** save, void* top, void* (*entry)(void*), void* argument): keeps this
// context in *save and calls entry(argument) on the stack that ends at `top`, a multiple of 16.
// entry returns what was kept of the context to go on with. This call returns once *save is gone on
// with. A child that hands back to its parent is a call within a call to the processor, too, which
// predicts where both return.
    .text
    .globl  hiroba_tasks_start
    .hidden hiroba_tasks_start
    .type   hiroba_tasks_start, @function
    .p2align 4
hiroba_tasks_start:
    .cfi_startproc
    pushq   %rbp
    .cfi_adjust_cfa_offset 8
    pushq   %rbx
    .cfi_adjust_cfa_offset 8
    pushq   %r12
    .cfi_adjust_cfa_offset 8
    pushq   %r13
    .cfi_adjust_cfa_offset 8
    pushq   %r14
    .cfi_adjust_cfa_offset 8
    pushq   %r15
    .cfi_adjust_cfa_offset 8
    movq    %rsp, (%rdi)
    movq    %rsi, %rsp
    .cfi_undefined %rip
    xorl    %ebp, %ebp
    movq    %rcx, %rdi
    callq   *%rdx
    movq    %rax, %rsp
    popq    %r15
    popq    %r14
    popq    %r13
    popq    %r12
    popq    %rbx
    popq    %rbp
    ret
    .cfi_endproc
    .size   hiroba_tasks_start, . - hiroba_tasks_start

// hiroba_tasks_jump(void* saved): goes on where `saved` was kept; never returns. An indirect jump,
// since no call stands for the return address that the processor would predict.
    .globl  hiroba_tasks_jump
    .hidden hiroba_tasks_jump
    .type   hiroba_tasks_jump, @function
    .p2align 4
hiroba_tasks_jump:
    .cfi_startproc
    movq    %rdi, %rsp
    .cfi_undefined %rip
    popq    %r15
    popq    %r14
    popq    %r13
    popq    %r12
    popq    %rbx
    popq    %rbp
    popq    %rcx
    jmpq    *%rcx
    .cfi_endproc
    .size   hiroba_tasks_jump, . - hiroba_tasks_jump

#endif
    .section .note.GNU-stack, "", @progbits
