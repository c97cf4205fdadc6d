// SPDX-License-Identifier: BSD-3-Clause
// Role: hiroba_call_program(function, a, b, c): calls function(a, b, c) and returns what it returns.
// A function of the program whose last act is a call jumps there, and leaves us as the caller that
// the callee sees; what lies between hiroba_call_program and hiroba_call_program_end counts as the
// program's code for that reason (base/program_call.hpp).
    .text
    .globl  hiroba_call_program
    .hidden hiroba_call_program
    .type   hiroba_call_program, @function
    .p2align 4
hiroba_call_program:
    .cfi_startproc
    endbr64
    pushq   %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq    %rsp, %rbp
    .cfi_def_cfa_register %rbp
    movq    %rdi, %rax
    movq    %rsi, %rdi
    movq    %rdx, %rsi
    movq    %rcx, %rdx
    callq   *%rax
    leave
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .globl  hiroba_call_program_end
    .hidden hiroba_call_program_end
hiroba_call_program_end:
    .size   hiroba_call_program, . - hiroba_call_program
    .section .note.GNU-stack, "", @progbits
