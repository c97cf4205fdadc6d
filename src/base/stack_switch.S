// SPDX-License-Identifier: BSD-3-Clause
// Role: hiroba_call_on_stack(function, argument, stack_top): calls function(argument) on another
// stack and comes back. The frame pointer, kept by every callee, remembers the former stack, so
// that the CFI below holds at each instruction and debuggers walk through the switch.
    .text
    .globl  hiroba_call_on_stack
    .hidden hiroba_call_on_stack
    .type   hiroba_call_on_stack, @function
    .p2align 4
hiroba_call_on_stack:
    .cfi_startproc
    endbr64
    pushq   %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq    %rsp, %rbp
    .cfi_def_cfa_register %rbp
    movq    %rdx, %rsp
    andq    $-16, %rsp
    movq    %rdi, %rax
    movq    %rsi, %rdi
    callq   *%rax
    leave
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size   hiroba_call_on_stack, . - hiroba_call_on_stack
    .section .note.GNU-stack, "", @progbits
