# SPDX-License-Identifier: BSD-3-Clause
# Role: hiroba_switch_fiber(save, load): keeps the callee-saved registers on this stack, stores the
# stack pointer in *save and goes on where `load` was stored. A new stack begins at
# hiroba_start_fiber, with the function in r13 and its argument in r12.
    .text
    .globl  hiroba_switch_fiber
    .hidden hiroba_switch_fiber
    .type   hiroba_switch_fiber, @function
    .p2align 4
hiroba_switch_fiber:
    .cfi_startproc
    pushq   %rbp
    pushq   %rbx
    pushq   %r12
    pushq   %r13
    pushq   %r14
    pushq   %r15
    movq    %rsp, (%rdi)
    movq    %rsi, %rsp
    popq    %r15
    popq    %r14
    popq    %r13
    popq    %r12
    popq    %rbx
    popq    %rbp
    ret
    .cfi_endproc
    .size   hiroba_switch_fiber, . - hiroba_switch_fiber

    .globl  hiroba_start_fiber
    .hidden hiroba_start_fiber
    .type   hiroba_start_fiber, @function
    .p2align 4
hiroba_start_fiber:
    .cfi_startproc
    .cfi_undefined %rip
    movq    %r12, %rdi
    callq   *%r13
    ud2
    .cfi_endproc
    .size   hiroba_start_fiber, . - hiroba_start_fiber
    .section .note.GNU-stack, "", @progbits
