// SPDX-License-Identifier: BSD-3-Clause
// Role: hiroba_call_program(function, a, b, c): calls function(a, b, c) and returns what it returns.
// A function of the program whose last act is a call jumps there, and leaves us as the caller that
// the callee sees; what lies between hiroba_call_program and hiroba_call_program_end counts as the
// program's code for that reason (base/program_call.hpp).
#include "base/call_frame.inc"

    .text
    begin_call_frame hiroba_call_program
    movq    %rdi, %rax
    movq    %rsi, %rdi
    movq    %rdx, %rsi
    movq    %rcx, %rdx
    callq   *%rax
    end_call_frame hiroba_call_program

// hiroba_call_program_apart(function, a, apart): its frames begin below a multiple of `apart`, which
// is a power of two.
    begin_call_frame hiroba_call_program_apart
    negq    %rdx
    andq    %rdx, %rsp
    movq    %rdi, %rax
    movq    %rsi, %rdi
    callq   *%rax
    end_call_frame hiroba_call_program_apart

// hiroba_call_program_with(function, words, count): the first six words go to registers, the others
// to the stack, the seventh at its end.
    begin_call_frame hiroba_call_program_with
    movq    %rdi, %rax
    movq    %rsi, %r10
    movq    %rdx, %r11
    cmpq    $6, %r11
    jbe     2f
    // An odd number of words on the stack needs one more, so that it stays aligned.
    testq   $1, %r11
    jz      1f
    subq    $8, %rsp
1:  cmpq    $6, %r11
    jbe     2f
    pushq   -8(%r10,%r11,8)
    decq    %r11
    jmp     1b
    // Fewer words than registers: each is looked at before it is read.
2:  testq   %r11, %r11
    jz      3f
    movq    (%r10), %rdi
    cmpq    $2, %r11
    jb      3f
    movq    8(%r10), %rsi
    cmpq    $3, %r11
    jb      3f
    movq    16(%r10), %rdx
    cmpq    $4, %r11
    jb      3f
    movq    24(%r10), %rcx
    cmpq    $5, %r11
    jb      3f
    movq    32(%r10), %r8
    cmpq    $6, %r11
    jb      3f
    movq    40(%r10), %r9
3:  movq    %rax, %r10
    xorl    %eax, %eax
    callq   *%r10
    end_call_frame hiroba_call_program_with
    .globl  hiroba_call_program_end
    .hidden hiroba_call_program_end
hiroba_call_program_end:
    .section .note.GNU-stack, "", @progbits
