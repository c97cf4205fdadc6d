# SPDX-License-Identifier: BSD-3-Clause
# Role: the seam between trampolines and C++: called in the middle of the program's code, where
# every register is live. rdi and rsi are the trampoline's own; rax carries the result.
# Invariant: all else is restored, ZMM and mask registers included (hooks use them: memcpy, merge).

    .text

    .macro slow_path_entry name, function
    .globl  \name
    .hidden \name
    .type   \name, @function
\name:
    endbr64
    push    %rbp
    mov     %rsp, %rbp
    pushfq
    push    %rcx
    push    %rdx
    push    %r8
    push    %r9
    push    %r10
    push    %r11
    push    %rbx
    cld
    sub     hiroba_vector_bytes(%rip), %rsp
    and     $-64, %rsp
    mov     hiroba_vector_mask(%rip), %ebx
    test    %ebx, %ebx
    jz      1f
    # xrstor refuses a header with stray bits; xsave writes only part of it.
    xor     %eax, %eax
    .irp    offset, 512, 520, 528, 536, 544, 552, 560, 568
    mov     %rax, \offset(%rsp)
    .endr
    mov     %ebx, %eax
    xor     %edx, %edx
    xsave64 (%rsp)
    call    \function
    mov     %rax, %rcx
    mov     %ebx, %eax
    xor     %edx, %edx
    xrstor64 (%rsp)
    jmp     2f
1:
    fxsave64 (%rsp)
    call    \function
    mov     %rax, %rcx
    fxrstor64 (%rsp)
2:
    mov     %rcx, %rax
    lea     -64(%rbp), %rsp
    pop     %rbx
    pop     %r11
    pop     %r10
    pop     %r9
    pop     %r8
    pop     %rdx
    pop     %rcx
    popfq
    pop     %rbp
    ret
    .size   \name, . - \name
    .endm

    slow_path_entry hiroba_atomic_before, hiroba_atomic_enter
    slow_path_entry hiroba_atomic_after, hiroba_atomic_leave

    .section .note.GNU-stack, "", @progbits
